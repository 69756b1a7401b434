"""The lock of models as a file: whole, kept by all who write, and refused when it is damaged."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from vlmfair.errors import ConfigError, ModelError
from vlmfair.models.lock import (
    LockedFile,
    LockedModel,
    add_to_lock,
    check_files,
    check_source,
    lock_path,
    read_lock,
)

# Hex digits that YAML could take for numbers.
REVISION = "1234567890" * 4
DIGEST = "12345678e" + "0" * 55
MODEL = LockedModel("owner/name", REVISION, {"model.safetensors": LockedFile(7, DIGEST)})


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = lock_path(tmp_path / "models.yaml")

    assert path.name == "models.lock.yaml"
    assert read_lock(path) == {}
    add_to_lock(path, "mine", MODEL)

    assert read_lock(path) == {"mine": MODEL}
    assert MODEL.size == 7


def test_the_first_who_locks_a_model_wins(tmp_path: Path) -> None:
    path = tmp_path / "models.lock.yaml"
    add_to_lock(path, "mine", MODEL)

    kept = add_to_lock(path, "mine", LockedModel("owner/name", "f" * 40, MODEL.files))

    assert kept.revision == REVISION
    assert read_lock(path)["mine"].revision == REVISION


def test_jobs_that_lock_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "models.lock.yaml"
    names = [f"model-{number}" for number in range(20)]
    jobs = [threading.Thread(target=add_to_lock, args=(path, name, MODEL)) for name in names]

    for job in jobs:
        job.start()
    for job in jobs:
        job.join()

    assert sorted(read_lock(path)) == sorted(names)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("models: [", "not valid YAML"),
        ("models: {mine: {repository: a/b}}", "revision is missing"),
        (
            "models: {mine: {repository: a/b, revision: main, gated: open, files: {a: {}}}}",
            "'main'",
        ),
    ],
)
def test_a_damaged_lock_is_said(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "models.lock.yaml"
    path.write_text(content)

    with pytest.raises(ConfigError) as caught:
        read_lock(path)

    assert sentence in str(caught.value)
    assert "models.lock.yaml" in str(caught.value)


def test_another_source_is_refused_and_the_same_is_not() -> None:
    check_source("mine", "owner/name", None, MODEL, "models.yaml")
    check_source("mine", "owner/name", REVISION, MODEL, "models.yaml")

    with pytest.raises(
        ModelError, match=r"models\.yaml: mine: repository is a/b, and models\.lock"
    ):
        check_source("mine", "a/b", None, MODEL, "models.yaml")


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ({"model.safetensors": "0" * 64}, "model.safetensors differs from it"),
        ({"model.safetensors": DIGEST, "b.json": DIGEST}, "b.json differs from it"),
        ({}, "model.safetensors is missing"),
    ],
)
def test_files_that_are_not_those_of_the_lock_are_refused(
    tmp_path: Path, found: dict[str, str], says: str
) -> None:
    for name in found:
        (tmp_path / name).touch()

    with pytest.raises(ModelError) as caught:
        check_files("mine", tmp_path, found, MODEL, "models.yaml")

    assert says in str(caught.value)
    assert f"Delete {tmp_path} and run snakemake fetch_models" in str(caught.value)


def test_code_that_nobody_runs_may_lie_beside_the_weights(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    found = {"model.safetensors": DIGEST, "modeling.py": "0" * 64}

    check_files("mine", tmp_path, found, MODEL, "models.yaml", ignored=(".py",))
    with pytest.raises(ModelError, match=r"modeling\.py differs"):
        check_files("mine", tmp_path, found, MODEL, "models.yaml")
