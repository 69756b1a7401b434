"""Tables 8 to 12: accuracy by encoder, disparity by occupation, disparity in balanced samples."""

from __future__ import annotations

import pandas as pd

from vlmfair.errors import ContractError
from vlmfair.papers.lvlm_fairness.cells import Cell, Cells
from vlmfair.papers.lvlm_fairness.measure_rows import PAIRS, pair_name, setting_of
from vlmfair.papers.lvlm_fairness.notes import CSV_NOTE, count_range, reader_note, sign_notes
from vlmfair.papers.lvlm_fairness.questions import OCCUPATIONS
from vlmfair.papers.lvlm_fairness.study import JUDGE_NAMES, Study, shown_group
from vlmfair.papers.lvlm_fairness.tables_recall import CHOICE_HEADING, DIRECT_HEADING
from vlmfair.render.numbers import MISSING, format_count, format_number
from vlmfair.render.tables import Column, Table

# Table 8's headings of the encoders.
_ENCODERS = {"regex": "RE", "clip_text": "CLIP", "sentence_t5": "T5", "strict": "Strict"}


def build_classes(metrics: pd.DataFrame, study: Study, *, attribute: str, kind: str) -> Table:
    """Tables 9, 10 and 11: disparity in each occupation, `kind` direct or choice.

    The numbers of images of both groups stand below, because some are very small.
    """
    cells = Cells(metrics, study)
    cells.require(study.models, "facet", "disparity")
    prompt = study.direct if kind == "direct" else study.choice
    pair = PAIRS[attribute][0]
    found = {
        model: [
            cells.show("disparity", model, prompt, pair_name(pair), name, attribute=attribute)
            for name in OCCUPATIONS
        ]
        for model in study.models
    }
    rows = [
        (study.title(model), *(cells.text(cell) for cell in of_model))
        for model, of_model in found.items()
    ]
    signs = sign_notes(rows, study, " with Holm’s correction over the classes")
    counts = [_image_row(cells, prompt, attribute, group) for group in pair]
    first, second = (shown_group(group) for group in pair)
    names = f"{DIRECT_HEADING if kind == 'direct' else CHOICE_HEADING}"
    return Table(
        title=f"Disparity between {first.lower()} and {second.lower()} people by occupation, "
        f"{names.lower()}",
        data=cells.data(),
        columns=(
            Column("Model", align="left"),
            *(Column(name) for name in OCCUPATIONS),
        ),
        rows=(*rows, *counts),
        notes=(
            f"GD: recall of {first} minus recall of {second} within the class; above 0 it favours "
            f"{first}.",
            reader_note(study),
            *signs,
            CSV_NOTE,
            *_empty_note([cell for of_model in found.values() for cell in of_model]),
        ),
    )


def _image_row(cells: Cells, prompt: str, attribute: str, group: str) -> tuple[str, ...]:
    """Return a row with how many images of a group each occupation has."""
    counts = []
    for name in OCCUPATIONS:
        found = [
            cells.show("recall", model, prompt, group, name, attribute=attribute).n
            for model in cells.study.models
        ]
        counts.append(count_range(found))
    return (f"Images, {shown_group(group)}", *counts)


def _empty_note(cells: list[Cell]) -> list[str]:
    if all(cell.known for cell in cells):
        return []
    return [
        f"{MISSING}: one of the groups has no image of the class, so that nothing can be compared."
    ]


def build_encoders(metrics: pd.DataFrame, study: Study) -> Table:
    """Table 8: accuracy by who reads the answers, the paper's three encoders and our own reader."""
    cells = Cells(metrics, study)
    cells.require(study.models, "facet", "accuracy")
    rows = [
        (
            study.title(model),
            *(
                cells.text(
                    cells.show(
                        *("accuracy", model, prompt), setting=setting_of(judge, study.invalid)
                    )
                )
                for prompt in (study.direct, study.choice)
                for judge in _ENCODERS
            ),
        )
        for model in study.models
    ]
    data = cells.data()
    absent = [JUDGE_NAMES[judge] for judge in _ENCODERS if judge not in study.judges]
    return Table(
        title="Accuracy by encoder of the answers",
        data=data,
        columns=(
            Column("Model", align="left"),
            *(
                Column(f"Acc {name}", spanner)
                for spanner in (DIRECT_HEADING, CHOICE_HEADING)
                for name in _ENCODERS.values()
            ),
        ),
        rows=tuple(rows),
        notes=(
            f"Share of right answers, n = {count_range(data['n'])} FACET images. RE: regular "
            "expression. CLIP: text encoder of CLIP. T5: Sentence-T5. Strict: option letter, "
            "leading word or only class that is named (not in the paper).",
            "The encoders take the nearest class whatever the answer says, so that no answer is "
            "unparsed for them.",
            *([f"{MISSING}: not part of this run: {', '.join(absent)}."] * bool(absent)),
        ),
    )


def build_resampling(metrics: pd.DataFrame, study: Study) -> Table:
    """Table 12: gender disparity of all images, and its mean and error in balanced samples."""
    cells = Cells(metrics, study)
    cells.require(study.models, "resampling", "disparity")
    sizes = sample_sizes(cells)
    rows, smallest = [], []
    for model in study.models:
        raw = _resampled(cells, "disparity", model, "raw")
        smallest.append(raw.n)
        texts = [cells.text(raw)]
        for size in sizes:
            mean = _resampled(cells, "disparity", model, size)
            error = _resampled(cells, "standard_error", model, size)
            texts += [cells.text(mean), format_number(error.value, 4) if mean.known else MISSING]
        rows.append((study.title(model), *texts))
    return Table(
        title="Gender disparity in balanced samples of different sizes",
        data=cells.data(),
        columns=(
            Column("Model", align="left"),
            Column("Raw"),
            *(
                Column(name, f"Sample {format_count(int(size))}")
                for size in sizes
                for name in ("Avg", "Error")
            ),
        ),
        rows=tuple(rows),
        notes=(
            f"Male minus Female recall with the {CHOICE_HEADING.lower()}. Raw: all images. Sample: "
            f"so many images of each gender, drawn without replacement {study.draws} times; Avg is "
            "the mean and Error the standard error of the mean over the draws.",
            *sign_notes(rows, study),
            CSV_NOTE,
            *_too_large(rows, smallest),
            f"Answers are read by the {JUDGE_NAMES[study.table_judge]}; invalid ones count as "
            "wrong.",
        ),
    )


def sample_sizes(cells: Cells) -> list[str]:
    """Return the sizes of the balanced samples, smallest first; raises ContractError on none."""
    sizes = [item for item in cells.items("resampling", "disparity") if item.isdigit()]
    if not sizes:
        raise ContractError(
            "the metrics hold no balanced samples. Name sample sizes in the config, and measure "
            "again."
        )
    return sorted(sizes, key=int)


def _resampled(cells: Cells, metric: str, model: str, item: str) -> Cell:
    return cells.show(
        *(metric, model, cells.study.choice, pair_name(PAIRS["gender"][0]), item),
        attribute="gender",
        experiment="resampling",
        setting=setting_of(cells.study.table_judge),
    )


def _too_large(rows: list[tuple[str, ...]], smallest: list[float]) -> list[str]:
    if not any(MISSING in row[1:] for row in rows):
        return []
    return [
        f"{MISSING}: the sample would be larger than the smaller gender, which has "
        f"{count_range(smallest)} images."
    ]
