"""Reads what tables and figures must know beside the metrics from the files of a run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vlmfair.config import read_yaml
from vlmfair.datasets.acceptance import deviation_notes
from vlmfair.errors import ContractError
from vlmfair.papers.lvlm_fairness.questions import load_classes, load_prompts
from vlmfair.papers.lvlm_fairness.study import Study


def study_of_run(files: Any, settings: Any) -> Study:
    """Return the study of a run for a rule that makes a table or figure of it.

    `files` has the attributes prompts, classes, examples, sub_questions and datasets; `settings`
    has models, baselines, titles, utkface_models, rationale_models, judges, table_judge, invalid,
    style, direct, choice, alpha, small_cell and resample_draws, as a rule's inputs and parameters
    do. Raises ContractError on a file of examples or sub-questions that is no JSON.
    """
    examples = [_read_json(path) for path in files.examples]
    return Study(
        models=tuple(settings.models),
        prompts=load_prompts(files.prompts, load_classes(files.classes)),
        table_judge=settings.table_judge,
        judges=tuple(settings.judges),
        baselines=tuple(settings.baselines),
        titles=dict(settings.titles),
        asked={
            "utkface": tuple(settings.utkface_models),
            "rationale": tuple(settings.rationale_models),
        },
        invalid=settings.invalid,
        style=settings.style,
        direct=settings.direct,
        choice=settings.choice,
        alpha=settings.alpha,
        small_cell=settings.small_cell,
        draws=settings.resample_draws,
        examples=tuple(examples),
        sub_questions=_read_json(files.sub_questions),
        count_notes=_count_notes(files.datasets),
    )


def _read_json(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ContractError(
            f"{path}: this is no JSON. Run the step that makes it again."
        ) from error
    if not isinstance(content, dict):
        raise ContractError(
            f"{path}: this holds no names with values. Run the step that makes it again."
        )
    return content


def _count_notes(sheet: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return what the sheet of datasets knows to be wrong in the paper's Table 1."""
    entries = read_yaml(sheet)["datasets"]
    return tuple(
        note
        for name in ("facet", "utkface")
        for note in deviation_notes(entries.get(name, {}).get("acceptance", {}))
    )
