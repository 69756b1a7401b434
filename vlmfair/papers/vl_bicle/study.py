"""What tables and figures of the paper must know beside the metrics, and what they call things."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from vlmfair.audit.published import Published
from vlmfair.errors import ConfigError
from vlmfair.papers.vl_bicle.tasks import (
    FEMALE,
    MALE,
    REAL,
    RETRIEVED,
    RUNS,
    SAMPLED,
    SHOTS,
    TASKS,
    VQA,
    Task,
    task_named,
)

DATASET_NAMES = {
    "visogender_oo": "VisoGender-OO",
    "visogender_op": "VisoGender-OP",
    "coco_bias": "COCOBias",
    "dci": "DCI",
    "visual_cot": "VisualCoT",
}
TASK_NAMES = {
    "visogender_oo": "VisoGender-OO",
    "visogender_op": "VisoGender-OP",
    "coco_bias": "COCOBias",
    "dci": "DCI",
    "visual_cot_direct": "VisualCoT, direct",
    "visual_cot_cot": "VisualCoT, CoT",
}
SETTING_NAMES = {
    "zero-shot": "Zero-shot",
    "RS": "RS",
    "MS": "MS",
    "FS": "FS",
    "BS": "BS",
    "SIIR": "SIIR",
    "SITR": "SITR",
    "SIIR/balanced": "SIIR, balanced pool",
    "SITR/balanced": "SITR, balanced pool",
}
# How demonstrations are chosen, for notes and legends.
SETTING_MEANINGS = {
    "RS": "random",
    "MS": "men only",
    "FS": "women only",
    "BS": "men and women in turn",
    "SIIR": "by similarity of images",
    "SITR": "by similarity of image and text",
}
SOURCE_NAMES = {REAL: "COCOBias", "flux": "FLUX", "sd35l": "SD35L"}
# The judges of visual questions, as the items of metrics.
JUDGES = ("lexical", "llm")
# The numbers of shots of the paper's Table 4 and of what it says about drawn images.
SYNTHETIC_SHOTS = (4, 8)
# How tables and figures write the error rates of the groups.
ERROR_SIGNS = {MALE: "ER_m", FEMALE: "ER_f", "all": "ER_o", "Male-Female": "ER_m−f"}


@dataclass(frozen=True)
class Demonstration:
    """One image of a sequence with what its answer says."""

    image: str
    text: str
    gender: str


@dataclass(frozen=True)
class DemonstrationSequence:
    """The demonstrations of one context in their order, with the image of the query behind them.

    `query` is None where no query was given.
    """

    setting: str
    demonstrations: tuple[Demonstration, ...]
    query: Demonstration | None = None


@dataclass(frozen=True)
class DrawnImage:
    """One caption with the images of it by their source: `real` and the generators."""

    caption: str
    gender: str
    images: Mapping[str, str]


@dataclass(frozen=True)
class WordList:
    """One gender's words by their part: singular, plural, pronoun."""

    gender: str
    words: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Study:
    """The models in their order, what was asked of them, and what beside metrics is shown.

    `vqa_models` were asked the visual questions, `synthetic_models` also shown drawn images, whose
    generators are `sources`, called by their `source_titles`. `claim_models` are those that count
    where the paper speaks of all models. `judge` is that of visual questions,
    `lexical` or `llm`, and `judge_model` the name of the language model. `max_new_tokens` is how
    long answers may be, by prompt. `published` are numbers of the paper's text, `claims` is the
    table of findings, `funnels` has what is left of each dataset after each filter. `sequences` are
    the demonstrations of the first run on COCOBias, `drawn` captions with their images;
    `word_lists`, `collective` and `phrases` are the words of Table 5, of which `word_list` names
    the list.
    """

    models: tuple[str, ...]
    titles: Mapping[str, str] = field(default_factory=dict)
    shots: tuple[int, ...] = SHOTS
    settings: tuple[str, ...] = SAMPLED
    retrieval: tuple[str, ...] = RETRIEVED
    runs: int = RUNS
    tasks: tuple[str, ...] = tuple(TASKS)
    vqa_models: tuple[str, ...] | None = None
    synthetic_models: tuple[str, ...] | None = None
    claim_models: tuple[str, ...] | None = None
    sources: tuple[str, ...] = ("flux", "sd35l")
    source_titles: Mapping[str, str] = field(default_factory=dict)
    judge: str = "lexical"
    judge_model: str = ""
    clip_backbone: str = ""
    bleu_signature: str = ""
    alpha: float = 0.05
    word_list: str = "recommended"
    max_new_tokens: Mapping[str, int] = field(default_factory=dict)
    published: tuple[Published, ...] = ()
    funnels: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    claims: pd.DataFrame = field(default_factory=pd.DataFrame)
    sequences: tuple[DemonstrationSequence, ...] = ()
    drawn: tuple[DrawnImage, ...] = ()
    word_lists: tuple[WordList, ...] = ()
    collective: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shown = [self.title(model) for model in self.models]
        if len(set(shown)) < len(shown):
            raise ConfigError(
                "two models have the same title. Give each its own in the sheet of models."
            )
        if self.judge not in JUDGES:
            raise ConfigError(
                f"vl_bicle.judge is {self.judge!r}. Write one of {', '.join(JUDGES)}."
            )
        for name in self.tasks:
            task_named(name)

    def title(self, model: str) -> str:
        """Return how tables and figures call a model."""
        return self.titles.get(model) or model

    def models_of(self, task: str | Task) -> tuple[str, ...]:
        """Return the models that were asked a task, in their order."""
        own = task_named(task) if isinstance(task, str) else task
        if own.experiment == VQA and self.vqa_models is not None:
            return tuple(model for model in self.models if model in self.vqa_models)
        return self.models

    @property
    def mitigated(self) -> tuple[str, ...]:
        """The models that were also shown drawn demonstrations, in their order."""
        if self.synthetic_models is None:
            return self.models
        return tuple(model for model in self.models if model in self.synthetic_models)

    @property
    def counted(self) -> tuple[str, ...]:
        """The models that sentences about all models are compared with, in their order."""
        if self.claim_models is None:
            return self.models
        return tuple(model for model in self.models if model in self.claim_models)

    @property
    def shown_tasks(self) -> tuple[Task, ...]:
        """The tasks of the run, in the order of the paper."""
        return tuple(task for name, task in TASKS.items() if name in self.tasks)

    @property
    def image_sources(self) -> tuple[str, ...]:
        """Where images of demonstrations come from: photographs first, then the generators."""
        return (REAL, *self.sources)

    @property
    def judge_text(self) -> str:
        """Who judged the answers to visual questions, in a sentence."""
        if self.judge == "lexical":
            return "the words that they share with the right one, not by the paper’s language model"
        return self.judge_model or "a language model"

    @property
    def judge_sign(self) -> str:
        """The judge in headings."""
        if self.judge == "lexical":
            return "lexical judge"
        return f"judge {self.judge_model}" if self.judge_model else "language model as judge"

    def setting_name(self, setting: str) -> str:
        """Return how tables and figures call a setting."""
        return SETTING_NAMES.get(setting, setting)

    def source_name(self, source: str) -> str:
        """Return how tables and figures call the source of images."""
        return self.source_titles.get(source) or SOURCE_NAMES.get(source, source)
