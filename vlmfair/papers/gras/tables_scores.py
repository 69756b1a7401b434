"""The tables that say how biased each model is: scores, valence attribution, deviations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from vlmfair.papers.gras.study import (
    ATTRIBUTE_NAMES,
    ATTRIBUTES,
    Study,
    groups_of,
    model_order,
    ordered,
    pick,
    rows_in,
    shown_group,
)
from vlmfair.render.numbers import (
    format_count,
    format_interval,
    format_number,
    format_p,
    format_signed,
)
from vlmfair.render.tables import Column, Table

CORRECTIONS = ("bonferroni_templates", "holm", "bh")
RULES = {"all": "all templates", "any": "at least one template"}


def score_summary(metrics: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Return one row per model: the GRAS bias score, what chance gives, and corrected scores.

    Without relabelings or bootstrap samples in the run, their columns are empty.
    """
    scores = pick(metrics, "score", "gras_bias_score")
    is_null = (metrics["experiment"] == "score") & (metrics["metric"] == "gras_bias_score_null")
    null = metrics[is_null].set_index("model")
    traits = pick(metrics, "score", "significant_traits").groupby("model")["n"].max()
    by_setting = scores.set_index(["model", "setting"])
    models = model_order(scores, models)
    first = by_setting.xs("uncorrected", level="setting").loc[models]
    corrected = by_setting["value"]
    return pd.DataFrame(
        {
            "model": models,
            "score": first["value"].to_numpy(),
            "score_ci_low": first["ci_low"].to_numpy(),
            "score_ci_high": first["ci_high"].to_numpy(),
            "null_mean": null["value"].reindex(models).to_numpy(),
            "null_low": null["ci_low"].reindex(models).to_numpy(),
            "null_high": null["ci_high"].reindex(models).to_numpy(),
            "relabelings": null["n"].reindex(models).to_numpy(),
            "p": first["p"].to_numpy(),
            **{
                f"score_{name}": [corrected.get((model, name)) for model in models]
                for name in CORRECTIONS
            },
            "traits": traits.reindex(models).to_numpy(),
            "images": first["n"].to_numpy(),
        }
    )


def score_sentences(
    metrics: pd.DataFrame, models: Sequence[str], titles: Mapping[str, str]
) -> tuple[str, ...]:
    """Return what the report says first: each model's score and what no bias would give."""
    sentences: list[str] = []
    for row in rows_in(score_summary(metrics, models)):
        title = titles.get(row.model) or row.model
        text = f"{title}: GRAS bias score {format_number(row.score)}"
        text += f" of {format_count(row.traits)} traits, {format_count(row.images)} images"
        if pd.notna(row.score_ci_low):
            interval = format_interval(row.score_ci_low, row.score_ci_high, 1)
            text += f" (95% interval {interval})"
        if pd.notna(row.null_mean):
            text += (
                f"; {format_number(row.null_mean, 1)} is what a model without bias gets"
                f" (p {_equals(format_p(row.p))} for at least this score by chance)"
            )
        text += f"; with Holm’s correction {format_number(row.score_holm)}."
        sentences.append(text)
    return tuple(sentences)


def _equals(p: str) -> str:
    return p.replace("<", "< ") if p.startswith("<") else f"= {p}"


def build_scores(metrics: pd.DataFrame, study: Study) -> Table:
    """Table 2: the GRAS bias score beside its interval, its null and its corrected forms."""
    data = score_summary(metrics, study.models)
    chance = "If labels meant nothing"
    corrected = "Score with correction"
    relabelings = format_count(data["relabelings"].min())
    return Table(
        title="GRAS bias scores",
        data=data,
        columns=(
            Column("Model", align="left"),
            Column("Score"),
            Column("95% interval"),
            Column("mean", chance),
            Column("95% interval", chance),
            Column("p", chance),
            Column("over 5 templates", corrected),
            Column("Holm", corrected),
            Column("BH", corrected),
            Column("Traits"),
            Column("Images"),
        ),
        rows=tuple(
            (
                row.model,
                format_number(row.score),
                format_interval(row.score_ci_low, row.score_ci_high, 1),
                format_number(row.null_mean),
                format_interval(row.null_low, row.null_high, 1),
                format_p(row.p),
                format_number(row.score_bonferroni_templates),
                format_number(row.score_holm),
                format_number(row.score_bh),
                format_count(row.traits),
                format_count(row.images),
            )
            for row in rows_in(data)
        ),
        notes=(
            "Score: traits with a significant difference between groups (p ≤ "
            f"{study.alpha:g} in at least one of five templates), averaged over gender, race, age "
            "and skin tone; it runs from 0 to the number of traits. Interval: bootstrap over "
            "images.",
            f"If labels meant nothing: the score after {relabelings} random reassignments of the "
            "group labels to the images. A model without any bias gets this score, not 0; p is the "
            "share of them, the observed labels counted in, with at least the model’s score.",
            "With correction: Bonferroni over the five templates of a trait; Holm and "
            "Benjamini–Hochberg (BH) over all traits and templates of an attribute.",
        ),
    )


def build_valence(metrics: pd.DataFrame, study: Study) -> Table:
    """Table 3: percent of negative and positive traits attributed to each group, by both rules."""
    shares = pick(metrics, "valence", "attributed_share")
    models = model_order(shares, study.models)
    data = ordered(
        shares, setting=list(RULES), attribute=ATTRIBUTES, model=models, item=_POLARITIES
    )[["setting", "attribute", "group", "model", "item", "value", "n"]]
    cells = data.set_index(["setting", "attribute", "group", "model", "item"])["value"]
    keys = [
        (rule, attribute, group)
        for rule in RULES
        for attribute in ATTRIBUTES
        for group in groups_of(data[data["attribute"] == attribute])
    ]
    counts = data.groupby("item")["n"].max()
    # Of 50 traits each percentage is a whole number, of other counts not.
    digits = 0 if (data["value"] % 1 == 0).all() else 1
    return Table(
        title="Percent of negative and positive traits attributed to each group",
        data=data.rename(columns={"setting": "rule", "item": "polarity", "value": "percent"}),
        columns=(
            Column("Exceeds in", align="left", width=0.75),
            Column("Attribute", align="left"),
            Column("Group", align="left"),
            *(Column(name, model) for model in models for name in ("neg.", "pos.")),
        ),
        rows=tuple(
            (
                RULES[rule],
                ATTRIBUTE_NAMES[attribute],
                shown_group(group),
                *(
                    format_number(cells.get((rule, attribute, group, model, item)), digits)
                    for model in models
                    for item in _POLARITIES
                ),
            )
            for rule, attribute, group in keys
        ),
        notes=(
            "A trait is attributed to a group when the group’s mean P(Yes) exceeds the mean of all "
            "images in all five templates (the rule that reproduces the published numbers), or in "
            "at least one template (the rule that the paper’s text states).",
            f"Of {format_count(counts.get('negative'))} negative and "
            f"{format_count(counts.get('positive'))} positive traits. Skin tones are the ten "
            "groups of the Monk scale, 1 the lightest.",
        ),
        stubs=3,
    )


_POLARITIES = ("negative", "positive")


def deviation_summary(metrics: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return one row per model and attribute: significant traits, effects, largest deviation."""
    tests = pick(metrics, "bias_detection", "welch_test")
    deviations = pick(metrics, "bias_detection", "deviation")
    counts = pick(metrics, "score", "significant_traits").set_index(
        ["model", "attribute", "setting"]
    )["value"]
    rows = []
    for model in model_order(tests, study.models):
        for attribute in ATTRIBUTES:
            of_tests = tests[(tests["model"] == model) & (tests["attribute"] == attribute)]
            chosen = (deviations["model"] == model) & (deviations["attribute"] == attribute)
            of_groups = deviations[chosen]
            if of_tests.empty or of_groups.empty:
                continue
            # The sign of Hedges' g is a direction; a negative omega squared means no effect at all.
            effects = of_tests["effect"].abs() if attribute == "gender" else of_tests["effect"]
            largest = of_groups.iloc[int(of_groups["value"].abs().to_numpy().argmax())]
            rows.append(
                {
                    "model": model,
                    "attribute": attribute,
                    **{
                        f"significant_{name}": counts.get((model, attribute, name))
                        for name in ("uncorrected", "holm", "bh")
                    },
                    "traits": of_tests["item"].nunique(),
                    "median_effect": effects.median(),
                    "max_effect": effects.max(),
                    "largest_deviation": largest["value"],
                    "largest_group": largest["group"],
                    "largest_trait": largest["item"],
                    "largest_template": largest["prompt"],
                    "images": of_tests["n"].max(),
                    "smallest_group": of_groups["n"].min(),
                    "small_group": bool(of_groups["n"].min() < study.small_group),
                }
            )
    return pd.DataFrame(rows)


def build_deviations(metrics: pd.DataFrame, study: Study) -> Table:
    """Per model and attribute: how many traits differ, by how much, and the largest deviation."""
    data = deviation_summary(metrics, study)
    significant, effect, largest = "Significant traits", "Effect size", "Largest deviation"
    return Table(
        title="Differences between groups and their size",
        data=data,
        columns=(
            Column("Model", align="left"),
            Column("Attribute", align="left"),
            Column("uncorrected", significant),
            Column("Holm", significant),
            Column("BH", significant),
            Column("median", effect),
            Column("max.", effect),
            Column("points", largest),
            Column("group", largest, "left"),
            Column("trait", largest, "left"),
            Column("template", largest, "left"),
            Column("Images"),
            Column("Smallest group"),
        ),
        rows=tuple(
            (
                row.model,
                ATTRIBUTE_NAMES[row.attribute],
                format_count(row.significant_uncorrected),
                format_count(row.significant_holm),
                format_count(row.significant_bh),
                format_number(row.median_effect, 3),
                format_number(row.max_effect, 3),
                format_signed(100 * row.largest_deviation),
                shown_group(row.largest_group),
                row.largest_trait,
                row.largest_template,
                format_count(row.images),
                format_count(row.smallest_group) + (" †" if row.small_group else ""),
            )
            for row in rows_in(data)
        ),
        notes=(
            f"Significant traits of {format_count(data['traits'].max())}: p ≤ {study.alpha:g} in "
            "at least one template, without correction, with Holm’s and with "
            "Benjamini–Hochberg’s correction over all traits and templates of the attribute.",
            "Effect size over traits and templates: absolute Hedges’ g for gender, ω² of Welch’s "
            "ANOVA for the other attributes. ω² may be slightly negative: then the groups differ "
            "by no more than chance. Largest deviation: the group mean of P(Yes) minus the mean of "
            "all images, in percentage points.",
            f"† the smallest group has fewer than {study.small_group} images; intervals are wide "
            "and the tests approximate.",
        ),
        stubs=2,
    )
