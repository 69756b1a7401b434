"""The sheet of models: what each entry states, and where its files lie.

Neither torch nor transformers is imported here, because planning needs the sheet without them.
"""

from __future__ import annotations

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
from vlmfair.models.weights import content_files
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
    # None for a model whose weights are loaded; a served one has no family, dtype or attention.
    api: ApiSettings | None = None
    # The file that the entry stands in, for messages.
    sheet: str = field(default=DEFAULT_SHEET, compare=False)

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
    """Read the sheet of models; `name` is what messages call it, its path if left out.

    Raises ConfigError on a key that is unknown, missing or wrong.
    """
    content, sheet = read_yaml(path), name or str(path)
    check_config(content, schema, sheet)
    return {key: make_entry(key, raw, sheet) for key, raw in content["models"].items()}


def make_entry(name: str, settings: Mapping[str, Any], sheet: str = DEFAULT_SHEET) -> ModelEntry:
    """Return the entry of one model from its settings, which the schema has passed.

    A served model (`backend: openai`) gets the family openai, and unknown as dtype and attention.
    Raises ConfigError when both a path and a repository are given, on a key of the other backend,
    and on a base_url that is no address.
    """
    if settings.get("backend") == BACKEND:
        shared = {key: settings[key] for key in SHARED_KEYS & set(settings)}
        api = make_api_settings(name, settings, sheet)
        return ModelEntry(name, BACKEND, "unknown", "unknown", sheet=sheet, api=api, **shared)
    refuse_api_keys(name, settings, sheet)
    if "path" in settings and "repository" in settings:
        raise ConfigError(
            f"{sheet}: {name}: path and repository both say where the model is. Keep one of them."
        )
    own = {key: value for key, value in settings.items() if key != "backend"}
    return ModelEntry(name=name, sheet=sheet, **own)


def model_folder(entry: ModelEntry) -> Path:
    """Return the folder of a model's files; nothing is downloaded.

    Raises ModelError when the folder is missing, a repository is not pinned to a commit or not
    downloaded, or remote code is asked for without a pinned revision.
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
            f"{entry.sheet}: {entry.name}: revision is missing. "
            f"Write revision: <40-hex commit of the model repository>."
        )
    return _downloaded_snapshot(entry.name, str(entry.repository), str(entry.revision))


def _downloaded_snapshot(name: str, repository: str, revision: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(repository, revision=revision, local_files_only=True))
    except LocalEntryNotFoundError as error:
        raise ModelError(
            f"{name}: {repository} at {revision} is not downloaded. "
            f"Run: hf download {repository} --revision {revision} "
            f"(a gated model also needs hf auth login and its licence accepted on its page)."
        ) from error


def model_digest(entry: ModelEntry) -> str:
    """Return a digest of the model's weights, configurations, tokenizer and templates.

    It goes by content: the same files in another folder give the same digest. Raises ModelError
    as `model_folder`, and when the folder holds no weights in the safetensors format.
    """
    folder = model_folder(entry)
    files = content_files(folder)
    if not any(path.suffix == ".safetensors" for path in files):
        raise ModelError(
            f"{entry.name}: {folder} has no weights in the safetensors format. "
            f"Download the .safetensors files of the model; pickled .bin weights are not loaded."
        )
    digest = hashlib.sha256()
    for path in files:
        status = path.stat()
        content = _file_digest(str(path), status.st_size, status.st_mtime_ns)
        digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\0".encode())
    return digest.hexdigest()[:32]


@functools.cache
def _file_digest(path: str, _size: int, _modified: int) -> str:
    return sha256_of_file(path)
