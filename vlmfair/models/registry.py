"""The sheet of models: what each entry states, and where its files lie.

Neither torch nor transformers is imported here, because planning needs the sheet without them.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from vlmfair.config import check_config, read_yaml
from vlmfair.errors import ConfigError, ModelError
from vlmfair.models.api_settings import (
    BACKEND,
    SHARED_KEYS,
    ApiSettings,
    make_api_settings,
    refuse_api_keys,
)
from vlmfair.models.hub_files import wanted_files
from vlmfair.models.lock import LockedModel, check_files, check_source, lock_path, read_lock
from vlmfair.models.weights import MEMORY, content_files, remembered_digests
from vlmfair.provenance import PACKAGE_ROOT, sha256_of_file

SCHEMA = PACKAGE_ROOT.parent / "config" / "schemas" / "models.schema.json"
DEFAULT_SHEET = "config/models.yaml"


@dataclass(frozen=True)
class ModelEntry:
    """One model of the sheet; every key is explained in the project's own `config/models.yaml`."""

    name: str
    family: str
    dtype: str
    attention: str
    path: str | None = None
    repository: str | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    image_backend: str = "torchvision"
    image_transforms: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    context_length: int | None = None
    gpus: int = 1
    yes_form: str | None = None
    yes_id: int | None = None
    title: str | None = None
    kind: str = "vlm"
    memory_gb: float | None = None
    env: str | None = None
    papers: tuple[str, ...] = ()
    access: str | None = None
    get: str | None = None
    # None for a model whose weights are loaded; a served one has no family, dtype or attention.
    api: ApiSettings | None = None
    # The file that the entry stands in, for messages.
    sheet: str = field(default=DEFAULT_SHEET, compare=False)
    # What the first download had, which gives the revision where the entry states none.
    locked: LockedModel | None = field(default=None, compare=False, repr=False)

    @property
    def lacks_revision(self) -> bool:
        """Whether a repository of the hub is named without saying which commit."""
        return self.api is None and self.path is None and self.revision is None

    @property
    def source(self) -> str:
        """The folder, the repository with its revision, or the server and its model."""
        if self.api is not None:
            return f"{self.api.api_model} at {self.api.base_url}"
        return self.path if self.path else f"{self.repository}@{self.revision}"


def load_registry(
    path: str | os.PathLike[str],
    schema: str | os.PathLike[str] = SCHEMA,
    *,
    name: str | None = None,
) -> dict[str, ModelEntry]:
    """Read the sheet of models and the lock beside it, whose commits hold where none is stated.

    `name` is what messages call the sheet, its path if left out. Raises ConfigError on a key that
    is unknown, missing or wrong, and on a damaged lock.
    """
    content, sheet = read_yaml(path), name or str(path)
    check_config(content, schema, sheet)
    locked = read_lock(lock_path(path))
    return {
        key: _with_lock(_located(make_entry(key, raw, sheet), Path(path)), locked.get(key))
        for key, raw in content["models"].items()
    }


def _located(entry: ModelEntry, sheet: Path) -> ModelEntry:
    """Find a folder that the run's own folder lacks beside the sheet's: another workflow's run."""
    own = sheet.parent.parent / entry.path if entry.path else None
    if own is None or Path(entry.path or "").exists() or not own.exists():
        return entry
    return dataclasses.replace(entry, path=str(own))


def _with_lock(entry: ModelEntry, locked: LockedModel | None) -> ModelEntry:
    if locked is None or entry.repository is None or entry.api is not None:
        return entry
    return dataclasses.replace(entry, revision=entry.revision or locked.revision, locked=locked)


def make_entry(name: str, settings: Mapping[str, Any], sheet: str = DEFAULT_SHEET) -> ModelEntry:
    """Return the entry of one model from its settings, which the schema has passed.

    A served model (`backend: openai`) gets the family openai, and unknown as dtype and attention.
    Raises ConfigError when both a path and a repository are given, on a key of the other backend,
    and on a base_url that is no address.
    """
    if settings.get("backend") == BACKEND:
        shared = {key: settings[key] for key in SHARED_KEYS & set(settings)}
        shared |= _papers(settings)
        api = make_api_settings(name, settings, sheet)
        return ModelEntry(name, BACKEND, "unknown", "unknown", sheet=sheet, api=api, **shared)
    refuse_api_keys(name, settings, sheet)
    if "path" in settings and "repository" in settings:
        raise ConfigError(
            f"{sheet}: {name}: path and repository both say where the model is. Keep one of them."
        )
    own = {key: value for key, value in settings.items() if key != "backend"} | _papers(settings)
    return ModelEntry(name=name, sheet=sheet, **own)


def _papers(settings: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {"papers": tuple(settings["papers"])} if "papers" in settings else {}


def model_folder(entry: ModelEntry) -> Path:
    """Return the folder of a model's files; nothing is downloaded.

    Raises ModelError when the folder is missing, a repository is not pinned to a commit or not
    downloaded or differs from the lock, or remote code is asked for without a pinned revision.
    """
    if entry.path is not None:
        if entry.trust_remote_code:
            raise ModelError(
                f"{entry.name}: trust_remote_code needs a pinned repository, and this entry names "
                f"a path. Write repository and revision instead of path."
            )
        folder = Path(entry.path)
        if not folder.is_dir():
            raise ModelError(
                f"{entry.name}: the folder {entry.path} is missing. "
                f"Put the model's files there or correct path in {entry.sheet}."
            )
        return folder
    if entry.lacks_revision:
        raise ModelError(
            f"{entry.sheet}: {entry.name}: revision is missing. Write revision: <40-hex commit of "
            f"the model repository>, or run snakemake fetch_models, which locks the newest one."
        )
    if entry.locked is not None:
        check_source(entry.name, str(entry.repository), entry.revision, entry.locked, entry.sheet)
    folder = downloaded_snapshot(
        entry.name, str(entry.repository), str(entry.revision), entry.trust_remote_code
    )
    if entry.locked is not None:
        ignored = () if entry.trust_remote_code else (".py",)
        digests = dict(_digests(folder))
        check_files(entry.name, folder, digests, entry.locked, entry.sheet, ignored=ignored)
    return folder


def downloaded_snapshot(
    name: str,
    repository: str,
    revision: str,
    trust_remote_code: bool = False,
    cache: Path | None = None,
) -> Path:
    """Return the folder of a commit in the hub's cache; raises ModelError when it is not there."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    wanted, unwanted = wanted_files(trust_remote_code)
    try:
        found = snapshot_download(
            repository,
            revision=revision,
            local_files_only=True,
            cache_dir=cache,
            allow_patterns=wanted,
            ignore_patterns=unwanted,
        )
        return Path(found)
    except LocalEntryNotFoundError as error:
        raise ModelError(
            f"{name}: {repository} at {revision} is not downloaded. "
            f"Run: hf download {repository} --revision {revision}, or snakemake fetch_models "
            f"(a gated model also needs hf auth login and its licence accepted on its page)."
        ) from error


def _digests(folder: Path) -> tuple[tuple[str, str], ...]:
    """Return name and SHA-256 of the files that decide a model's answers.

    Within a workflow they are read once after each change; elsewhere nothing is remembered.
    """
    if MEMORY.parent.is_dir():
        return remembered_digests(folder, MEMORY)
    found = []
    for path in content_files(folder):
        status = path.stat()
        digest = _file_digest(str(path), status.st_size, status.st_mtime_ns)
        found.append((path.relative_to(folder).as_posix(), digest))
    return tuple(found)


def model_digest(entry: ModelEntry) -> str:
    """Return a digest of the model's weights, configurations, tokenizer and templates.

    It goes by content: the same files in another folder give the same digest. Raises ModelError
    as `model_folder`, and when the folder holds no weights in the safetensors format.
    """
    folder = model_folder(entry)
    digests = _digests(folder)
    if not any(name.endswith(".safetensors") for name, _ in digests):
        raise ModelError(
            f"{entry.name}: {folder} has no weights in the safetensors format. "
            f"Download the .safetensors files of the model; pickled .bin weights are not loaded."
        )
    digest = hashlib.sha256()
    for name, content in digests:
        digest.update(f"{name}\0{content}\0".encode())
    return digest.hexdigest()[:32]


@functools.cache
def _file_digest(path: str, _size: int, _modified: int) -> str:
    return sha256_of_file(path)
