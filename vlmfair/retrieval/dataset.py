"""One dataset of the registry: what of it may be downloaded is, and put where it belongs."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from vlmfair.provenance import write_json
from vlmfair.retrieval.archives import is_archive, unpack
from vlmfair.retrieval.client import Client
from vlmfair.retrieval.fetch import PATIENCE, FetchedFile, Patience, RemoteFile, fetch
from vlmfair.retrieval.hub import fetch_from_hub
from vlmfair.retrieval.parts import are_there

STATE = "retrieved.json"
FETCHED, THERE = "downloaded", "there"


@dataclass(frozen=True)
class Folders:
    """The raw folder of a dataset, and the one that its downloads lie in, archives included."""

    raw: Path
    downloads: Path


def retrieve(
    name: str,
    entry: Mapping[str, Any],
    folders: Folders,
    client: Client,
    *,
    patience: Patience = PATIENCE,
    endpoint: str | None = None,
) -> dict[str, Any]:
    """Download and unpack the `files` of a dataset's entry in config/datasets.yaml.

    What is there stays: files that were put there by hand, and those of an earlier call; a call
    that was killed is continued. Returns a report: `dataset` and `files` (name, status, address,
    bytes, sha256, unpacked_files). `endpoint` stands for the hub. Raises RetrievalError as `fetch`
    and `unpack` do.
    """
    folders.downloads.mkdir(parents=True, exist_ok=True)
    with FileLock(folders.downloads / f"{STATE}.lock"):
        state = _read_state(folders.downloads / STATE)
        files = []
        for file in entry.get("files", []):
            files.append(_file(file, folders, client, patience, endpoint, state))
            write_json(folders.downloads / STATE, state)
    return {"dataset": name, "files": files}


def _read_state(path: Path) -> dict[str, Any]:
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def _file(
    file: Mapping[str, Any],
    folders: Folders,
    client: Client,
    patience: Patience,
    endpoint: str | None,
    state: dict[str, Any],
) -> dict[str, Any]:
    """Have one file of the registry in its place, and return what the report says of it."""
    name, known = file["name"], state.get(file["name"], {})
    # Without a record of our own, what is there was put there by hand.
    if are_there(folders.raw, file["gives"]) and known.get("status") in (None, FETCHED):
        return {"name": name, "status": THERE, **known, "gives": file["gives"]}
    state[name] = {"status": "begun"}
    write_json(folders.downloads / STATE, state)
    fetched = _fetched(file, folders.downloads, client, patience, endpoint)
    unpacked = _put(file, fetched.path, folders.raw)
    state[name] = {
        "status": FETCHED,
        "address": fetched.address,
        "bytes": fetched.size,
        "sha256": fetched.sha256,
        "unpacked_files": unpacked,
    }
    if not are_there(folders.raw, file["gives"]):
        logging.warning("%s: %s did not bring %s", folders.raw, name, file["gives"])
    return {"name": name, **state[name], "gives": file["gives"]}


def _fetched(
    file: Mapping[str, Any],
    downloads: Path,
    client: Client,
    patience: Patience,
    endpoint: str | None,
) -> FetchedFile:
    if "hub" in file:
        return fetch_from_hub(
            file["hub"], file["path"], downloads, at_most=file["at_most"], endpoint=endpoint
        )
    remote = RemoteFile(
        file["name"],
        tuple(file["from"]),
        at_most=file.get("at_most", file.get("bytes")),
        size=file.get("bytes"),
        sha256=file.get("sha256", ""),
    )
    return fetch(remote, downloads, client, patience)


def _put(file: Mapping[str, Any], path: Path, raw: Path) -> int:
    """Unpack an archive, or put a file where it belongs; return how many files that are."""
    if is_archive(path.name):
        settings = file["unpack"]
        inside = settings.get("inside", "")
        return unpack(path, raw, at_most=settings["at_most"], inside=inside).files
    target = raw / file["to"]
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    try:
        os.link(path, unfinished)
    except OSError:
        # Another disk, or one without hard links.
        shutil.copyfile(path, unfinished)
    os.replace(unfinished, target)
    return 1
