"""The tables of the paper by their names; each is built from the metrics and the study alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd

from vlmfair.errors import ConfigError
from vlmfair.papers.vl_bicle import (
    tables_claims,
    tables_deviations,
    tables_drawn_images,
    tables_facts,
    tables_families,
    tables_funnel,
    tables_mitigation,
    tables_quality,
    tables_scorecard,
    tables_unrevealed,
    tables_zero_shot,
)
from vlmfair.papers.vl_bicle.study import Study
from vlmfair.render.tables import Table, write_table_files

Builder = Callable[[pd.DataFrame, Study], Table]
ModelBuilder = Callable[[pd.DataFrame, Study, str], Table]

TABLES: dict[str, Builder] = {
    "table_1": tables_facts.build_images,
    "table_2": tables_zero_shot.build_zero_shot,
    "table_3": tables_quality.build_quality,
    "table_4": tables_mitigation.build_mitigation,
    "table_5": tables_facts.build_words,
    "table_drawn_images": tables_drawn_images.build_drawn_images,
    "table_claims": tables_claims.build_claims,
    "table_scorecard": tables_scorecard.build_scorecard,
    "table_unrevealed": tables_unrevealed.build_unrevealed,
    "table_funnel": tables_funnel.build_funnels,
    "table_deviations": tables_deviations.build_deviations,
}
# One table per model.
MODEL_TABLES: dict[str, ModelBuilder] = {
    "table_38-43": partial(tables_families.build_pronouns, task_name="visogender_oo"),
    "table_44-49": partial(tables_families.build_pronouns, task_name="visogender_op"),
    "table_coco_bias": partial(tables_families.build_captions, task_name="coco_bias"),
    "table_balanced_pool": tables_families.build_balanced_pool,
    "table_dci": partial(tables_families.build_captions, task_name="dci"),
    "table_visual_cot": tables_families.build_answers,
    "table_synthetic": tables_families.build_synthetic,
}


def build_table(
    table_id: str, metrics: pd.DataFrame, study: Study, model: str | None = None
) -> Table:
    """Return one table; those of the appendix are of one model.

    Raises ConfigError on an unknown name or a model that is missing where the table needs one, and
    ContractError on missing metrics.
    """
    if table_id in MODEL_TABLES:
        if model not in study.models:
            raise ConfigError(
                f"vl_bicle: {table_id} is of one model, which is given as {model!r}. Use one of "
                f"{', '.join(study.models)}."
            )
        return MODEL_TABLES[table_id](metrics, study, model)
    if table_id not in TABLES:
        known = ", ".join((*TABLES, *MODEL_TABLES))
        raise ConfigError(f"vl_bicle has no {table_id}. Use one of {known}.")
    return TABLES[table_id](metrics, study)


def write_table(
    table_id: str,
    metrics: pd.DataFrame,
    study: Study,
    stem: str | os.PathLike[str],
    *,
    title: str | None = None,
    model: str | None = None,
) -> list[Path]:
    """Build one table and write `<stem>.csv`, `.tex` and `.html`, all or none.

    `title` is the registry's, where it shall stand above the table; a table of one model keeps its
    own, which names the model.
    """
    table = build_table(table_id, metrics, study, model)
    label = f"tab:vl-bicle-{table_id}" + (f"-{model}" if model else "")
    return write_table_files(table, stem, label, title=None if model else title)
