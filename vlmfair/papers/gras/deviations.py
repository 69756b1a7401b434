"""The deviations of group means that Figures 4 to 6 and the appendix families draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from vlmfair.papers.gras.study import (
    Study,
    groups_of,
    model_order,
    ordered,
    pick,
    shown_group,
)
from vlmfair.render.numbers import format_count

# Paper, captions of Figures 4 to 6: which template's answers are drawn.
PROMPT_OF = {"gender": "T2", "race": "T2", "skin_tone": "T5"}
POINTS = "deviation from the mean of all images (percentage points)"


@dataclass(frozen=True)
class Deviations:
    """Deviations of one attribute under one template.

    `table` has a row per model, trait and group: deviation, ci_low, ci_high in percentage points,
    n of the group, p and p_holm of the trait's Welch test, effect, and significant (0 no, 1 before
    correction only, 2 after Holm's correction).
    """

    table: pd.DataFrame
    models: list[str]
    groups: list[str]
    images: int

    def sizes(self) -> dict[str, int]:
        """Return the number of images of each group."""
        return {str(g): int(n) for g, n in self.table.groupby("group")["n"].max().items()}

    def counted(self) -> str:
        """Return how many images there are in all and in each group, as a figure says it."""
        sizes = sorted(self.sizes().values())
        each = format_count(sizes[0])
        if sizes[0] != sizes[-1]:
            each = f"{each}–{format_count(sizes[-1])}"
        return f"n = {format_count(self.images)} images, {each} per group"


def deviations_of(metrics: pd.DataFrame, study: Study, attribute: str) -> Deviations:
    """Return the deviations of an attribute under the template that the paper draws."""
    prompt = PROMPT_OF[attribute]
    tests = pick(metrics, "bias_detection", "welch_test", attribute=attribute, prompt=prompt)
    rows = pick(metrics, "bias_detection", "deviation", attribute=attribute, prompt=prompt)
    models, groups = model_order(rows, study.models), groups_of(rows)
    rows = ordered(rows, model=models, item=study.words, group=groups)
    table = rows[["model", "item", "group", "value", "ci_low", "ci_high", "n"]].rename(
        columns={"item": "trait", "value": "deviation"}
    )
    table[["deviation", "ci_low", "ci_high"]] *= 100
    tests = tests[["model", "item", "p", "p_adjusted", "effect"]].rename(
        columns={"item": "trait", "p_adjusted": "p_holm"}
    )
    table = table.merge(tests, on=["model", "trait"], how="left", validate="many_to_one")
    corrected = table["p_holm"] <= study.alpha
    table["significant"] = (table["p"] <= study.alpha).astype(int) + corrected.astype(int)
    table["polarity"] = table["trait"].map(study.polarity)
    images = pick(metrics, "bias_detection", "welch_test", attribute=attribute, prompt=prompt)["n"]
    return Deviations(table, models, groups, int(images.max()))


def telling_traits(deviations: Deviations, study: Study, count: int) -> list[str]:
    """Return up to `count` traits, half of them negative, that deviate most; in the study's order.

    A trait's rank is its largest absolute deviation over groups and models; ties go to the trait
    that comes first. When one polarity has too few traits, the other fills up.
    """
    size = deviations.table.groupby("trait")["deviation"].agg(lambda d: d.abs().max())
    ranked = sorted(
        (word for word in study.words if word in size.index), key=lambda word: -size[word]
    )
    halves = [[w for w in ranked if study.polarity[w] == p] for p in ("negative", "positive")]
    chosen = [word for half in halves for word in half[: count // 2]]
    rest = [word for word in ranked if word not in chosen]
    chosen += rest[: min(count, len(ranked)) - len(chosen)]
    return [word for word in study.words if word in chosen]


def rows_of(table: pd.DataFrame, traits: Sequence[str]) -> pd.DataFrame:
    """Return the rows of some traits: the values that a figure draws and its csv holds."""
    return table[table["trait"].isin(set(traits))].reset_index(drop=True)


def group_labels(deviations: Deviations) -> list[str]:
    """Return the groups' names for an axis, with their number of images where these differ."""
    sizes = deviations.sizes()
    names = [shown_group(group) for group in deviations.groups]
    if len(set(sizes.values())) == 1:
        return names
    return [f"{name} ({sizes[group]:,})" for name, group in zip(names, deviations.groups)]


def row_groups(traits: Sequence[str], study: Study) -> list[str]:
    """Return, for each trait of a figure's rows, the name of the rows it belongs to."""
    return [f"{study.polarity[trait]} traits" for trait in traits]
