"""Downloads from a hub on this machine: what is fetched, locked, compared and refused."""

from __future__ import annotations

import dataclasses
import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_hub import COMMIT, NEWER, FakeHub, Repository, fake_hub

from vlmfair.errors import ModelError
from vlmfair.models.components import Component
from vlmfair.models.fetch import (
    Fetched,
    Source,
    fetch_model,
    source_of_component,
    source_of_model,
)
from vlmfair.models.lock import lock_path, read_lock
from vlmfair.models.registry import load_registry, make_entry, model_digest, model_folder

FILES = {
    "config.json": b"{}",
    "model.safetensors": b"weights" * 100,
    "vision-lora/adapter_model.safetensors": b"adapter",
    "tokenizer.json": b'{"version": "1.0"}',
    "pytorch_model.bin": b"pickled",
    "modeling.py": b"print('run')",
    "original/consolidated.safetensors": b"again",
    "README.md": b"# Model",
}
WANTED = {
    *("config.json", "model.safetensors", "tokenizer.json"),
    "vision-lora/adapter_model.safetensors",
}
SETTINGS = {"repository": "owner/name", "family": "llava", "dtype": "float32", "attention": "sdpa"}


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with fake_hub({"owner/name": Repository({COMMIT: dict(FILES)})}) as served:
        yield served


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    path = tmp_path / "config/models.yaml"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump({"models": {"mine": SETTINGS}}))
    return path


@pytest.fixture
def fetch(hub: FakeHub, sheet: Path, tmp_path: Path) -> Callable[..., Fetched]:
    """Download the model of the sheet, with changes to its source."""

    def run(**changes: Any) -> Fetched:
        source = source_of_model(load_registry(sheet)["mine"])
        assert source is not None
        return fetch_model(
            dataclasses.replace(source, **changes),
            memory=tmp_path / "digests.json",
            cache=tmp_path / "hub",
            endpoint=hub.endpoint,
            pauses=(0.0, 0.0),
        )

    return run


def test_the_first_download_locks_the_newest_commit_and_every_file(
    fetch: Callable[..., Fetched], sheet: Path
) -> None:
    assert load_registry(sheet)["mine"].lacks_revision

    fetched = fetch()

    locked = read_lock(lock_path(sheet))["mine"]
    assert (locked.repository, locked.revision, locked.gated) == ("owner/name", COMMIT, "open")
    assert set(locked.files) == WANTED
    weights = locked.files["model.safetensors"]
    assert weights.sha256 == hashlib.sha256(FILES["model.safetensors"]).hexdigest()
    assert (weights.size, locked.size) == (700, 700 + 2 + 18 + 7)
    assert (fetched.folder / "config.json").read_bytes() == b"{}"
    assert lock_path(sheet).read_text().startswith("# Written by `snakemake fetch_models`")


def test_only_data_is_fetched_and_code_only_where_it_may_run(
    fetch: Callable[..., Fetched], hub: FakeHub
) -> None:
    fetch(trust_remote_code=True, brings_code=True)

    assert set(hub.files_sent()) == {name.rpartition("/")[2] for name in (*WANTED, "modeling.py")}


def test_a_second_run_compares_without_asking_the_hub(
    fetch: Callable[..., Fetched], hub: FakeHub
) -> None:
    assert fetch().downloaded
    hub.repositories.clear()

    again = fetch()

    assert not again.downloaded
    assert again.locked.revision == COMMIT


def test_the_locked_commit_stays_when_the_repository_moves_on(
    fetch: Callable[..., Fetched], hub: FakeHub, tmp_path: Path
) -> None:
    fetch()
    hub.repositories["owner/name"].commits[NEWER] = {**FILES, "config.json": b'{"new": 1}'}
    for path in (tmp_path / "hub").rglob("model.safetensors"):
        path.unlink()

    fetched = fetch()

    assert fetched.downloaded
    assert fetched.locked.revision == COMMIT
    assert (fetched.folder / "config.json").read_bytes() == b"{}"


def test_loading_takes_the_locked_commit(
    fetch: Callable[..., Fetched], sheet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = fetch()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)

    entry = load_registry(sheet)["mine"]

    assert entry.revision == COMMIT
    assert model_folder(entry).samefile(fetched.folder)
    assert len(model_digest(entry)) == 32


@pytest.mark.parametrize("remembering", [True, False])
@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_loading_refuses_files_that_are_not_those_of_the_lock(
    fetch: Callable[..., Fetched],
    sheet: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    remembering: bool,
) -> None:
    fetched = fetch()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    if remembering:
        (tmp_path / ".snakemake").mkdir()
    model_folder(load_registry(sheet)["mine"])
    (fetched.folder / name).resolve().write_bytes(b"other")

    with pytest.raises(ModelError, match=rf"is not what .*models\.lock\.yaml has locked: {name} d"):
        model_folder(load_registry(sheet)["mine"])
    with pytest.raises(ModelError, match=r"models--owner--name and run snakemake fetch_models"):
        fetch()


def test_another_commit_or_repository_than_the_locked_one_is_refused(
    fetch: Callable[..., Fetched], sheet: Path
) -> None:
    fetch()
    sheet.write_text(yaml.safe_dump({"models": {"mine": {**SETTINGS, "revision": NEWER}}}))

    with pytest.raises(ModelError, match=f"revision is {NEWER}, and .* has locked {COMMIT}"):
        model_folder(load_registry(sheet)["mine"])
    with pytest.raises(ModelError, match=rf"Write revision: {COMMIT}, or remove mine from"):
        fetch()
    with pytest.raises(ModelError, match="repository is owner/other, and"):
        fetch(repository="owner/other", revision=None)


def test_a_download_that_breaks_off_goes_on_where_it_stopped(
    fetch: Callable[..., Fetched], hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 100)
    hub.repositories["owner/name"].cut = Counter({"model.safetensors": 1})

    fetched = fetch()

    assert (fetched.folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert "model.safetensors from 300" in hub.ranges


def test_a_file_that_comes_damaged_is_neither_locked_nor_kept(
    fetch: Callable[..., Fetched], hub: FakeHub, sheet: Path
) -> None:
    hub.repositories["owner/name"].garbled = {"model.safetensors"}

    with pytest.raises(ModelError, match=r"model\.safetensors came damaged"):
        fetch()

    assert read_lock(lock_path(sheet)) == {}
    hub.repositories["owner/name"].garbled = set()
    assert (fetch().folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]


def test_a_gated_model_says_how_to_get_in(
    fetch: Callable[..., Fetched], hub: FakeHub, sheet: Path
) -> None:
    hub.repositories["owner/name"].gated = True

    with pytest.raises(ModelError, match=r"owner/name is gated\. Accept the licence on https://hu"):
        fetch()

    assert read_lock(lock_path(sheet)) == {}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"repository": "owner/none"}, "the hub has no owner/none, or hides it"),
        ({"revision": NEWER}, f"owner/name has no commit {NEWER}"),
        ({"brings_code": True}, f"trust_remote_code: true and revision: {COMMIT} in"),
        ({"skip": ("*.safetensors",)}, "no weights in the safetensors format, only pickled ones"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_is_sent(
    fetch: Callable[..., Fetched], hub: FakeHub, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ModelError) as caught:
        fetch(**changes)

    assert sentence in str(caught.value)
    assert hub.files_sent() == []


def test_a_hub_that_cannot_be_reached_is_said_in_one_sentence(sheet: Path, tmp_path: Path) -> None:
    source = Source("mine", "owner/name", str(sheet))

    with pytest.raises(ModelError, match=r"owner/name cannot be downloaded \(.*what has come"):
        fetch_model(
            source, memory=tmp_path / "digests.json", cache=tmp_path, endpoint="http://127.0.0.1:9"
        )


def test_a_disk_that_is_too_small_is_said_before_anything_is_sent(
    fetch: Callable[..., Fetched], hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 100})
    monkeypatch.setattr("vlmfair.models.fetch.shutil.disk_usage", lambda _: usage)

    with pytest.raises(ModelError, match=r"owner/name has 0\.0 GB, and .* has 0\.0 GB free"):
        fetch()

    assert hub.files_sent() == []


def test_names_that_lead_out_of_the_folder_are_never_fetched(
    fetch: Callable[..., Fetched], hub: FakeHub, tmp_path: Path
) -> None:
    hub.repositories["owner/name"].commits[COMMIT]["../../outside.json"] = b"{}"

    fetched = fetch()

    assert set(fetched.locked.files) == WANTED
    assert list(tmp_path.rglob("outside.json")) == []


def test_files_of_the_same_content_are_each_locked(
    fetch: Callable[..., Fetched], hub: FakeHub
) -> None:
    """The hub's cache keeps the content of both only once."""
    hub.repositories["owner/name"].commits[COMMIT]["generation_config.json"] = b"{}"

    assert set(fetch().locked.files) == {*WANTED, "generation_config.json"}
    assert not fetch().downloaded


def test_components_lie_in_a_folder_of_their_own(hub: FakeHub, sheet: Path, tmp_path: Path) -> None:
    component = Component(
        "pipeline", "generator", "owner/name", str(tmp_path / "pipeline"), skip=("vision-lora/*",)
    )

    fetched = fetch_model(
        source_of_component(component, str(sheet)),
        memory=tmp_path / "digests.json",
        endpoint=hub.endpoint,
    )

    assert fetched.folder.samefile(tmp_path / "pipeline")
    assert set(fetched.locked.files) == WANTED - {"vision-lora/adapter_model.safetensors"}
    assert {path.name for path in fetched.folder.glob("*") if path.is_file()} == {
        *("config.json", "model.safetensors", "tokenizer.json")
    }


def test_two_jobs_at_once_lock_the_same(fetch: Callable[..., Fetched], sheet: Path) -> None:
    found: list[str] = []
    jobs = [threading.Thread(target=lambda: found.append(fetch().locked.revision)) for _ in "ab"]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()

    assert found == [COMMIT, COMMIT]
    assert set(read_lock(lock_path(sheet))["mine"].files) == WANTED


def test_a_model_in_a_folder_has_nothing_to_fetch() -> None:
    settings = {**SETTINGS, "path": "weights"}
    del settings["repository"]

    assert source_of_model(make_entry("mine", settings)) is None
