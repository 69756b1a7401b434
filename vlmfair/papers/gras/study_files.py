"""Reads what tables and figures must know beside the metrics from the files of a run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from vlmfair.contracts import SAMPLES, read_table
from vlmfair.models.registry import ModelEntry, load_registry
from vlmfair.papers.gras.questions import load_prompts, load_traits, select_traits
from vlmfair.papers.gras.study import AnswerToken, Study, answer_token


def load_study(
    *,
    entries: Mapping[str, ModelEntry],
    models: Sequence[str],
    traits_file: str | os.PathLike[str],
    chosen_traits: str | Sequence[str],
    prompts_file: str | os.PathLike[str],
    style: str,
    alpha: float,
    selection: str | os.PathLike[str],
    images: str | os.PathLike[str],
    manifests: Sequence[str | os.PathLike[str]],
) -> Study:
    """Return the study of a run: its models, traits, templates, tokens and images.

    `selection` is the CSV of `selection_statistics`; `manifests` are those of the models'
    responses, in the order of `models`.
    """
    prompts = load_prompts(prompts_file)
    table = read_table(images, SAMPLES, columns=["sample_id", "image"])
    tokens = [
        _token(entries[model], json.loads(Path(path).read_text(encoding="utf-8")), prompts, style)
        for model, path in zip(models, manifests, strict=True)
    ]
    return Study(
        models=tuple(models),
        traits=select_traits(load_traits(traits_file), chosen_traits),
        templates=prompts.templates,
        alpha=alpha,
        titles={model: entries[model].title or model for model in models},
        tokens=tuple(tokens),
        selection=pd.read_csv(selection, dtype={"group": str}, keep_default_na=False),
        images=dict(zip(table["sample_id"].to_pylist(), table["image"].to_pylist(), strict=True)),
    )


def study_of_run(files: Any, settings: Any) -> Study:
    """Return the study of a run for a rule that draws a table or figure of it.

    `files` has the attributes traits, prompts, selection, images and manifests; `settings` has
    models_file, models, chosen_traits, style and alpha, as a rule's inputs and parameters do.
    """
    return load_study(
        entries=load_registry(settings.models_file),
        models=settings.models,
        traits_file=files.traits,
        chosen_traits=settings.chosen_traits,
        prompts_file=files.prompts,
        style=settings.style,
        alpha=settings.alpha,
        selection=files.selection,
        images=files.images,
        manifests=files.manifests,
    )


def _token(entry: ModelEntry, manifest: Mapping[str, Any], prompts: Any, style: str) -> AnswerToken:
    return answer_token(
        entry.name,
        manifest,
        form=entry.yes_form or prompts.yes_forms[0],
        prompt=prompts.prompt_text(entry.family, style),
        published_id=entry.yes_id,
    )
