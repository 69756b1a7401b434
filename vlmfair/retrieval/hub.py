"""Downloading one file of a dataset from the Hugging Face hub, at the commit that it then has."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
from huggingface_hub.errors import GatedRepoError

from vlmfair.errors import RetrievalError, reason_of
from vlmfair.provenance import sha256_of_file
from vlmfair.retrieval.fetch import FetchedFile

_SHA256 = re.compile(r"[0-9a-f]{64}")


def fetch_from_hub(
    repository: str,
    name: str,
    folder: str | os.PathLike[str],
    *,
    at_most: int,
    revision: str = "main",
    endpoint: str | None = None,
) -> FetchedFile:
    """Download `name` of a dataset repository below `folder`, continued where it broke off.

    `at_most` bytes are taken; `endpoint` is another server than the hub. The address that is
    returned has the commit instead of a branch. Raises RetrievalError when the file is gated, too
    large, cannot be fetched, or has another SHA-256 than the hub states.
    """
    target = Path(folder) / name
    try:
        found = get_hf_file_metadata(
            hf_hub_url(repository, name, repo_type="dataset", revision=revision, endpoint=endpoint),
            endpoint=endpoint,
        )
        size, free = found.size or 0, shutil.disk_usage(_existing(target.parent)).free
        if not 0 < size <= at_most:
            raise _failed(repository, name, f"it has {size} bytes of at most {at_most}")
        if size > free:
            raise _failed(repository, name, f"it needs {size} bytes, and {free} are free")
        commit = found.commit_hash or revision
        hf_hub_download(
            repository, name, repo_type="dataset", revision=commit, local_dir=Path(folder),
            endpoint=endpoint,
        )  # fmt: skip
    except GatedRepoError:
        raise RetrievalError(
            f"{repository}: the dataset is gated. Accept its terms at "
            f"https://huggingface.co/datasets/{repository}, log in with `hf auth login`, and run "
            f"again."
        ) from None
    except RetrievalError:
        raise
    except Exception as error:  # those of the library and of its web client have no common base
        raise _failed(repository, name, reason_of(error)[:300]) from error
    digest = sha256_of_file(target)
    # Large files have their SHA-256 as their tag, small ones another hash.
    if found.etag and _SHA256.fullmatch(found.etag) and found.etag != digest:
        target.unlink()
        raise _failed(repository, name, f"its SHA-256 is {digest}, and the hub says {found.etag}")
    address = hf_hub_url(repository, name, repo_type="dataset", revision=commit, endpoint=endpoint)
    return FetchedFile(target, target.stat().st_size, digest, address)


def _existing(folder: Path) -> Path:
    return next(place for place in (folder, *folder.absolute().parents) if place.is_dir())


def _failed(repository: str, name: str, why: str) -> RetrievalError:
    return RetrievalError(
        f"{repository}: {name} could not be downloaded ({why}). Run again later, or fetch it by "
        f"hand from https://huggingface.co/datasets/{repository}."
    )
