"""The tiny model that these tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_llava import write_model


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    write_model(folder)
    return folder
