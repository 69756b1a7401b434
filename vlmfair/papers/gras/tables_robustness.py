"""The tables of what the results depend on: temperature, wording, and the answer's spelling."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from vlmfair.errors import ContractError
from vlmfair.papers.gras.study import (
    DATASET_NAMES,
    PROMPTS,
    Study,
    model_order,
    ordered,
    pick,
    rows_in,
)
from vlmfair.render.numbers import format_count, format_number, format_p
from vlmfair.render.tables import Column, Table


def temperature_builder(trait: str) -> Callable[[pd.DataFrame, Study], Table]:
    """Return the builder of one of Tables 6 to 9: p-values of one trait by temperature."""

    def build(metrics: pd.DataFrame, study: Study) -> Table:
        return build_temperature(metrics, study, trait)

    return build


def build_temperature(metrics: pd.DataFrame, study: Study, trait: str) -> Table:
    """Tables 6 to 9: p-values of Welch's ANOVA across skin tones at each temperature (A.3)."""
    if trait not in study.words:
        raise ContractError(
            f"the trait {trait!r} was not asked. Add it to the configured traits, or leave out "
            f"this table."
        )
    tests = pick(metrics, "temperature", "welch_test", item=trait)
    models = model_order(tests, study.models)
    settings = sorted(tests["setting"].unique(), key=lambda text: float(text.removeprefix("T=")))
    data = ordered(tests, model=models, setting=settings, prompt=PROMPTS)
    data = data[["model", "setting", "item", "prompt", "value", "p", "n"]]
    p_values = data.set_index(["model", "setting", "prompt"])["p"]
    data = data.assign(setting=data["setting"].str.removeprefix("T=")).rename(
        columns={"setting": "temperature", "item": "trait", "value": "statistic"}
    )
    return Table(
        title=f"p-values across skin tones by temperature: {trait}",
        data=data,
        columns=(
            Column("Model", align="left"),
            Column("T"),
            *(
                Column(template.text.replace("{trait}", trait), width=0.85)
                for template in study.templates
            ),
        ),
        rows=tuple(
            (
                model,
                setting.removeprefix("T="),
                *(
                    _marked_p(p_values.get((model, setting, prompt)), study.alpha)
                    for prompt in PROMPTS
                ),
            )
            for model in models
            for setting in settings
        ),
        notes=(
            "T: temperature of the softmax. Welch’s ANOVA of P(Yes) across the ten Monk skin tone "
            "groups, "
            f"n = {format_count(data['n'].max())} AI-Face images.",
            f"† not significant (p > {study.alpha:g}), without correction for multiple tests.",
        ),
        stubs=2,
    )


def _marked_p(value: float | None, alpha: float) -> str:
    text = format_p(value, 4)
    return f"{text} †" if value is not None and value > alpha else text


_SENSITIVITY_COLUMNS = {
    "f": ("rm_anova", "value"),
    "df1": ("rm_anova_df1", "value"),
    "df2": ("rm_anova_df2", "value"),
    "p": ("rm_anova", "p"),
    "epsilon": ("rm_anova_epsilon", "value"),
    "p_greenhouse_geisser": ("rm_anova", "p_adjusted"),
    "partial_eta_squared": ("rm_anova", "effect"),
    "chi_squared": ("friedman", "value"),
    "friedman_p": ("friedman", "p"),
    "kendalls_w": ("friedman", "effect"),
    "images": ("rm_anova", "n"),
}


def template_sensitivity(metrics: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return one row per model and trait: both tests of the five wordings and their effects."""
    parts = {}
    for name, (metric, column) in _SENSITIVITY_COLUMNS.items():
        rows = pick(metrics, "template_sensitivity", metric)
        parts[name] = rows.set_index(["model", "item"])[column]
    frame = pd.DataFrame(parts).reset_index(names=["model", "trait"])
    return ordered(frame, model=model_order(frame, study.models), trait=study.words)


def build_template_sensitivity(metrics: pd.DataFrame, study: Study) -> Table:
    """Per model and trait: does the wording change the answer, and by how much (section 4.1)."""
    data = template_sensitivity(metrics, study)
    anova, friedman = "Repeated-measures ANOVA", "Friedman test"
    return Table(
        title="Sensitivity to the wording of the question",
        data=data,
        columns=(
            Column("Model", align="left"),
            Column("Trait", align="left"),
            Column("F", anova),
            Column("df", anova),
            Column("p", anova),
            Column("ε", anova),
            Column("corrected p", anova),
            Column("partial η²", anova),
            Column("χ²", friedman),
            Column("p", friedman),
            Column("W", friedman),
            Column("Images"),
        ),
        rows=tuple(
            (
                row.model,
                row.trait,
                format_number(row.f, 1),
                f"{format_count(row.df1)}; {format_count(row.df2)}",
                format_p(row.p),
                format_number(row.epsilon, 3),
                format_p(row.p_greenhouse_geisser),
                format_number(row.partial_eta_squared, 3),
                format_number(row.chi_squared, 1),
                format_p(row.friedman_p),
                format_number(row.kendalls_w, 3),
                format_count(row.images),
            )
            for row in rows_in(data)
        ),
        notes=(
            "Each FairFace image is a subject that answers the five wordings. ε: Greenhouse and "
            "Geisser’s measure of how far the assumption of sphericity holds (1: entirely); "
            "corrected p: with the degrees of freedom times ε. W: Kendall’s coefficient.",
        ),
        stubs=2,
    )


def build_surface_forms(metrics: pd.DataFrame, study: Study) -> Table:
    """Per model, dataset and template: how much of the probability each spelling of Yes takes."""
    names = {
        "mean_p_yes": "p_yes",
        "mean_p_yes_all_forms": "p_yes_all_forms",
        "mean_p_no_all_forms": "p_no_all_forms",
    }
    keys = ["model", "dataset", "prompt"]
    parts = {
        column: pick(metrics, "surface_forms", metric).set_index(keys)["value"]
        for metric, column in names.items()
    }
    parts["answers"] = pick(metrics, "surface_forms", "mean_p_yes").set_index(keys)["n"]
    frame = pd.DataFrame(parts).reset_index(names=keys)
    data = ordered(
        frame,
        model=model_order(frame, study.models),
        dataset=[name for name in DATASET_NAMES if name in set(frame["dataset"])],
        prompt=PROMPTS,
    )
    data = data.assign(p_other=1 - data["p_yes_all_forms"] - data["p_no_all_forms"])
    mean = "Mean probability"
    return Table(
        title="Probability of each kind of first token",
        data=data,
        columns=(
            Column("Model", align="left"),
            Column("Dataset", align="left"),
            Column("Template", align="left"),
            Column("the paper’s Yes", mean),
            Column("any Yes", mean),
            Column("any No", mean),
            Column("neither", mean),
            Column("Images"),
        ),
        rows=tuple(
            (
                row.model,
                DATASET_NAMES.get(row.dataset, row.dataset),
                row.prompt,
                format_number(row.p_yes, 3),
                format_number(row.p_yes_all_forms, 3),
                format_number(row.p_no_all_forms, 3),
                format_number(row.p_other, 3),
                format_count(row.answers),
            )
            for row in rows_in(data)
        ),
        notes=(
            "The paper’s Yes is one spelling (its Table 5) and is what every other table and "
            "figure measures; any Yes and any No add the other spellings (lower case, upper case, "
            "with a space before).",
        ),
        stubs=3,
    )
