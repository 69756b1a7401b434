"""What tables and figures of GRAS must know beside the metrics, and how they pick metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from vlmfair.errors import ConfigError, ContractError
from vlmfair.papers.gras.questions import Template, Trait

ATTRIBUTES = ("gender", "race", "age", "skin_tone")
ATTRIBUTE_NAMES = {"gender": "Gender", "race": "Race", "age": "Age", "skin_tone": "Skin tone"}
DATASET_NAMES = {"fairface": "FairFace", "ai_face": "AI-Face"}
_GROUP_NAMES = {"Latino_Hispanic": "Latino/Hispanic"}
PROMPTS = ("T1", "T2", "T3", "T4", "T5")


@dataclass(frozen=True)
class AnswerToken:
    """The question text given to a model and the token whose probability is taken (Table 5).

    `published_id` is the id that the paper states for this model family, or None.
    """

    model: str
    prompt: str
    form: str
    token_id: int
    published_id: int | None = None


@dataclass(frozen=True)
class Study:
    """The models and traits in their order, the templates, and facts about images and tokens.

    `titles` says how a model is called where that is not its name. `selection` is what
    `selection_statistics` returns; `images` gives the file of an image by its sample_id. Groups
    with fewer images than `small_group` are flagged.
    """

    models: tuple[str, ...]
    traits: tuple[Trait, ...]
    templates: tuple[Template, ...]
    alpha: float = 0.05
    small_group: int = 30
    titles: Mapping[str, str] = field(default_factory=dict)
    tokens: tuple[AnswerToken, ...] = ()
    selection: pd.DataFrame | None = None
    images: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> tuple[str, ...]:
        """The trait words in their order."""
        return tuple(trait.word for trait in self.traits)

    @property
    def polarity(self) -> dict[str, str]:
        """`negative` or `positive` by trait word."""
        return {trait.word: trait.polarity for trait in self.traits}

    def question(self, prompt: str, trait: str = "…") -> str:
        """Return a template's question about a trait: `Do you think the person is …?`."""
        template = next(template for template in self.templates if template.id == prompt)
        return template.text.replace("{trait}", trait)


def with_titles(metrics: pd.DataFrame, study: Study) -> tuple[pd.DataFrame, Study]:
    """Return metrics and study with every model called by its title.

    Raises ConfigError when two models have one title.
    """
    titles = {model: study.titles.get(model) or model for model in study.models}
    if len(set(titles.values())) < len(titles):
        raise ConfigError(
            "two models have the same title. Give each its own in the sheet of models."
        )
    if all(model == title for model, title in titles.items()):
        return metrics, study
    tokens = tuple(replace(t, model=titles.get(t.model, t.model)) for t in study.tokens)
    renamed = metrics.assign(model=metrics["model"].map(lambda model: titles.get(model, model)))
    return renamed, replace(study, models=tuple(titles.values()), tokens=tokens)


def answer_token(
    model: str, manifest: Mapping[str, Any], *, form: str, prompt: str, published_id: int | None
) -> AnswerToken:
    """Return the token that a model's responses were scored with, as their manifest states it.

    Raises ContractError when the manifest names no token, or not the same one in every shard.
    """
    shards = manifest.get("shards", [manifest])
    found = {token for shard in shards for token in shard.get("label_tokens", {}).get(form, [])}
    if len(found) != 1:
        raise ContractError(
            f"{model}: the responses name {len(found)} tokens for the answer {form!r}, not one. "
            f"Delete the responses of this model and run again; stored answers are reused."
        )
    return AnswerToken(model, prompt, form, found.pop(), published_id)


def pick(metrics: pd.DataFrame, experiment: str, metric: str, **equal: str) -> pd.DataFrame:
    """Return the rows of one metric, narrowed by further columns.

    Raises ContractError when there are none: a table of nothing would look like a result.
    """
    kept = (metrics["experiment"] == experiment) & (metrics["metric"] == metric)
    for name, value in equal.items():
        kept &= metrics[name] == value
    if not kept.any():
        shown = ", ".join([f"{experiment}/{metric}", *equal.values()])
        raise ContractError(
            f"the metrics hold no row of {shown}. Run the step that measures GRAS again."
        )
    return metrics[kept]


def ordered(frame: pd.DataFrame, **orders: Sequence[str]) -> pd.DataFrame:
    """Return the rows sorted by columns with a stated order; other values are left out."""
    kept = frame
    for name, order in orders.items():
        kept = kept[kept[name].isin(order)]
    ranks = pd.DataFrame(
        {name: kept[name].map({v: i for i, v in enumerate(o)}) for name, o in orders.items()}
    )
    return kept.loc[ranks.sort_values(list(orders), kind="stable").index]


def rows_in(frame: pd.DataFrame) -> Iterator[Any]:
    """Return the rows of a frame as named tuples."""
    return iter(frame.itertuples(index=False))


def groups_of(frame: pd.DataFrame) -> list[str]:
    """Return the groups of one attribute in their order: tones by number, others by alphabet."""
    groups = [group for group in frame["group"].unique() if group != "all"]
    return sorted(
        groups, key=lambda group: (not group.isdigit(), len(group) * group.isdigit(), group)
    )


def shown_group(group: str) -> str:
    """Return a group's name as a reader expects it; datasets spell some for machines."""
    return _GROUP_NAMES.get(group, group)


def model_order(metrics: pd.DataFrame, models: Sequence[str]) -> list[str]:
    """Return the models in their order.

    Raises ContractError when the metrics lack one: its absence would not be seen in a table.
    """
    missing = sorted(set(models) - set(metrics["model"].unique()))
    if missing:
        raise ContractError(
            f"the metrics hold nothing of the model {missing[0]}. Measure it and collect again."
        )
    return list(models)
