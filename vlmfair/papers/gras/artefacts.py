"""Which files GRAS reads and makes; standard library only, for the workflow's parsing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vlmfair.errors import ConfigError


@dataclass(frozen=True)
class Family:
    """A run of appendix figures: one file per model and page of traits.

    `prompt` is the question template whose answers are drawn (paper A.4 and A.5).
    """

    attribute: str
    prompt: str
    traits_per_page: int


FAMILIES = {
    "figure_7-26": Family("skin_tone", "T5", 25),
    "figure_27-51": Family("race", "T2", 20),
}

# The authors' lists of selected images, by dataset.
LIST_FILES = {
    "fairface": "selected_images_fairface.csv",
    "ai_face": "selected_images_aiface.csv",
}

# The figures that show an image of a dataset.
WITH_IMAGES = ("figure_1",)

# The appendix shows the temperatures of four traits (A.3), one table each.
TEMPERATURE_TABLES = {
    "table_6": "affectionate",
    "table_7": "annoying",
    "table_8": "bad",
    "table_9": "polite",
}


def pages(figure_id: str, number_of_traits: int) -> int:
    """Return how many pages of traits a family of figures has per model.

    Raises ConfigError when the figure is not a family.
    """
    return -(-number_of_traits // _family(figure_id).traits_per_page)


def stems(artefact: str, models: Sequence[str], traits: Sequence[str]) -> list[str]:
    """Return the file names, without ending, of a table or figure of a run.

    One, or one per model and page for a family of figures; none for a table of temperatures whose
    trait the run does not ask about.
    """
    if TEMPERATURE_TABLES.get(artefact, traits[0]) not in traits:
        return []
    if artefact not in FAMILIES:
        return [artefact]
    count = pages(artefact, len(traits))
    return [f"{artefact}_{model}_{page}" for model in models for page in range(1, count + 1)]


def page_of(figure_id: str, page: int, number_of_traits: int) -> slice:
    """Return which traits, in their order, page 1, 2, ... of a family shows.

    Raises ConfigError when there is no such page.
    """
    count = pages(figure_id, number_of_traits)
    if not 1 <= page <= count:
        raise ConfigError(f"{figure_id} has no page {page}. Ask for a page from 1 to {count}.")
    size = _family(figure_id).traits_per_page
    return slice((page - 1) * size, min(page * size, number_of_traits))


def _family(figure_id: str) -> Family:
    if figure_id not in FAMILIES:
        raise ConfigError(
            f"{figure_id} is not a family of figures. Use one of {', '.join(FAMILIES)}."
        )
    return FAMILIES[figure_id]
