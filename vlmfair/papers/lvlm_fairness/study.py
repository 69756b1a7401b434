"""What tables and figures of the paper must know beside the metrics, and what they call things."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vlmfair.errors import ConfigError
from vlmfair.papers.lvlm_fairness.measure_rows import GROUPS, INVALID, SMALL_CELL, setting_of
from vlmfair.papers.lvlm_fairness.questions import FINAL, Prompts

# The setting of the metrics of CLIP and ViT, which classify the image without any text to read.
CLASSIFIER = "classifier"
ATTRIBUTE_NAMES = {"gender": "Gender", "skin_tone": "Skin tone", "age": "Age", "race": "Race"}
DATASET_NAMES = {"facet": "FACET", "utkface": "UTKFace"}
# In the order of Table 8, the project's own reader last.
JUDGE_NAMES = {
    "regex": "regular expression",
    "clip_text": "text encoder of CLIP",
    "sentence_t5": "Sentence-T5",
    "strict": "strict reader",
}
PROMPT_NAMES = {
    "p1": "Direct question",
    "p2": "Single choice",
    "p3": "Single choice (p3)",
    FINAL: "After the rationale",
    "gender": "Gender",
    "race": "Race",
}


@dataclass(frozen=True)
class Study:
    """The models in their order, the prompts, and how answers were read.

    `baselines` stand above `models` where the paper shows them. `asked` gives the models of the
    experiments that not all of them have. `table_judge` and `invalid` say whose readings the tables
    show and what becomes of invalid answers. `examples` are what `worked_example` returns,
    `sub_questions` those of the run by occupation, and `count_notes` what is known to be wrong in
    the paper's Table 1. Groups with fewer images than `small_cell` are flagged.
    """

    models: tuple[str, ...]
    prompts: Prompts
    table_judge: str
    judges: tuple[str, ...]
    baselines: tuple[str, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    invalid: str = "wrong"
    style: str = "paper"
    direct: str = "p1"
    choice: str = "p2"
    alpha: float = 0.05
    small_cell: int = SMALL_CELL
    draws: int = 20
    examples: tuple[Mapping[str, Any], ...] = ()
    sub_questions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    count_notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shown = [self.title(model) for model in (*self.baselines, *self.models)]
        if len(set(shown)) < len(shown):
            raise ConfigError(
                "two models have the same title. Give each its own in the sheet of models."
            )
        if self.invalid not in INVALID:
            raise ConfigError(
                f"lvlm_fairness.invalid is {self.invalid!r}. Write one of {', '.join(INVALID)}."
            )
        if self.table_judge not in self.judges:
            raise ConfigError(
                f"lvlm_fairness.table_judge is {self.table_judge!r}, which is not among the judges "
                f"of the run. Use one of {', '.join(self.judges)}."
            )

    def title(self, model: str) -> str:
        """Return how tables and figures call a model."""
        return self.titles.get(model) or model

    def models_of(self, experiment: str) -> tuple[str, ...]:
        """Return the models that have an experiment, in their order."""
        return self.asked.get(experiment, self.models)

    def setting(self, model: str, judge: str = "", invalid: str = "") -> str:
        """Return the setting of a model's rows: the judge of the tables unless another is named."""
        reader = CLASSIFIER if model in self.baselines else judge or self.table_judge
        return setting_of(reader, invalid or self.invalid)

    @property
    def other_handling(self) -> str:
        """What could become of invalid answers, and does not in the tables."""
        return "excluded" if self.invalid == "wrong" else "wrong"

    @property
    def counting_judge(self) -> str:
        """The judge by which unparsed and refused answers are counted: encoders find none."""
        return "strict" if "strict" in self.judges else self.table_judge


def shown_group(group: str) -> str:
    """Return a group, or the pair of a disparity, as a reader expects it: `Light-Dark`."""
    return "-".join(part.capitalize() for part in group.split("-"))


def known_groups(attribute: str) -> list[str]:
    """Return the groups of an attribute that are compared, in the order of the paper's columns."""
    return [group for group in GROUPS[attribute] if group != "unknown"]
