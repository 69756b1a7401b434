"""The tables of the paper by their names; each is built from the metrics and the study alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd

from vlmfair.errors import ConfigError
from vlmfair.papers.lvlm_fairness import (
    tables_answers,
    tables_classes,
    tables_deviations,
    tables_facts,
    tables_rationale,
    tables_recall,
)
from vlmfair.papers.lvlm_fairness.study import Study
from vlmfair.render.tables import Table, write_table_files

Builder = Callable[[pd.DataFrame, Study], Table]

# The panels a, b, c of Tables 2 and 13, and the numbers of the tables by class.
_PANELS = {"a": "gender", "b": "skin_tone", "c": "age"}
_CLASS_TABLES = {"9": "gender", "10": "skin_tone", "11": "age"}

TABLES: dict[str, Builder] = {
    "table_1": tables_facts.build_images,
    **{
        f"table_2{letter}": partial(tables_recall.build_recall, attribute=attribute)
        for letter, attribute in _PANELS.items()
    },
    "table_3": tables_recall.build_utkface,
    "table_4": tables_rationale.build_mitigation,
    "table_5": tables_rationale.build_transitions,
    "table_6": tables_facts.build_facet_prompts,
    "table_7": tables_facts.build_utkface_prompts,
    "table_8": tables_classes.build_encoders,
    **{
        f"table_{number}{letter}": partial(
            tables_classes.build_classes, attribute=attribute, kind=kind
        )
        for number, attribute in _CLASS_TABLES.items()
        for letter, kind in (("a", "direct"), ("b", "choice"))
    },
    "table_12": tables_classes.build_resampling,
    **{
        f"table_13{letter}": partial(tables_recall.build_f1, attribute=attribute)
        for letter, attribute in _PANELS.items()
    },
    "table_unparsed": partial(tables_answers.build_invalid, dataset="facet"),
    "table_unparsed_utkface": partial(tables_answers.build_invalid, dataset="utkface"),
    "table_deviations": tables_deviations.build_deviations,
}


def build_table(table_id: str, metrics: pd.DataFrame, study: Study) -> Table:
    """Return one table. Raises ConfigError on an unknown name, ContractError on missing metrics."""
    if table_id not in TABLES:
        raise ConfigError(f"lvlm_fairness has no {table_id}. Use one of {', '.join(TABLES)}.")
    return TABLES[table_id](metrics, study)


def write_table(
    table_id: str,
    metrics: pd.DataFrame,
    study: Study,
    stem: str | os.PathLike[str],
    *,
    title: str | None = None,
) -> list[Path]:
    """Build one table and write `<stem>.csv`, `.tex` and `.html`, all or none.

    `title` is the registry's, where it shall stand above the table.
    """
    table = build_table(table_id, metrics, study)
    return write_table_files(table, stem, f"tab:lvlm-fairness-{table_id}", title=title)
