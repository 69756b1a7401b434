"""Tables 1, 6 and 7: the images of each group, and the prompts."""

from __future__ import annotations

import pandas as pd

from vlmfair.errors import ContractError
from vlmfair.papers.lvlm_fairness.measure_rows import PAPER
from vlmfair.papers.lvlm_fairness.questions import UTKFACE_PROMPTS, Prompts, ReleasedForm
from vlmfair.papers.lvlm_fairness.study import (
    ATTRIBUTE_NAMES,
    DATASET_NAMES,
    Study,
    shown_group,
)
from vlmfair.provenance import sha256_of_text
from vlmfair.render.numbers import MISSING, format_count
from vlmfair.render.tables import Column, Table

# The attributes and groups in the order of the paper's Table 1.
_GROUPS = {
    "gender": ("Male", "Female"),
    "age": ("young", "old", "middle", "unknown"),
    "skin_tone": ("light", "dark", "medium", "unknown"),
    "race": ("white", "black", "asian", "indian", "others"),
}
_ASKED = {"facet": "Occupation", "utkface": "Attribute"}


def build_images(metrics: pd.DataFrame, study: Study) -> Table:
    """Table 1: images and groups of FACET and UTKFace."""
    found = metrics["metric"] == "images"
    rows = metrics[found & (metrics["paper"] == PAPER) & (metrics["experiment"] == "data")]
    if rows.empty:
        raise ContractError(
            "the metrics hold no numbers of images. Run the step that measures the data again."
        )
    counts = rows[rows["item"] == "all"].set_index(["dataset", "attribute", "group"])["value"]
    datasets = [name for name in DATASET_NAMES if name in counts.index.get_level_values(0)]
    spanner = "Demographic attributes"
    return Table(
        title="Images of each group in FACET and UTKFace",
        data=rows[["dataset", "attribute", "group", "item", "value"]].rename(
            columns={"item": "occupation", "value": "images"}
        ),
        columns=(
            Column("Dataset", align="left"),
            Column("Images / persons", align="left"),
            *(Column(ATTRIBUTE_NAMES[name], spanner, "left", 0.95) for name in _GROUPS),
            Column("Prediction", align="left"),
        ),
        rows=tuple(
            (
                DATASET_NAMES[dataset],
                # One person in each image.
                " / ".join([format_count(counts[dataset, "all", "all"])] * 2),
                *(_sizes(counts, dataset, attribute) for attribute in _GROUPS),
                _ASKED[dataset],
            )
            for dataset in datasets
        ),
        notes=(
            "FACET: images with exactly one annotated person of the 13 occupations and of known "
            "gender. UTKFace: all images with a readable label. The csv file also counts the "
            "groups of each occupation.",
            *(f"In the paper, {note}" for note in study.count_notes),
        ),
    )


def _sizes(counts: pd.Series, dataset: str, attribute: str) -> str:
    sizes = [
        f"{shown_group(group)} ({format_count(counts[dataset, attribute, group])})"
        for group in _GROUPS[attribute]
        if (dataset, attribute, group) in counts.index
    ]
    return ", ".join(sizes) or MISSING


def build_facet_prompts(metrics: pd.DataFrame, study: Study) -> Table:
    """Table 6: the prompts about FACET, with what stands for class and classes in brackets."""
    single = "Actual occupation in this image"
    asked = {"p1": ("Direct question", "All 52 occupation classes")}
    asked |= dict.fromkeys(study.prompts.choice, ("Single choice", single))
    texts = {
        name: study.prompts.text(name, "[FACET class]")
        if name in study.prompts.choice
        else _with_list(study.prompts, name, "FACET classes")
        for name in asked
    }
    return _prompt_table(
        "Prompts used on FACET",
        study,
        [(name, name, *asked[name], texts[name]) for name in asked],
        f"The tables show {study.direct} as the direct question and {study.choice} as the single "
        "choice. The class keeps its underscore, and “a” is never changed to “an”.",
    )


def build_utkface_prompts(metrics: pd.DataFrame, study: Study) -> Table:
    """Table 7: the prompts about UTKFace."""
    rows = []
    for number, name in enumerate(UTKFACE_PROMPTS, start=1):
        answers = f"{shown_group(name)} classes: [{', '.join(study.prompts.values[name])}]"
        text = _with_list(study.prompts, name, f"{shown_group(name)} classes")
        rows.append((name, f"p{number}", "Direct question", answers, text))
    return _prompt_table(
        "Prompts used on UTKFace",
        study,
        rows,
        "The paper’s section 4.3 calls these prompts single-choice; they are direct questions.",
    )


def _with_list(prompts: Prompts, name: str, stands_for: str) -> str:
    return prompts.direct[name].replace("{values}", stands_for)


def _prompt_table(
    title: str, study: Study, rows: list[tuple[str, str, str, str, str]], note: str
) -> Table:
    """Return a table of prompts from (prompt, shown name, kind, prediction, text)."""
    notes = [note, "The csv file has the exact texts that are sent, lists and classes filled in."]
    if study.style == "released":
        notes.append(
            f"Models of the families {', '.join(sorted(study.prompts.released))} are sent the "
            "texts in the frames of the authors’ scripts, which the csv file has as well."
        )
    return Table(
        title=title,
        data=_sent_texts(study, [row[0] for row in rows]),
        columns=(
            Column("Kind", align="left"),
            Column("Name", align="left"),
            Column("Prompt", align="left", width=2.6),
            Column("Prediction", align="left", width=1.1),
        ),
        rows=tuple((kind, shown, text, answers) for _, shown, kind, answers, text in rows),
        notes=tuple(notes),
        stubs=2,
    )


def _sent_texts(study: Study, names: list[str]) -> pd.DataFrame:
    """Return each exact text by prompt and family; single choices keep `{occupation}`."""
    forms: dict[str, ReleasedForm | None] = {"every": None}
    if study.style == "released":
        forms = {"others": None, **study.prompts.released}
    rows = []
    for name in names:
        for family, form in forms.items():
            text = study.prompts.text(name, "{occupation}", form)
            sent = form.frame.replace("{prompt}", text) if form else text
            rows.append((name, family, sent, sha256_of_text(sent)))
    return pd.DataFrame(rows, columns=["prompt", "family", "text", "sha256"])
