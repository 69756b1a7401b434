"""The tables of GRAS by their names; each is built from the metrics and the study's facts alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from vlmfair.errors import ConfigError
from vlmfair.papers.gras import tables_facts, tables_robustness, tables_scores
from vlmfair.papers.gras.artefacts import TEMPERATURE_TABLES
from vlmfair.papers.gras.study import Study, with_titles
from vlmfair.render.tables import Table, write_table_files

Builder = Callable[[pd.DataFrame, Study], Table]

TABLES: dict[str, Builder] = {
    "table_1": tables_facts.build_templates,
    "table_2": tables_scores.build_scores,
    "table_3": tables_scores.build_valence,
    "table_4": tables_facts.build_traits,
    "table_5": tables_facts.build_tokens,
    **{
        name: tables_robustness.temperature_builder(trait)
        for name, trait in TEMPERATURE_TABLES.items()
    },
    "table_selection": tables_facts.build_selection,
    "table_deviations": tables_scores.build_deviations,
    "table_template_sensitivity": tables_robustness.build_template_sensitivity,
    "table_surface_forms": tables_robustness.build_surface_forms,
}


def build_table(table_id: str, metrics: pd.DataFrame, study: Study) -> Table:
    """Return one table. Raises ConfigError on an unknown name, ContractError on missing metrics."""
    if table_id not in TABLES:
        raise ConfigError(f"GRAS has no {table_id}. Use one of {', '.join(TABLES)}.")
    return TABLES[table_id](*with_titles(metrics, study))


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
    return write_table_files(table, stem, f"tab:gras-{table_id}", title=title)
