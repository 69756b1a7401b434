"""The four attributes of GRAS: the dataset each is measured on, its groups, its test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vlmfair.stats.moments import Factor, TestName


@dataclass(frozen=True)
class Attribute:
    """An attribute, the dataset it is annotated on, the paper's test and its groups in order."""

    name: str
    dataset: str
    test: TestName
    groups: tuple[str, ...]


ATTRIBUTES = (
    Attribute("gender", "fairface", "welch_t", ("Female", "Male")),
    Attribute(
        "race",
        "fairface",
        "welch_anova",
        (
            *("Black", "East Asian", "Indian", "Latino_Hispanic", "Middle Eastern"),
            *("Southeast Asian", "White"),
        ),
    ),
    Attribute("age", "fairface", "welch_anova", ("20-29", "30-39", "40-49", "50-59", "60-69")),
    Attribute("skin_tone", "ai_face", "welch_anova", tuple(str(tone) for tone in range(1, 11))),
)
DATASETS = ("fairface", "ai_face")


@dataclass(frozen=True)
class Grouping:
    """The groups of one attribute that occur among the images, and which image is in which."""

    attribute: Attribute
    groups: tuple[str, ...]
    factor: Factor


def groupings(images: pd.DataFrame, dataset: str) -> Mapping[str, Grouping]:
    """Return the grouping of every attribute measured on `dataset`, by attribute name.

    `images` are that dataset's images in row order. Groups of the paper come first, in its
    order, then any other in the alphabet's. An attribute with fewer than two groups is left out:
    nothing can be compared.
    """
    found = {}
    for attribute in ATTRIBUTES:
        if attribute.dataset != dataset or attribute.name not in images:
            continue
        labels = images[attribute.name]
        present = set(labels.dropna()) - {""}
        known = [group for group in attribute.groups if group in present]
        groups = (*known, *sorted(present - set(known)))
        if len(groups) < 2:
            continue
        codes = pd.Categorical(labels, categories=groups).codes.astype(np.int64)
        test: TestName = attribute.test if len(groups) == 2 else "welch_anova"
        found[attribute.name] = Grouping(attribute, groups, Factor(codes, len(groups), test))
    return found
