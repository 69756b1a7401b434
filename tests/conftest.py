"""Fixtures that more than one test module uses."""

from __future__ import annotations

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
    folder = ROOT.parent / "shared" / "reference"
    if not folder.is_dir():
        pytest.skip("the published reference files are not beside the repository")
    return folder
