"""Fixtures that more than one test module uses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root folder."""
    return ROOT


@pytest.fixture(scope="session")
def reference_dir() -> Path:
    """Files published by others, which tests compare with; they are not part of the project."""
    named = os.environ.get("VLMFAIR_REFERENCE")
    folder = Path(named) if named else ROOT.parent / "shared" / "reference"
    if not folder.is_dir():
        pytest.skip(
            f"the published reference files are not in {folder}. Name their folder in the "
            f"environment variable VLMFAIR_REFERENCE."
        )
    return folder


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Matrices this small gain nothing from a second thread, and lose on a busy machine."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
