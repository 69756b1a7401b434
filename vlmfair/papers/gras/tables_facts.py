"""The tables of what was asked: templates, traits, prompts with their tokens, and images."""

from __future__ import annotations

import re
from itertools import zip_longest

import pandas as pd

from vlmfair.errors import ContractError
from vlmfair.papers.gras.study import ATTRIBUTE_NAMES, DATASET_NAMES, Study, rows_in, shown_group
from vlmfair.render.numbers import MISSING, format_count, format_number
from vlmfair.render.tables import Column, Table


def build_templates(metrics: pd.DataFrame, study: Study) -> Table:
    """Table 1: the five wordings of the question."""
    rows = [(t.id, t.category, t.text.replace("{trait}", "[trait]")) for t in study.templates]
    return Table(
        title="Templates used to generate questions",
        data=pd.DataFrame(rows, columns=["template", "category", "text"]),
        columns=(
            Column("", align="left"),
            Column("Category", align="left"),
            Column("Template", align="left"),
        ),
        rows=tuple(rows),
    )


def build_traits(metrics: pd.DataFrame, study: Study) -> Table:
    """Table 4: the trait words with their mean valence ratings, negative beside positive."""
    halves = [[t for t in study.traits if t.polarity == p] for p in ("negative", "positive")]
    rows = []
    for negative, positive in zip_longest(*halves):
        cells: list[str] = []
        for trait in (negative, positive):
            cells += (trait.word, format_number(trait.valence)) if trait else ("", "")
        rows.append(tuple(cells))
    negative_name, positive_name = (
        f"{name} ({len(half)})" for name, half in zip(("Negative", "Positive"), halves)
    )
    return Table(
        title="Trait words and their mean valence ratings",
        data=pd.DataFrame(
            [(t.word, t.valence, t.polarity) for t in study.traits],
            columns=["trait", "valence", "polarity"],
        ),
        columns=(
            Column("Trait", negative_name, "left"),
            Column("Rating", negative_name),
            Column("Trait", positive_name, "left"),
            Column("Rating", positive_name),
        ),
        rows=tuple(rows),
        notes=("Mean valence ratings by Britz et al. (2023), from −3 to 3.",),
    )


def build_tokens(metrics: pd.DataFrame, study: Study) -> Table:
    """Table 5: the prompt of each model and the answer token whose probability is taken."""
    if not study.tokens:
        raise ContractError(
            "no model's answer token is known. Run the models first; their responses state it."
        )
    return Table(
        title="Prompts and analysed token ids",
        data=pd.DataFrame(
            [(t.model, t.prompt, t.form, t.token_id, t.published_id) for t in study.tokens],
            columns=["model", "prompt", "form", "token_id", "published_id"],
        ).astype({"published_id": "Int64"}),
        columns=(
            Column("Model", align="left"),
            Column("Prompt", align="left", width=3.2),
            Column("Answer", align="left"),
            Column("Token id"),
            Column("Paper’s id"),
        ),
        rows=tuple(
            (
                token.model,
                spell_out_spaces(token.prompt),
                f"“{token.form}”",
                str(token.token_id),
                MISSING if token.published_id is None else str(token.published_id),
            )
            for token in study.tokens
        ),
        notes=(
            "A run of spaces in the text given to a model is shown as its length in brackets, a "
            "line break as [line break]. The csv file holds the exact text.",
        ),
    )


def spell_out_spaces(text: str) -> str:
    """Return a text with runs of two or more spaces and line breaks made visible."""
    shown = re.sub(" {2,}", lambda run: f" [{len(run[0])} spaces] ", text)
    return re.sub(r"\r\n|\r|\n", " [line break] ", shown)


_CELLS = "age x gender x race"
_SELECTION_NAMES = {"all": "All images", "source x skin_tone": "Source and skin tone"}


def build_selection(metrics: pd.DataFrame, study: Study) -> Table:
    """The images: how many were listed, used, missing and unreadable in each group."""
    if study.selection is None or study.selection.empty:
        raise ContractError(
            "the statistics of the image selection are empty. Run the step that selects images."
        )
    data = study.selection
    shown = data[data["attribute"] != _CELLS]
    cells = len(data) - len(shown)
    return Table(
        title="Images listed and used, by group",
        data=data,
        columns=(
            Column("Dataset", align="left"),
            Column("Attribute", align="left"),
            Column("Group", align="left"),
            *(Column(name) for name in ("Listed", "Used", "Missing", "Unreadable")),
        ),
        rows=tuple(
            (
                DATASET_NAMES.get(row.dataset, row.dataset),
                _SELECTION_NAMES.get(row.attribute) or ATTRIBUTE_NAMES[row.attribute],
                shown_group(row.group),
                *map(format_count, (row.listed, row.used, row.missing, row.unreadable)),
            )
            for row in rows_in(shown)
        ),
        notes=(
            "Missing: the file of a listed image is not in the dataset’s folder. Unreadable: it is "
            "there but is not a whole image. Neither is in any number of images that other tables "
            "and figures state.",
            *(
                [f"The csv file also counts the {cells} cells of age, gender and race."]
                * bool(cells)
            ),
        ),
        stubs=3,
    )
