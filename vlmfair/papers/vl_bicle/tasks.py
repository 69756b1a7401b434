"""The names of VL-BICLE: its tasks, settings, shots and runs. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from vlmfair.errors import ConfigError

PAPER = "vl_bicle"
MALE, FEMALE, ALL = "Male", "Female", "all"
GENDERS = (MALE, FEMALE)
# First minus second (section 3.4): negative is male bias.
GAP = f"{MALE}-{FEMALE}"
GROUPS = (MALE, FEMALE, ALL, GAP)

ZERO_SHOT = "zero-shot"
RANDOM, MALE_ONLY, FEMALE_ONLY, BALANCED = "RS", "MS", "FS", "BS"
SAMPLED = (RANDOM, MALE_ONLY, FEMALE_ONLY, BALANCED)
BY_IMAGE, BY_TEXT = "SIIR", "SITR"
BALANCED_POOL = "/balanced"
RETRIEVED = (BY_IMAGE, BY_TEXT, BY_IMAGE + BALANCED_POOL, BY_TEXT + BALANCED_POOL)
SHOTS = (0, 2, 4, 6, 8)
RUNS = 5
REAL = "real"

PRONOUN, CAPTIONING, VQA = "pronoun", "captioning", "vqa"
POOL, QUERIES, EXAMPLE = "pool", "queries", "example"


@dataclass(frozen=True)
class Task:
    """What is asked of one dataset: `prompt` is pronoun, caption, direct or cot.

    `dataset` is the name in metrics, `samples` that of the table of samples.
    """

    name: str
    experiment: str
    dataset: str
    prompt: str
    samples: str

    @property
    def has_captions(self) -> bool:
        """Whether models write captions, which have a quality beside their gender."""
        return self.experiment == CAPTIONING

    @property
    def reveals(self) -> bool:
        """Whether answers may leave the gender open; visual questions do not ask for it."""
        return self.experiment != VQA


TASKS: Mapping[str, Task] = MappingProxyType(
    {
        task.name: task
        for task in (
            Task("visogender_oo", PRONOUN, "visogender_oo", "pronoun", "visogender"),
            Task("visogender_op", PRONOUN, "visogender_op", "pronoun", "visogender"),
            Task("coco_bias", CAPTIONING, "coco_bias", "caption", "coco_bias"),
            Task("dci", CAPTIONING, "dci", "caption", "dci"),
            Task("visual_cot_direct", VQA, "visual_cot", "direct", "visual_cot"),
            Task("visual_cot_cot", VQA, "visual_cot", "cot", "visual_cot"),
        )
    }
)


def task_named(name: str) -> Task:
    """Return a task by name; raises ConfigError on an unknown one."""
    if name not in TASKS:
        raise ConfigError(f"vl_bicle.tasks: {name} is no task. Use one of {', '.join(TASKS)}.")
    return TASKS[name]


def runs_of(setting: str, runs: int = RUNS) -> tuple[int, ...]:
    """Return the numbers of a setting's runs, from 1; what is not sampled has one run.

    Raises ConfigError on an unknown setting.
    """
    if setting in SAMPLED:
        return tuple(range(1, runs + 1))
    if setting in RETRIEVED or setting == ZERO_SHOT:
        return (1,)
    known = ", ".join((*SAMPLED, *RETRIEVED))
    raise ConfigError(f"vl_bicle.settings: {setting} is no setting. Use one of {known}.")


def file_name(setting: str) -> str:
    """Return a setting as part of a file's name: `SIIR/balanced` -> `SIIR_balanced`."""
    return setting.replace("/", "_")
