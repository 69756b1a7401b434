"""The printed numbers of the paper, looked up by place, and the counts behind its recalls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import ceil, floor

from vlmfair.audit.cells import NOT_MEASURED, Cell, by_key
from vlmfair.audit.published import rounds_to
from vlmfair.audit.rows import compare
from vlmfair.errors import ConfigError

row = partial(compare, "lvlm_fairness")

# Section 4.1, in the order of Table 2.
BASELINES = ("CLIP", "ViT")
LVLMS = (
    "GPT-4o",
    "Gemini 1.5 Pro",
    "LLaVA-1.5 (7B)",
    "LLaVA-1.5 (13B)",
    "ShareGPT4V (7B)",
    "ShareGPT4V (13B)",
    "MiniCPM-V (8B)",
    "LLaVA-1.6 (34B)",
    "Llama-3.2-V (11B)",
)
# Other names in print. There is no ShareGPT4V of 34B; the numbers under it are those of 13B.
OTHER_NAMES = {
    "Gemini1.5Pro": "Gemini 1.5 Pro",
    "Gimini 1.5 Pro": "Gemini 1.5 Pro",
    "ShareGPT4V(13B)": "ShareGPT4V (13B)",
    "ShareGPT4V (34B)": "ShareGPT4V (13B)",
}
DIRECT, SINGLE_CHOICE = "p1", "p2"
PROMPTS = (DIRECT, SINGLE_CHOICE)


@dataclass(frozen=True)
class Attribute:
    """An attribute of FACET: the panel that shows it, its name in Table 1, and its groups.

    The disparity is that of the first group and the last.
    """

    panel: str
    name: str
    groups: tuple[str, ...]

    @property
    def disparity(self) -> str:
        """The column of the group disparity."""
        return f"GD_{self.groups[0]}-{self.groups[-1]}"


GENDER = Attribute("a", "Gender", ("Male", "Female"))
SKIN_TONE = Attribute("b", "Skin Tone", ("Light", "Medium", "Dark"))
AGE = Attribute("c", "Age", ("Young", "Middle", "Old"))
ATTRIBUTES = (GENDER, SKIN_TONE, AGE)


def known_name(name: str) -> str:
    """Return the name of section 4.1 for any name that the paper prints."""
    return OTHER_NAMES.get(name, name)


def count_of(share: Cell, people: int) -> int | None:
    """Return the count whose share of `people` rounds to the printed one; None if there is none."""
    exact = share.number * people
    for count in (floor(exact), ceil(exact)):
        if rounds_to(count / people, share.number, share.decimals):
            return count
    return None


@dataclass(frozen=True)
class PaperNumbers:
    """The cells of the paper, and the numbers of people and of right answers behind them."""

    cells: tuple[Cell, ...]

    @cached_property
    def _printed(self) -> dict[tuple[str, str, str, str], Cell]:
        return by_key(self.cells)

    def cell(self, place: str, model: str, prompt: str, column: str) -> Cell:
        """Return one measured cell; ConfigError if the published numbers lack it."""
        try:
            return self._printed[place, model, prompt, column]
        except KeyError:
            raise ConfigError(
                f"resources/published/lvlm_fairness.csv: the cell {place}, {model}, {prompt}, "
                f"{column} is missing. Restore it from the repository."
            ) from None

    def of(self, *places: str) -> list[Cell]:
        """Return the measured cells of tables, panels or sections, in print order."""
        return [cell for cell in self.cells if cell.place in places and cell.value != NOT_MEASURED]

    def rows_of(self, place: str) -> list[tuple[str, str]]:
        """Return the models of a table with each prompt they were measured with."""
        return list(dict.fromkeys((cell.model, cell.prompt) for cell in self.of(place)))

    def people(self, name: str, dataset: str = "FACET") -> int:
        """Return a number of Table 1: `Persons`, `Gender Male`."""
        return int(self.cell(f"Table 1 {dataset}", "", "", name).number)

    def group_size(self, attribute: Attribute, group: str) -> int:
        """Return how many people of FACET are in a group."""
        return self.people(f"{attribute.name} {group}")

    def right(self, model: str, prompt: str, attribute: Attribute, group: str) -> int:
        """Return how many answers about a group are right, from the recall in Table 2."""
        place = f"Table 2{attribute.panel}"
        recall = self.cell(place, known_name(model), prompt, f"R_{group}")
        return round(recall.number * self.group_size(attribute, group))

    def right_in_total(self, model: str, prompt: str) -> int:
        """Return how many answers are right about all people, whose gender is always known."""
        return sum(self.right(model, prompt, GENDER, group) for group in GENDER.groups)

    def recall(self, model: str, prompt: str, attribute: Attribute, group: str) -> float:
        """Return a recall of Table 2 before it was rounded."""
        return self.right(model, prompt, attribute, group) / self.group_size(attribute, group)

    def disparity(self, model: str, prompt: str, attribute: Attribute) -> float:
        """Return a group disparity of Table 2 before it was rounded."""
        first, last = attribute.groups[0], attribute.groups[-1]
        return self.recall(model, prompt, attribute, first) - self.recall(
            model, prompt, attribute, last
        )


def difference_of_printed(first: Cell, second: Cell) -> str:
    """Return the difference of two printed numbers with their decimals, never as -0."""
    decimals = first.decimals
    difference = round(first.number - second.number, decimals)
    return f"{difference or 0.0:.{decimals}f}"


def listed(names: Sequence[str]) -> str:
    """Return names as one text; `none` for an empty list."""
    return "; ".join(names) or "none"
