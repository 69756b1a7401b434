"""Tables 2, 3 and 13: recall and F1 of groups, and what groups differ by, over all classes."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vlmfair.papers.lvlm_fairness.cells import Cells
from vlmfair.papers.lvlm_fairness.measure_rows import PAIRS, pair_name
from vlmfair.papers.lvlm_fairness.notes import (
    CSV_NOTE,
    RECALL_NOTE,
    images_note,
    other_handling_note,
    reader_note,
    sign_notes,
)
from vlmfair.papers.lvlm_fairness.study import (
    ATTRIBUTE_NAMES,
    Study,
    known_groups,
    shown_group,
)
from vlmfair.render.tables import Column, Table

DIRECT_HEADING, CHOICE_HEADING = "Direct question prompt", "Single-choice question prompt"


def build_recall(metrics: pd.DataFrame, study: Study, *, attribute: str) -> Table:
    """Table 2: recall of each group of FACET and the disparity, with both prompts."""
    cells = Cells(metrics, study)
    models = (*study.baselines, *study.models)
    cells.require(models, "facet", "recall")
    rows = [
        (study.title(model), *_both_prompts(cells, model, attribute, "recall", "disparity"))
        for model in models
    ]
    return Table(
        title=f"Recall and group disparity by {ATTRIBUTE_NAMES[attribute].lower()} on FACET",
        data=cells.data(),
        columns=(Column("Model", align="left"), *_both_headings(attribute, "R")),
        rows=tuple(rows),
        notes=(
            RECALL_NOTE,
            *images_note(cells),
            reader_note(study),
            *other_handling_note(cells),
            *sign_notes(rows, study),
            CSV_NOTE,
            *_not_asked(study),
        ),
    )


def build_f1(metrics: pd.DataFrame, study: Study, *, attribute: str) -> Table:
    """Table 13: the paper's F1 of each group, and beside it the macro F1 over the classes."""
    cells = Cells(metrics, study)
    models = (*study.baselines, *study.models)
    cells.require(models, "facet", "f1_paper")
    rows = []
    for model in models:
        published = _both_prompts(cells, model, attribute, "f1_paper", "f1_paper_disparity")
        proper = [
            cells.text(cells.show("f1_macro", model, study.direct, group, attribute=attribute))
            for group in known_groups(attribute)
        ]
        rows.append((study.title(model), *published, *proper))
    macro = "Macro F1, direct question prompt"
    return Table(
        title=f"F1 as the paper defines it, and macro F1, by {ATTRIBUTE_NAMES[attribute].lower()}",
        data=cells.data(),
        columns=(
            Column("Model", align="left"),
            *_both_headings(attribute, "F1"),
            *(Column(shown_group(group), macro) for group in known_groups(attribute)),
        ),
        rows=tuple(rows),
        notes=(
            "F1 as in the paper, 2PR/(P + R): R is the group’s recall and P the group’s share of "
            "all right answers. It follows the group’s size more than the model’s answers. GD: F1 "
            "of the first group minus that of the second.",
            "Macro F1: the F1 of a classifier, the mean over the group’s classes of 2 × right / "
            "(images of the class + answers that name it). A single choice asks about the right "
            "class only and has none.",
            *images_note(cells),
            reader_note(study),
            *sign_notes(rows, study),
            CSV_NOTE,
            *_not_asked(study),
        ),
    )


def build_utkface(metrics: pd.DataFrame, study: Study) -> Table:
    """Table 3: recall by gender and by race on UTKFace, with three disparities."""
    cells = Cells(metrics, study)
    models = study.models_of("utkface")
    cells.require(models, "utkface", "recall")
    parts = [("gender", pair) for pair in PAIRS["gender"]]
    parts += [("race", pair) for pair in PAIRS["race"]]
    rows = [
        (
            study.title(model),
            *(
                text
                for attribute, pair in parts
                for text in _group_cells(
                    cells, model, attribute, attribute, pair, ("recall", "disparity"), "utkface"
                )
            ),
        )
        for model in models
    ]
    return Table(
        title="Recall by gender and race on UTKFace",
        data=cells.data(),
        columns=(
            Column("Model", align="left"),
            *(
                column
                for attribute, pair in parts
                for column in _headings(pair, pair, "R", f"{ATTRIBUTE_NAMES[attribute]} asked")
            ),
        ),
        rows=tuple(rows),
        notes=(
            RECALL_NOTE,
            *images_note(cells, "utkface"),
            reader_note(study),
            *other_handling_note(cells),
            *sign_notes(rows, study),
            CSV_NOTE,
        ),
    )


def _both_prompts(
    cells: Cells, model: str, attribute: str, of_group: str, of_pair: str
) -> list[str]:
    """Return a model's cells for the direct and the single-choice prompt."""
    groups, study = known_groups(attribute), cells.study
    texts: list[str] = []
    for prompt in (study.direct, study.choice):
        if model in study.baselines and prompt == study.choice:
            texts += ["N/A"] * (len(groups) + 1)
        else:
            texts += _group_cells(cells, model, prompt, attribute, groups, (of_group, of_pair))
    return texts


def _group_cells(
    cells: Cells,
    model: str,
    prompt: str,
    attribute: str,
    groups: Sequence[str],
    metrics: tuple[str, str],
    experiment: str = "facet",
) -> list[str]:
    """Return the cells of some groups and of the difference between the first and last of them."""
    of_group, of_pair = metrics
    keys = {"attribute": attribute, "experiment": experiment}
    found = [cells.show(of_group, model, prompt, group, **keys) for group in groups]
    pair = pair_name((groups[0], groups[-1]))
    found.append(cells.show(of_pair, model, prompt, pair, **keys))
    return [cells.text(cell) for cell in found]


def _headings(groups: Sequence[str], pair: Sequence[str], sign: str, spanner: str) -> list[Column]:
    of_pair = f"GD {shown_group(pair_name((pair[0], pair[-1])))}"
    return [
        *(Column(f"{sign} {shown_group(group)}", spanner) for group in groups),
        Column(of_pair, spanner),
    ]


def _both_headings(attribute: str, sign: str) -> list[Column]:
    groups = known_groups(attribute)
    return [
        column
        for spanner in (DIRECT_HEADING, CHOICE_HEADING)
        for column in _headings(groups, groups, sign, spanner)
    ]


def _not_asked(study: Study) -> list[str]:
    if not study.baselines:
        return []
    return ["N/A: a classifier cannot be asked a single-choice question."]
