"""Reads the result files that the GRAS authors published, checking that they are as published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vlmfair.errors import RawDataError, reason_of
from vlmfair.papers.gras.measure_attributes import ATTRIBUTES

TEMPLATES = 5
# The authors' file and column names, where they differ from ours.
PUBLISHED_NAMES = {"gender": "gender", "race": "race", "age": "age", "skin_tone": "Skin Tone"}
GROUPS = {attribute.name: attribute.groups for attribute in ATTRIBUTES}
_SENSITIVITY_COLUMNS = ("ANOVA_NumDF", "ANOVA_DenDF", "ANOVA_p", "Friedman_p")

Array = NDArray[np.float64]


@dataclass(frozen=True)
class AttributeResults:
    """One model and attribute: arrays [trait, template], `group_means` [group, trait, template].

    `differences` is what the files state as group mean minus overall mean, like `group_means`.
    """

    groups: tuple[str, ...]
    p_values: Array
    overall_means: Array
    group_means: Array
    differences: Array


@dataclass(frozen=True)
class ModelResults:
    """The published results of one model, traits in the order asked for.

    `sensitivity` maps ANOVA_NumDF, ANOVA_DenDF, ANOVA_p and Friedman_p to arrays [trait].
    """

    model: str
    attributes: dict[str, AttributeResults]
    sensitivity: dict[str, Array]


def read_evaluation_results(
    folder: Path, models: Sequence[str], traits: Sequence[str]
) -> list[ModelResults]:
    """Read those of `models` that have files in `folder`, five files each.

    Raises RawDataError when the folder is missing or holds none of the models, when one of a
    model's five files is missing, lacks a column or a trait, or holds a value out of range.
    """
    if not folder.is_dir():
        raise RawDataError(
            f"{folder}: this folder does not exist. Give the folder evaluation_results of the "
            f"authors' repository as --config gras_evaluation_results=DIR."
        )
    present = [model for model in models if any(path.is_file() for path in _files(folder, model))]
    if not present:
        raise RawDataError(
            f"{folder}: no result file of {', '.join(models)} is here. Give the folder "
            f"evaluation_results of the authors' repository."
        )
    return [_read_model(folder, model, traits) for model in present]


def _bias_file(folder: Path, model: str, attribute: str) -> Path:
    return folder / f"{model}_{PUBLISHED_NAMES[attribute]}_bias_analysis.csv"


def _sensitivity_file(folder: Path, model: str) -> Path:
    return folder / f"template_sensitivity_results_{model}.csv"


def _files(folder: Path, model: str) -> list[Path]:
    bias = [_bias_file(folder, model, attribute) for attribute in GROUPS]
    return [*bias, _sensitivity_file(folder, model)]


def _read_model(folder: Path, model: str, traits: Sequence[str]) -> ModelResults:
    for path in _files(folder, model):
        if not path.is_file():
            raise RawDataError(
                f"{path}: this file is missing, though others of {model} are there. "
                f"Copy all five files of the model."
            )
    return ModelResults(
        model=model,
        attributes={
            attribute: _read_attribute(_bias_file(folder, model, attribute), attribute, traits)
            for attribute in GROUPS
        },
        sensitivity=_read_sensitivity(_sensitivity_file(folder, model), traits),
    )


def _read_attribute(path: Path, attribute: str, traits: Sequence[str]) -> AttributeResults:
    table = _read_by_trait(path, "trait", traits)
    groups, prefix = GROUPS[attribute], PUBLISHED_NAMES[attribute]
    p_values = _columns(table, path, "p_value_template_{}")
    if p_values.min() < 0 or p_values.max() > 1:
        raise RawDataError(f"{path}: a p-value is not between 0 and 1. Copy the file again.")
    return AttributeResults(
        groups=groups,
        p_values=p_values,
        overall_means=_columns(table, path, "overall_mean_template_{}"),
        group_means=np.stack(
            [_columns(table, path, f"{prefix}_{group}_mean_template_{{}}") for group in groups]
        ),
        differences=np.stack(
            [
                _columns(table, path, f"{prefix}_{group}_diff_from_overall_template_{{}}")
                for group in groups
            ]
        ),
    )


def _read_sensitivity(path: Path, traits: Sequence[str]) -> dict[str, Array]:
    table = _read_by_trait(path, "file", traits)
    return {name: _column(table, path, name) for name in _SENSITIVITY_COLUMNS}


def _read_by_trait(path: Path, key: str, traits: Sequence[str]) -> pd.DataFrame:
    try:
        table = pd.read_csv(path, dtype={key: str}, keep_default_na=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise RawDataError(
            f"{path}: this is not a csv file ({reason_of(error)}). Copy the file again."
        ) from error
    if key not in table.columns:
        raise RawDataError(f"{path}: the column {key} is missing. Copy the file again.")
    if table[key].duplicated().any() or set(table[key]) != set(traits):
        raise RawDataError(
            f"{path}: the column {key} does not hold each of the {len(traits)} trait words once. "
            f"Copy the file again."
        )
    return table.set_index(key).loc[list(traits)]


def _columns(table: pd.DataFrame, path: Path, pattern: str) -> Array:
    """Return [trait, template] from the five columns that the pattern names."""
    columns = [_column(table, path, pattern.format(number)) for number in range(TEMPLATES)]
    return np.stack(columns, axis=1)


def _column(table: pd.DataFrame, path: Path, name: str) -> Array:
    if name not in table.columns:
        raise RawDataError(f"{path}: the column {name} is missing. Copy the file again.")
    values = pd.to_numeric(table[name], errors="coerce").to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        trait = table.index[~np.isfinite(values)][0]
        raise RawDataError(
            f"{path}: the column {name} holds no number for {trait!r}. Copy the file again."
        )
    return values
