"""Digests of weights: read once, right after every change."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from vlmfair.models import weights
from vlmfair.models.weights import remembered_digests


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model folder whose files were written long ago, and a file that does not count."""
    made = tmp_path / "model"
    made.mkdir()
    for name in ("config.json", "model.safetensors", "README.md"):
        (made / name).write_text(name)
    return made


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour later: no file is so fresh that it may change within the clock's tick."""
    later = time.time() + 3600
    monkeypatch.setattr(weights.time, "time", lambda: later)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were really read."""
    names: list[str] = []
    true_digest = weights.sha256_of_file

    def counting(path: str) -> str:
        names.append(Path(path).name)
        return true_digest(path)

    monkeypatch.setattr(weights, "sha256_of_file", counting)
    return names


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


EXPECTED = tuple((name, sha256(name)) for name in ("config.json", "model.safetensors"))


@pytest.mark.usefixtures("settled")
def test_unchanged_files_are_read_once(folder: Path, tmp_path: Path, read: list[str]) -> None:
    memory = tmp_path / "state" / "memory.json"

    assert remembered_digests(folder, memory) == EXPECTED
    assert remembered_digests(folder, memory) == EXPECTED

    assert read == ["config.json", "model.safetensors"]


@pytest.mark.usefixtures("settled")
def test_a_touched_file_keeps_its_digest(folder: Path, tmp_path: Path) -> None:
    remembered_digests(folder, tmp_path / "memory.json")
    os.utime(folder / "model.safetensors", (1, 1))

    assert remembered_digests(folder, tmp_path / "memory.json") == EXPECTED


@pytest.mark.usefixtures("settled")
def test_changed_weights_of_equal_size_and_date_are_seen(folder: Path, tmp_path: Path) -> None:
    # As `cp --preserve` or `rsync --times` leave them.
    path = folder / "model.safetensors"
    remembered_digests(folder, tmp_path / "memory.json")
    before = path.stat()
    time.sleep(0.02)
    path.write_text("model.SAFETENSORS")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert path.stat().st_size == before.st_size
    assert dict(remembered_digests(folder, tmp_path / "memory.json"))[path.name] == sha256(
        "model.SAFETENSORS"
    )


def test_a_file_that_may_still_change_is_not_remembered(
    folder: Path, tmp_path: Path, read: list[str]
) -> None:
    remembered_digests(folder, tmp_path / "memory.json")
    remembered_digests(folder, tmp_path / "memory.json")

    assert len(read) == 4
    assert not (tmp_path / "memory.json").exists()


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("content", ["", "{", "[1]", '{"/a": 3}', "\x00"])
def test_a_damaged_memory_only_costs_time(folder: Path, tmp_path: Path, content: str) -> None:
    memory = tmp_path / "memory.json"
    memory.write_text(content)

    assert remembered_digests(folder, memory) == EXPECTED
    assert len(json.loads(memory.read_text())) >= 2


@pytest.mark.usefixtures("settled")
def test_a_memory_that_cannot_be_written_only_costs_time(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert remembered_digests(folder, tmp_path / "file" / "memory.json") == EXPECTED


def test_two_names_of_one_content_are_both_there(folder: Path, tmp_path: Path) -> None:
    """The hub's cache has links, and the same content only once."""
    (folder / "generation_config.json").symlink_to(folder / "config.json")

    found = dict(remembered_digests(folder, tmp_path / "memory.json"))

    assert found["generation_config.json"] == found["config.json"] == sha256("config.json")


@pytest.mark.usefixtures("settled")
def test_files_that_are_gone_are_forgotten(folder: Path, tmp_path: Path) -> None:
    memory = tmp_path / "memory.json"
    remembered_digests(folder, memory)
    (folder / "config.json").unlink()
    (folder / "model.safetensors").write_text("new")

    remembered_digests(folder, memory)

    assert list(json.loads(memory.read_text())) == [str(folder / "model.safetensors")]


def test_an_adapter_that_is_merged_belongs_to_the_content(folder: Path, tmp_path: Path) -> None:
    for place, name in (("vision-lora", "adapter_config.json"), ("onnx", "config.json")):
        (folder / place).mkdir()
        (folder / place / name).write_text(name)

    found = dict(remembered_digests(folder, tmp_path / "memory.json"))

    assert "vision-lora/adapter_config.json" in found
    assert not any(name.startswith("onnx/") for name in found)
