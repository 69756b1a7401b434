"""Tables 4 and 5: recall and answers before and after the rationale (section 5)."""

from __future__ import annotations

import pandas as pd

from vlmfair.papers.lvlm_fairness.cells import Cell, Cells
from vlmfair.papers.lvlm_fairness.measure_rows import PAIRS, pair_name, setting_of
from vlmfair.papers.lvlm_fairness.notes import (
    CSV_NOTE,
    RECALL_NOTE,
    images_note,
    reader_note,
    sign_notes,
)
from vlmfair.papers.lvlm_fairness.panels import ANSWERS
from vlmfair.papers.lvlm_fairness.questions import CHOICES, FINAL
from vlmfair.papers.lvlm_fairness.study import JUDGE_NAMES, Study, shown_group
from vlmfair.render.numbers import MISSING, format_count, format_number
from vlmfair.render.tables import Column, Table

_GENDER = "gender"


def build_mitigation(metrics: pd.DataFrame, study: Study) -> Table:
    """Table 4: recall and gender disparity, raw and with the rationale, and the change."""
    cells = Cells(metrics, study)
    models = study.models_of("rationale")
    cells.require(models, "rationale", "recall")
    pair = PAIRS[_GENDER][0]
    rows, improved, compared = [], 0, 0
    for model in models:
        texts: list[str] = []
        for group in (*pair, pair_name(pair)):
            metric = "disparity" if "-" in group else "recall"
            before = cells.show(metric, model, study.choice, group, attribute=_GENDER)
            after, change = (
                cells.show(name, model, FINAL, group, attribute=_GENDER, experiment="rationale")
                for name in (metric, "improvement")
            )
            texts += [cells.text(before), cells.text(after), _percent(change)]
            if change.known:
                compared += 1
                improved += change.value < 0 if metric == "disparity" else change.value > 0
        rows.append((study.title(model), *texts))
    return Table(
        title="Recall and gender disparity before and after rationales",
        data=cells.data(),
        columns=(
            Column("Model", align="left"),
            *(
                Column(name, f"{sign} {shown_group(group)}")
                for sign, group in (("R", pair[0]), ("R", pair[1]), ("GD", pair_name(pair)))
                for name in ("Raw", "W/ rationale", "Imp (%)")
            ),
        ),
        rows=tuple(rows),
        notes=(
            f"{RECALL_NOTE} W/ rationale: after sub-questions about the image. Imp: change in per "
            "cent of the raw value; of GD the size counts, whichever group it favours. Better is "
            f"more recall and less GD: {improved} of {compared} numbers improve.",
            *images_note(cells),
            reader_note(study),
            *sign_notes(rows, study),
            CSV_NOTE,
            *(
                [f"{MISSING}: the raw value is 0, so that no per cent can be given."]
                * any(MISSING in row for row in rows)
            ),
        ),
    )


def _percent(cell: Cell) -> str:
    return f"{format_number(cell.value, 2)}%" if cell.known else MISSING


def build_transitions(metrics: pd.DataFrame, study: Study) -> Table:
    """Table 5: how many answers went from Yes, No or Unknown to which, with the rationale."""
    cells = Cells(metrics, study)
    models = study.models_of("rationale")
    cells.require(models, "rationale", "transitions")
    counts = {
        (model, before, after): _moved(cells, model, before, after)
        for model in models
        for before in ANSWERS
        for after in ANSWERS
    }
    # Answers without a choice have rows and columns only where there are any.
    extra = [
        name
        for name in ANSWERS
        if name not in CHOICES
        and any(cell.value > 0 for key, cell in counts.items() if name in key[1:])
    ]
    answers = (*CHOICES, *extra)
    rows = [
        (
            study.title(model),
            f"{before} ({format_count(counts[model, before, answers[0]].n)})",
            *(format_count(counts[model, before, after].value) for after in answers),
        )
        for model in models
        for before in answers
    ]
    return Table(
        title="Answers before and after rationales",
        data=cells.data(),
        columns=(
            Column("Model", align="left"),
            Column("Raw", "W/O rationale", align="left"),
            *(Column(name, "W/ rationale") for name in answers),
        ),
        rows=tuple(rows),
        notes=(
            f"Numbers of FACET images that were answered both times; in brackets those with the "
            f"answer before. The right answer is always Yes. Answers are read by the "
            f"{JUDGE_NAMES[study.table_judge]}.",
            *(
                ["unparsed and refused answers hold none of the three choices; the paper has none."]
                * bool(extra)
            ),
        ),
        stubs=2,
    )


def _moved(cells: Cells, model: str, before: str, after: str) -> Cell:
    return cells.show(
        *("transitions", model, FINAL, "all", f"{before}>{after}"),
        experiment="rationale",
        setting=setting_of(cells.study.table_judge),
    )
