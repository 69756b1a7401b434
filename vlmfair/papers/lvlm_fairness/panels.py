"""Judged answers as arrays: one population of images, and one panel per prompt and judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vlmfair.errors import ContractError
from vlmfair.papers.lvlm_fairness.measure_rows import GROUPS
from vlmfair.papers.lvlm_fairness.questions import OCCUPATIONS
from vlmfair.stats.moments import Codes

Flags = NDArray[np.bool_]
# In the order of rows about single choices.
ANSWERS = ("Yes", "No", "Unknown", "unparsed", "refused")
_LABEL_ORDER = (*OCCUPATIONS, *(group.lower() for groups in GROUPS.values() for group in groups))


@dataclass(frozen=True)
class Grouping:
    """Which group of an attribute each image belongs to: `codes[image]`, -1 for none."""

    attribute: str
    groups: tuple[str, ...]
    codes: Codes


@dataclass(frozen=True)
class Population:
    """The judged images of one dataset in order of their ids, with groups and items.

    `items[item_codes[image]]` is the image's occupation; a dataset without any has the item `all`.
    """

    dataset: str
    sample_ids: tuple[str, ...]
    groupings: Mapping[str, Grouping]
    items: tuple[str, ...]
    item_codes: Codes

    @property
    def whole(self) -> Grouping:
        """All images as one group."""
        return Grouping("all", ("all",), np.zeros(len(self.sample_ids), np.int64))


@dataclass(frozen=True)
class Panel:
    """The answers to one prompt as one judge reads them, [images].

    `asked` were put to the model and `answered` did not fail; `valid` answers are neither unparsed
    nor refused. `truth` and `predicted` are places in `labels`, the right answers that occur; -1
    for any other answer.
    """

    experiment: str
    prompt: str
    judge: str
    asked: Flags
    answered: Flags
    valid: Flags
    right: Flags
    refused: Flags
    labels: tuple[str, ...]
    truth: Codes
    predicted: Codes
    choices: Codes | None

    def included(self, invalid: str) -> Flags:
        """Return which images count: those answered, only with valid answers for `excluded`."""
        return self.answered if invalid == "wrong" else self.answered & self.valid


def load_population(
    dataset: str, samples: pa.Table, judgements: Sequence[pa.Table], attributes: Sequence[str]
) -> Population:
    """Return the images that any of the judgements is about.

    `samples` follows the SAMPLES contract. Raises ContractError on a judged image without a sample.
    """
    rows = {row["sample_id"]: row for row in samples.to_pylist()}
    judged = sorted({sample for table in judgements for sample in table["sample_id"].to_pylist()})
    unknown = next((sample for sample in judged if sample not in rows), None)
    if unknown is not None:
        raise ContractError(
            f"lvlm_fairness: {unknown} was judged and is not among the samples of {dataset}. "
            f"Run the steps from planning on again."
        )
    people = [rows[sample] for sample in judged]
    groupings = {
        name: Grouping(name, GROUPS[name], _codes([p[name] for p in people], GROUPS[name]))
        for name in attributes
    }
    found = {person["occupation"] for person in people}
    items = tuple(name for name in OCCUPATIONS if name in found) or ("all",)
    codes = _codes([person["occupation"] for person in people], items)
    if items == ("all",):
        codes = np.zeros(len(people), np.int64)
    return Population(dataset, tuple(judged), groupings, items, codes)


def _codes(values: Sequence[str | None], names: Sequence[str]) -> Codes:
    places = {name: place for place, name in enumerate(names)}
    return np.array([places.get(value or "", -1) for value in values], np.int64)


def load_panels(population: Population, judgements: pa.Table, judge: str) -> list[Panel]:
    """Return one panel per prompt of a JUDGEMENTS table, prompts in order of their names.

    Raises ContractError when one image was judged twice with the same prompt.
    """
    columns = {
        name: judgements[name].to_pylist()
        for name in ("experiment", "prompt", "sample_id", "truth", "predicted", "status")
    }
    prompts = np.array(columns["prompt"], dtype=object)
    place = {sample: row for row, sample in enumerate(population.sample_ids)}
    panels = []
    for prompt in sorted(set(columns["prompt"])):
        rows = np.flatnonzero(prompts == prompt)
        images = np.array([place[columns["sample_id"][row]] for row in rows], np.int64)
        if len(set(images.tolist())) != len(images):
            raise ContractError(
                f"lvlm_fairness: {judge} judged one image twice for {prompt}. "
                f"Delete the judgements of this model and run again."
            )
        chosen = {name: [values[row] for row in rows] for name, values in columns.items()}
        panels.append(_panel(population, images, chosen, judge))
    return panels


def _panel(
    population: Population,
    images: Codes,
    chosen: Mapping[str, Sequence[str | None]],
    judge: str,
) -> Panel:
    total = len(population.sample_ids)
    status = np.array(chosen["status"], dtype=object)
    truths, predicted = chosen["truth"], chosen["predicted"]
    labels = tuple(sorted({str(name) for name in truths}, key=_label_rank))
    right = [said is not None and said == true for said, true in zip(predicted, truths)]
    is_choice = labels == ("Yes",)
    choices = [said or state for said, state in zip(predicted, chosen["status"])]
    return Panel(
        experiment=str(chosen["experiment"][0]),
        prompt=str(chosen["prompt"][0]),
        judge=judge,
        asked=_spread(np.ones(len(images), bool), images, total, False),
        answered=_spread(status != "error", images, total, False),
        valid=_spread(status == "ok", images, total, False),
        right=_spread(np.array(right, bool), images, total, False),
        refused=_spread(status == "refused", images, total, False),
        labels=labels,
        truth=_spread(_codes(truths, labels), images, total, -1),
        predicted=_spread(_codes(predicted, labels), images, total, -1),
        choices=_spread(_codes(choices, ANSWERS), images, total, -1) if is_choice else None,
    )


def _label_rank(label: str) -> tuple[int, str]:
    known = label in _LABEL_ORDER
    return (_LABEL_ORDER.index(label) if known else len(_LABEL_ORDER), label)


def _spread(values: NDArray[np.generic], images: Codes, total: int, empty: object) -> NDArray:
    filled = np.full(total, empty, dtype=values.dtype)
    filled[images] = values
    return filled
