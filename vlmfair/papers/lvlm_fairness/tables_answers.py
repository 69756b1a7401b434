"""Tables of answers that give no class: unparsed and refused ones, by group."""

from __future__ import annotations

import pandas as pd

from vlmfair.papers.lvlm_fairness.cells import SMALL, Cell, Cells
from vlmfair.papers.lvlm_fairness.measure_rows import ATTRIBUTES, setting_of
from vlmfair.papers.lvlm_fairness.notes import images_note
from vlmfair.papers.lvlm_fairness.questions import FINAL, UTKFACE_PROMPTS
from vlmfair.papers.lvlm_fairness.study import (
    ATTRIBUTE_NAMES,
    DATASET_NAMES,
    JUDGE_NAMES,
    PROMPT_NAMES,
    Study,
    known_groups,
    shown_group,
)
from vlmfair.render.numbers import format_count, format_number
from vlmfair.render.tables import Column, Table

_KINDS = {"unparsed_rate": "unparsed", "refused_rate": "refused"}


def build_invalid(metrics: pd.DataFrame, study: Study, *, dataset: str) -> Table:
    """Per model and question of a dataset: per cent of unparsed and refused answers by group."""
    cells = Cells(metrics, study)
    cells.require(study.models_of(dataset), dataset, "unparsed_rate")
    asked = _questions(study, dataset)
    attributes = ATTRIBUTES[dataset]
    rows = []
    for model in study.models:
        for experiment, prompt in asked:
            if model not in study.models_of(experiment):
                continue
            for metric, kind in _KINDS.items():
                texts = _row(cells, metric, model, experiment, prompt, attributes)
                rows.append((study.title(model), PROMPT_NAMES[prompt], kind, *texts))
    reader = JUDGE_NAMES[study.counting_judge]
    return Table(
        title=f"Per cent of unparsed and refused answers by group, {DATASET_NAMES[dataset]}",
        data=cells.data(),
        columns=(
            Column("Model", align="left"),
            Column("Question", align="left"),
            Column("Answers", align="left"),
            Column("All"),
            *(
                Column(shown_group(group), ATTRIBUTE_NAMES[attribute])
                for attribute in attributes
                for group in known_groups(attribute)
            ),
            Column("Failed"),
        ),
        rows=tuple(rows),
        notes=(
            f"Per cent of the answers, as the {reader} finds them. unparsed: no class that was "
            "offered, or more than one. refused: the model says that it cannot or will not answer. "
            "Failed: number of questions that got no answer for a technical reason; they are left "
            "out of every other number.",
            *images_note(cells, dataset),
            *(
                ["Groups are compared in the attribute that is asked about."]
                * (dataset == "utkface")
            ),
            *(
                [f"{SMALL} fewer than {study.small_cell} images."]
                * any(text.endswith(SMALL) for row in rows for text in row)
            ),
        ),
        stubs=3,
    )


def _questions(study: Study, dataset: str) -> list[tuple[str, str]]:
    if dataset == "utkface":
        return [("utkface", prompt) for prompt in UTKFACE_PROMPTS]
    return [("facet", study.direct), ("facet", study.choice), ("rationale", FINAL)]


def _row(
    cells: Cells,
    metric: str,
    model: str,
    experiment: str,
    prompt: str,
    attributes: tuple[str, ...],
) -> list[str]:
    setting = setting_of(cells.study.counting_judge)
    keys = {"experiment": experiment, "setting": setting}
    found = [cells.show(metric, model, prompt, **keys)]
    found += [
        cells.show(metric, model, prompt, group, attribute=attribute, **keys)
        for attribute in attributes
        for group in known_groups(attribute)
    ]
    failed = cells.show("dropped_answers", model, prompt, **keys)
    return [*(_percent(cells, cell) for cell in found), format_count(failed.value)]


def _percent(cells: Cells, cell: Cell) -> str:
    text = format_number(100 * cell.value, 1)
    return f"{text} {SMALL}" if cell.known and cells.is_small(cell) else text
