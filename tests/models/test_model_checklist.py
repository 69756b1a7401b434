"""The list of models: what is there, what is not, and what to do about it."""

from __future__ import annotations

import dataclasses
import hashlib
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from vlmfair.errors import ModelError
from vlmfair.models.checklist import (
    as_markdown,
    check_component,
    check_model,
    require_models,
)
from vlmfair.models.components import Component, components_named, load_components
from vlmfair.models.hub_files import hub_cache
from vlmfair.models.lock import LockedFile, LockedModel, add_to_lock, lock_path
from vlmfair.models.registry import ModelEntry, load_registry

COMMIT = "0123456789abcdef0123456789abcdef01234567"
HUB = {"repository": "owner/name", "family": "llava", "dtype": "float32", "attention": "sdpa"}
SERVED = {
    "backend": "openai",
    "base_url": "https://example.org/v1",
    "api_model": "gpt",
    "api_key_env": "MY_KEY",
    "price_input": 1.0,
    "price_output": 1.0,
}
WEIGHTS = b"weights"
LOCKED = LockedModel(
    "owner/name",
    COMMIT,
    {"model.safetensors": LockedFile(7, hashlib.sha256(WEIGHTS).hexdigest())},
    gated="manual",
)


def entry_of(folder: Path, *, locked: LockedModel | None = None, **settings: Any) -> ModelEntry:
    sheet = folder / "models.yaml"
    sheet.write_text(yaml.safe_dump({"models": {"mine": {**settings}}}))
    if locked is not None:
        add_to_lock(lock_path(sheet), "mine", locked)
    return load_registry(sheet)["mine"]


def put_weights(cache: Path, content: bytes = WEIGHTS) -> None:
    folder = cache / "models--owner--name/snapshots" / COMMIT
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(content)


def test_a_model_that_is_not_pinned_has_to_be_fetched(tmp_path: Path) -> None:
    entry = entry_of(tmp_path, **HUB, access="gated", memory_gb=14.1)

    row = check_model(entry, cache=tmp_path)

    assert (row.downloaded, row.revision, row.access) == ("no", "", "gated")
    assert row.size == "about 14.1 GB"
    assert row.next_step == (
        "Accept the licence on https://huggingface.co/owner/name, and run hf auth login. "
        "Run snakemake --cores all fetch_models with the config of this run."
    )


def test_a_locked_model_is_there_once_all_its_files_have_their_sizes(tmp_path: Path) -> None:
    entry = entry_of(tmp_path, locked=LOCKED, **HUB)

    before = check_model(entry, cache=tmp_path)
    put_weights(tmp_path)
    after = check_model(entry, cache=tmp_path)

    assert (before.downloaded, before.next_step[:3]) == ("no", "Run")
    assert (after.downloaded, after.revision) == ("yes", "0123456789ab (locked)")
    assert (after.size, after.access, after.next_step) == ("0.0 MB", "gated", "")


def test_a_file_of_another_size_is_said(tmp_path: Path) -> None:
    put_weights(tmp_path, b"cut")

    row = check_model(entry_of(tmp_path, locked=LOCKED, **HUB), cache=tmp_path)

    assert row.downloaded == "no"
    assert row.next_step.startswith("1 of 1 files are missing or differ. Run snakemake --cores")


def test_a_pinned_model_needs_no_lock(tmp_path: Path) -> None:
    entry = entry_of(tmp_path, **HUB, revision=COMMIT)

    assert check_model(entry, cache=tmp_path).downloaded == "no"
    put_weights(tmp_path)
    assert check_model(entry, cache=tmp_path).downloaded == "yes"


def test_a_model_in_parts_lacks_one(tmp_path: Path) -> None:
    put_weights(tmp_path)
    folder = tmp_path / "models--owner--name/snapshots" / COMMIT
    index = '{"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}'
    (folder / "model.safetensors.index.json").write_text(index)

    assert check_model(entry_of(tmp_path, **HUB, revision=COMMIT), cache=tmp_path).next_step


@pytest.mark.parametrize(
    ("settings", "step"),
    [
        ({"family": "martian"}, "There is no module for the family martian"),
        ({"family": "minicpm_o"}, "It brings its own code: read it at https://huggingface.co/own"),
        ({"revision": "f" * 40}, f"Another revision is locked, {COMMIT}: write that"),
    ],
)
def test_what_no_download_helps_with_is_said_instead(
    tmp_path: Path, settings: dict[str, Any], step: str
) -> None:
    put_weights(tmp_path)

    row = check_model(entry_of(tmp_path, locked=LOCKED, **{**HUB, **settings}), cache=tmp_path)

    assert (row.downloaded, row.next_step[: len(step)]) == ("no", step)


def test_a_model_in_a_folder_says_how_to_get_it(tmp_path: Path) -> None:
    settings = {**HUB, "path": str(tmp_path / "weights"), "get": "Convert it."}
    del settings["repository"]
    entry = entry_of(tmp_path, **settings)

    assert check_model(entry).next_step == "Convert it."
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/model.safetensors").write_bytes(bytes(2_000_000))
    row = check_model(entry)
    assert (row.downloaded, row.revision, row.size) == ("yes", "in a folder", "2.0 MB")


def test_a_served_model_needs_its_key(tmp_path: Path) -> None:
    entry = entry_of(tmp_path, **SERVED)

    without = check_model(entry, environ={})

    assert (without.downloaded, without.access) == ("served", "key in MY_KEY")
    assert without.next_step.startswith("Set the environment variable MY_KEY")
    assert check_model(entry, environ={"MY_KEY": "secret"}).next_step == ""
    assert "secret" not in as_markdown([check_model(entry, environ={"MY_KEY": "secret"})])


def test_a_server_of_this_machine_has_to_be_there(tmp_path: Path) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        own = {**SERVED, "base_url": f"http://127.0.0.1:{port}/v1"}
        entry = entry_of(tmp_path, **{k: v for k, v in own.items() if k != "api_key_env"})

        silent = check_model(entry, environ={})
        listening.listen()
        answering = check_model(entry, environ={})

    assert silent.next_step.startswith(f"Nothing answers at http://127.0.0.1:{port}/v1: start")
    assert answering.next_step == ""
    with pytest.raises(ModelError, match=r"missing: mine\."):
        require_models([silent])


def test_a_component_lies_in_its_folder(tmp_path: Path) -> None:
    component = Component("clip", "encoder", "owner/name", str(tmp_path / "clip"))

    missing = check_component(component, None)
    (tmp_path / "clip").mkdir()
    (tmp_path / "clip/model.safetensors").write_bytes(WEIGHTS)
    there = check_component(component, LOCKED)

    assert (missing.downloaded, bool(missing.next_step)) == ("no", True)
    assert (there.downloaded, there.next_step, there.kind) == ("yes", "", "encoder")


def test_the_list_has_a_line_for_each_and_fails_where_one_is_missing(tmp_path: Path) -> None:
    there = check_model(entry_of(tmp_path, **SERVED), environ={"MY_KEY": "k"})
    missing = check_model(entry_of(tmp_path, **HUB), cache=tmp_path)

    shown = as_markdown([there, missing, dataclasses.replace(missing, model="other")])

    assert shown.splitlines()[2].startswith("| mine  | vlm  | served     |")
    assert "- mine, other: Run snakemake --cores all fetch_models" in shown
    require_models([there])
    with pytest.raises(ModelError, match=r"missing: mine\. Do what the list of models says"):
        require_models([there, missing])


def test_the_config_asks_for_components_by_folder_or_repository(root: Path) -> None:
    components = load_components(root / "config/models.yaml")
    config = {"a": {"b": ["models/clip-vit-b-32/"]}, "c": "black-forest-labs/FLUX.1-dev"}

    assert set(components_named(config, components)) == {"clip-vit-b-32", "flux.1-dev"}


def test_the_hub_keeps_downloads_where_its_variables_say() -> None:
    assert hub_cache({"HF_HUB_CACHE": "/a"}) == Path("/a")
    assert hub_cache({"HF_HOME": "/b"}) == Path("/b/hub")
    assert hub_cache({"XDG_CACHE_HOME": "/c"}) == Path("/c/huggingface/hub")
