"""The tiny models that these tests share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_llava import write_model
from tiny_models import tiny_entry, write_family

from vlmfair.models.loading import LoadedProcessor, load_model, load_processor


@pytest.fixture(autouse=True, scope="module")
def always_one_thread(one_thread: None) -> None:
    """Every module here computes with tiny models."""


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    write_model(folder)
    return folder


@pytest.fixture(scope="session")
def family_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a family's tiny model, written when first asked for."""
    root, known = tmp_path_factory.mktemp("families"), {}

    def folder(family: str) -> Path:
        if family not in known:
            known[family] = write_family(root / family, family)
        return known[family]

    return folder


@pytest.fixture(scope="session")
def load_tiny(
    family_folder: Callable[[str], Path],
) -> Callable[[str], tuple[LoadedProcessor, Any]]:
    """The loaded processor and model of a family, loaded as any model of the sheet."""
    known: dict[str, tuple[LoadedProcessor, Any]] = {}

    def load(family: str) -> tuple[LoadedProcessor, Any]:
        if family not in known:
            loaded = load_processor(tiny_entry(family_folder(family), family))
            known[family] = (loaded, load_model(loaded, "cpu"))
        return known[family]

    return load
