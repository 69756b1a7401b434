"""Downloading models from the Hugging Face hub, locking what came, and comparing it later."""

from __future__ import annotations

import glob
import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from vlmfair.errors import ModelError
from vlmfair.models.components import Component
from vlmfair.models.hub_files import hub_cache, is_wanted, snapshot_folder, wanted_files
from vlmfair.models.lock import (
    LockedFile,
    LockedModel,
    add_to_lock,
    check_files,
    check_source,
    lock_path,
    read_lock,
)
from vlmfair.models.readiness import needs_legacy_environment
from vlmfair.models.registry import ModelEntry
from vlmfair.models.weights import remembered_digests

# Pauses in seconds before a download that broke off is taken up where it stopped.
PAUSES = (2.0, 10.0, 30.0)
HOW_TO_GET_IN = (
    "Accept the licence on https://huggingface.co/{repository} with your account, run hf auth "
    "login on this machine, and run snakemake fetch_models again."
)


@dataclass(frozen=True)
class Source:
    """One repository to download: `folder` None is the hub's own cache."""

    name: str
    repository: str
    sheet: str
    revision: str | None = None
    trust_remote_code: bool = False
    folder: str | None = None
    skip: tuple[str, ...] = ()
    brings_code: bool = False

    @property
    def patterns(self) -> tuple[list[str], list[str]]:
        """Patterns of the files that are fetched, and of those among them that are not."""
        return wanted_files(self.trust_remote_code, self.skip)


@dataclass(frozen=True)
class Fetched:
    """Where a model lies, what is locked of it, and whether files were downloaded for it."""

    name: str
    folder: Path
    locked: LockedModel
    downloaded: bool


def source_of_model(entry: ModelEntry) -> Source | None:
    """Return what is downloaded for a model of the sheet; None for one that lies in a folder.

    Weights that a server of one's own serves are downloaded where their repository is stated.
    """
    if entry.repository is None:
        return None
    return Source(
        entry.name,
        entry.repository,
        entry.sheet,
        entry.revision,
        entry.trust_remote_code,
        brings_code=entry.api is None and needs_legacy_environment(entry.family),
    )


def source_of_component(component: Component, sheet: str) -> Source:
    """Return what is downloaded for an encoder or a text-to-image pipeline."""
    return Source(
        component.name,
        component.repository,
        sheet,
        component.revision,
        folder=component.folder,
        skip=component.skip,
    )


def fetch_model(
    source: Source,
    *,
    memory: Path,
    cache: Path | None = None,
    endpoint: str | None = None,
    pauses: tuple[float, ...] = PAUSES,
) -> Fetched:
    """Download a model if it is not there, and lock it or compare it with what is locked.

    What is there and locked is compared without asking the hub; `memory` keeps digests, so that
    unchanged weights are read once. A download goes on where an earlier one stopped, and each
    file's SHA-256 is compared with the hub's where the hub has one. Raises ModelError when the hub
    cannot be reached, refuses, has no safetensors or other files than were locked, when the disk is
    too small, and when the model brings code that nobody has trusted.
    """
    lock = lock_path(source.sheet)
    locked = read_lock(lock).get(source.name)
    if locked is not None:
        check_source(source.name, source.repository, source.revision, locked, source.sheet)
        folder = _folder_with_all(source, locked, cache)
        if folder is not None:
            _compare(source, folder, locked, memory)
            return Fetched(source.name, folder, locked, downloaded=False)
    with _explained(source):
        listed = _listing(source, locked, endpoint)
    _check_listing(source, listed)
    _check_disk(source, sum(size for size, _ in listed.files.values()), cache)
    folder = _download(source, listed, cache, endpoint, pauses)
    digests = dict(remembered_digests(folder, memory, [folder / file for file in listed.files]))
    _check_arrived(source, folder, listed, digests)
    files = {
        file: LockedFile((folder / file).stat().st_size, digests[file]) for file in listed.files
    }
    own = LockedModel(source.repository, listed.revision, MappingProxyType(files), listed.gated)
    kept = add_to_lock(lock, source.name, own)
    if kept.revision != listed.revision and source.revision is None:
        # Another job locked an older commit in the meantime.
        return fetch_model(source, memory=memory, cache=cache, endpoint=endpoint, pauses=pauses)
    check_source(source.name, source.repository, listed.revision, kept, source.sheet)
    _compare(source, folder, kept, memory)
    return Fetched(source.name, folder, kept, downloaded=True)


@dataclass(frozen=True)
class _Listing:
    """A commit's files that are wanted: size, and SHA-256 where the hub states it."""

    revision: str
    gated: str
    files: dict[str, tuple[int, str | None]]
    pickled: bool


def _listing(source: Source, locked: LockedModel | None, endpoint: str | None) -> _Listing:
    from huggingface_hub import HfApi

    revision = locked.revision if locked is not None else source.revision
    info = HfApi(endpoint=endpoint).model_info(
        source.repository, revision=revision or "main", files_metadata=True
    )
    files, pickled = {}, False
    for sibling in info.siblings or []:
        name = sibling.rfilename
        pickled |= name.endswith((".bin", ".pt", ".pth", ".ckpt"))
        if is_wanted(name, *source.patterns):
            files[name] = (sibling.size or 0, sibling.lfs.sha256 if sibling.lfs else None)
    return _Listing(str(info.sha), str(info.gated or "open"), files, pickled)


def _check_listing(source: Source, listed: _Listing) -> None:
    """Refuse what could not be used before gigabytes of it are on their way."""
    if not any(name.endswith(".safetensors") for name in listed.files):
        only = "only pickled ones, which can run code and" if listed.pickled else "and they"
        raise ModelError(
            f"{source.name}: {source.repository} at {listed.revision} has no weights in the "
            f"safetensors format, {only} are not loaded. Pin a revision that has them, or convert "
            f"the weights into a folder of your own and write path: <folder> in {source.sheet}."
        )
    if source.brings_code and not source.trust_remote_code:
        raise ModelError(
            f"{source.name}: {source.repository} brings its own code. Read it at "
            f"https://huggingface.co/{source.repository}/tree/{listed.revision}, and if you trust "
            f"it write trust_remote_code: true and revision: {listed.revision} in {source.sheet}."
        )


def _check_disk(source: Source, size: int, cache: Path | None) -> None:
    place = Path(source.folder) if source.folder else cache or hub_cache()
    there = next(part for part in (place.absolute(), *place.absolute().parents) if part.exists())
    free = shutil.disk_usage(there).free
    if size > free:
        raise ModelError(
            f"{source.name}: {source.repository} has {size / 1e9:.1f} GB, and {there} has "
            f"{free / 1e9:.1f} GB free. Free some, or set HF_HOME to a larger disk."
        )


def _download(
    source: Source,
    listed: _Listing,
    cache: Path | None,
    endpoint: str | None,
    pauses: tuple[float, ...],
) -> Path:
    """Return the folder of a whole download; each try goes on where the last one broke off."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    place: dict[str, Any] = (
        {"local_dir": source.folder} if source.folder else {"cache_dir": cache or hub_cache()}
    )
    for pause in (*pauses, None):
        try:
            with _explained(source):
                return Path(
                    snapshot_download(
                        source.repository,
                        revision=listed.revision,
                        allow_patterns=[glob.escape(name) for name in listed.files],
                        endpoint=endpoint,
                        **place,
                    )
                )
        except ModelError as error:
            refused = isinstance(error.__cause__, GatedRepoError | RepositoryNotFoundError)
            if refused or pause is None:
                raise
            logging.warning("%s Trying again in %g s.", error, pause)
            time.sleep(pause)
    raise AssertionError("the last try returns or raises")


@contextmanager
def _explained(source: Source) -> Iterator[None]:
    """Turn the hub's errors into one sentence each."""
    from huggingface_hub.errors import (
        GatedRepoError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        yield
    except GatedRepoError as error:
        raise ModelError(
            f"{source.name}: {source.repository} is gated. "
            f"{HOW_TO_GET_IN.format(repository=source.repository)}"
        ) from error
    except RevisionNotFoundError as error:
        raise ModelError(
            f"{source.name}: {source.repository} has no commit {source.revision}. "
            f"Correct revision in {source.sheet}, or leave it out to lock the newest one."
        ) from error
    except RepositoryNotFoundError as error:
        raise ModelError(
            f"{source.name}: the hub has no {source.repository}, or hides it from this login. "
            f"Correct repository in {source.sheet}, or run hf auth login."
        ) from error
    # The hub's client has errors of its own and of the library below it that changes its name.
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        reason = lines[0].rstrip(".")[:200]
        raise ModelError(
            f"{source.name}: {source.repository} cannot be downloaded ({reason}). Look after the "
            f"connection and run snakemake fetch_models again; what has come stays."
        ) from error


def _check_arrived(source: Source, folder: Path, listed: _Listing, digests: dict[str, str]) -> None:
    damaged = [
        name
        for name, (_, stated) in listed.files.items()
        if stated is not None and digests[name] != stated
    ]
    if damaged:
        for name in damaged:
            # In the hub's cache the name is a link to the content.
            (folder / name).resolve().unlink(missing_ok=True)
            (folder / name).unlink(missing_ok=True)
        raise ModelError(
            f"{source.name}: {', '.join(damaged)} came damaged: the SHA-256 is not the hub's. It "
            f"has been deleted. Run snakemake fetch_models again."
        )


def _folder_with_all(source: Source, locked: LockedModel, cache: Path | None) -> Path | None:
    """Return the folder of a locked model when all its files are there."""
    folder = snapshot_folder(source.repository, locked.revision, cache or hub_cache())
    folder = Path(source.folder) if source.folder else folder
    there = all((folder / name).is_file() for name in locked.files)
    return folder if there else None


def _compare(source: Source, folder: Path, locked: LockedModel, memory: Path) -> None:
    there = [folder / name for name in locked.files if (folder / name).is_file()]
    digests = dict(remembered_digests(folder, memory, there))
    check_files(source.name, folder, digests, locked, source.sheet)
