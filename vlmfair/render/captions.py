"""Captions: reStructuredText with Jinja expressions, as the workflow's own report reads them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2
from docutils.core import publish_parts  # type: ignore[import-untyped]
from docutils.utils import SystemMessage  # type: ignore[import-untyped]

from vlmfair.errors import ConfigError, reason_of

_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 5,
    "halt_level": 2,
    "initial_header_level": 4,
    "doctitle_xform": False,
    "math_output": "MathML",
}


def caption_html(path: str | os.PathLike[str], config: Mapping[str, Any]) -> str:
    """Return a caption file as an HTML fragment; `{{ snakemake.config[...] }}` reads `config`.

    Raises ConfigError when the file is missing, names an unknown key, or is not valid
    reStructuredText.
    """
    try:
        source = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(
            f"{path}: the caption is missing. Write it, or correct config/artefacts.yaml."
        ) from error
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    try:
        text = environment.from_string(source).render(snakemake=SimpleNamespace(config=config))
        parts = publish_parts(text, writer="html5", settings_overrides=_SETTINGS)
    except (jinja2.TemplateError, SystemMessage) as error:
        raise ConfigError(
            f"{path}: the caption cannot be read ({reason_of(error)}). Correct it."
        ) from error
    return str(parts["body"])
