"""What wording, temperature and the spelling of Yes do to the answers (GRAS §4.1, A.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlmfair.papers.gras.cube import PROMPTS, Cube
from vlmfair.papers.gras.judge import temperature_column
from vlmfair.papers.gras.measure_attributes import groupings
from vlmfair.papers.gras.measure_tests import by_trait
from vlmfair.stats.metric_rows import MetricRows
from vlmfair.stats.repeated import friedman, repeated_measures_anova
from vlmfair.stats.welch import welch_tests

TEMPERATURE_TRAITS = ("affectionate", "annoying", "bad", "polite")
FORM_COLUMNS = {
    "mean_p_yes": "p_yes",
    "mean_p_yes_all_forms": "p_yes_all_forms",
    "mean_p_no_all_forms": "p_no_all_forms",
}


def further_columns(temperatures: Sequence[float]) -> tuple[str, ...]:
    """Return the columns of judgements beside `p_yes` that are measured."""
    columns = {*map(temperature_column, temperatures), *FORM_COLUMNS.values()}
    return tuple(sorted(columns - {"p_yes"}))


def add_template_sensitivity(rows: MetricRows, part: Cube) -> None:
    """Add template means, repeated-measures ANOVA and Friedman test of every trait.

    On the FairFace images alone, as in the paper's released results (their error degrees of
    freedom are 4 x 3,569). Needs two images.
    """
    n = len(part.p)
    if n < 2:
        return
    place = rows.at(experiment="template_sensitivity", dataset="fairface")
    items = {"item": part.traits}
    means = {"item": part.traits, "prompt": PROMPTS}
    place.add("template_mean", means, value=part.p.mean(axis=0), n=n)
    place = place.at(prompt="all")
    anova = repeated_measures_anova(part.p)
    place.add(
        "rm_anova",
        items,
        value=anova.statistic,
        n=n,
        p=anova.p,
        p_adjusted=anova.p_corrected,
        effect=anova.partial_eta_squared,
    )
    for metric, value in (
        ("rm_anova_epsilon", anova.epsilon),
        ("rm_anova_df1", np.full(len(part.traits), anova.df1)),
        ("rm_anova_df2", np.full(len(part.traits), anova.df2)),
    ):
        place.add(metric, items, value=value, n=n)
    ranks = friedman(part.p)
    place.add("friedman", items, value=ranks.statistic, n=n, p=ranks.p, effect=ranks.kendalls_w)


def add_temperature(rows: MetricRows, part: Cube, temperatures: Sequence[float]) -> None:
    """Add Welch's ANOVA over skin tones at each temperature, for the four traits of A.3."""
    grouping = groupings(part.images, "ai_face").get("skin_tone")
    places = [at for at, trait in enumerate(part.traits) if trait in TEMPERATURE_TRAITS]
    if grouping is None or not places:
        return
    axes = {"item": [part.traits[at] for at in places], "prompt": PROMPTS}
    n = int((grouping.factor.codes >= 0).sum())
    place = rows.at(experiment="temperature", dataset="ai_face", attribute="skin_tone", group="all")
    for temperature in sorted(temperatures):
        column = temperature_column(temperature)
        values = part.p if column == "p_yes" else part.further.get(column)
        if values is None:
            continue
        test = welch_tests(values[:, places].reshape(len(values), -1), grouping.factor)
        place.at(setting=f"T={float(temperature)}").add(
            "welch_test", axes, value=by_trait(test.statistic), n=n, p=by_trait(test.p)
        )


def add_surface_forms(rows: MetricRows, part: Cube, dataset: str) -> None:
    """Add the mean probability of the scored Yes, of every Yes and of every No, per template."""
    for metric, column in FORM_COLUMNS.items():
        values = part.p if column == "p_yes" else part.further.get(column)
        if values is not None:
            rows.at(experiment="surface_forms", dataset=dataset).add(
                metric, {"prompt": PROMPTS}, value=values.mean(axis=(0, 1)), n=len(values)
            )


def add_example(rows: MetricRows, cube: Cube) -> None:
    """Add the image and trait whose five answers are furthest apart (Figure 1).

    Among equals the first in the order of sample_id, then of traits.
    """
    spread = cube.p.max(axis=-1) - cube.p.min(axis=-1)
    image, trait = np.unravel_index(int(np.argmax(spread)), spread.shape)
    rows.at(
        experiment="examples",
        dataset=str(cube.images["dataset"][image]),
        group=str(cube.images["sample_id"][image]),
        item=cube.traits[trait],
    ).add("p_yes", {"prompt": PROMPTS}, value=cube.p[image, trait], n=1)
