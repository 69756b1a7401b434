"""Downloading one file: continued where it broke off, tried again, measured and checked.

Libraries that download whole datasets begin a broken file anew; some of these have 20 GB.
"""

from __future__ import annotations

import json
import logging
import os
import random
import re
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from filelock import FileLock
from tqdm import tqdm

from vlmfair.errors import RetrievalError, reason_of
from vlmfair.provenance import sha256_of_file, write_json
from vlmfair.retrieval.client import Client, pieces

PIECE = 1 << 20
# Failures in a row without a new byte, after which a server is given up.
ATTEMPTS = 5
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 120.0
TOO_MANY_REQUESTS, TIMED_OUT = 429, 408
OK, PARTIAL, RANGE_IS_WRONG = 200, 206, 416
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
_WEB_PAGE = re.compile(rb"\s*<(!doctype html|html)", re.IGNORECASE)


@dataclass(frozen=True)
class RemoteFile:
    """A file as the registry of datasets describes it.

    `addresses` are its source and its mirrors, tried in this order. `size` is its exact number of
    bytes, None where none is published, `at_most` the number at which a download stops. `sha256`
    is the digest, or its first digits, or "" where none is published.
    """

    name: str
    addresses: tuple[str, ...]
    at_most: int
    size: int | None = None
    sha256: str = ""


@dataclass(frozen=True)
class FetchedFile:
    """A file that was downloaded whole: where it lies, its bytes, its digest and its address."""

    path: Path
    size: int
    sha256: str
    address: str


@dataclass(frozen=True)
class Patience:
    """How often and after how many seconds a failed request is repeated."""

    attempts: int = ATTEMPTS
    first_pause: float = FIRST_PAUSE
    longest_pause: float = LONGEST_PAUSE

    def pause(self, failures: int, asked_for: float = 0.0) -> float:
        """Return the seconds to wait after so many failures, at least those a server asks for."""
        doubled = self.first_pause * 2 ** (failures - 1) * random.uniform(0.75, 1.25)
        return float(min(max(doubled, asked_for), self.longest_pause))


PATIENCE = Patience()


class _GivenUpError(Exception):
    """One address cannot give the file; the next one may."""


class _TryAgainError(Exception):
    """A failure that may be over in a while; `wait` are the seconds that the server asks for."""

    def __init__(self, why: str, wait: float = 0.0) -> None:
        super().__init__(why)
        self.wait = wait


def fetch(
    file: RemoteFile,
    folder: str | os.PathLike[str],
    client: Client,
    patience: Patience = PATIENCE,
) -> FetchedFile:
    """Download a file into `folder`, and return it; one that is there and right is not asked for.

    What has come stays in `<name>.part` and is continued by a later call, also of another process.
    Raises RetrievalError when no address gives the file, when it is larger than announced, its
    digest is another, or the disk has no room for it.
    """
    target = Path(folder) / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        if target.is_file():
            digest = sha256_of_file(target)
            if _is_right(file, target.stat().st_size, digest):
                return FetchedFile(target, target.stat().st_size, digest, file.addresses[0])
            raise RetrievalError(
                f"{target}: the file is not the one that is announced (its size or SHA-256 "
                f"differs). Move it away and run again."
            )
        reasons = []
        for address in file.addresses:
            try:
                return _Download(file, address, target, client, patience).run()
            except _GivenUpError as error:
                reasons.append(f"{address}: {reason_of(error)}")
    raise RetrievalError(
        f"{file.name} could not be downloaded ({'; '.join(reasons)}). Run again later, or fetch it "
        f"by hand into {target.parent}."
    )


def _is_right(file: RemoteFile, size: int, digest: str) -> bool:
    return file.size in (None, size) and digest.startswith(file.sha256)


class _Download:
    """One file from one address."""

    def __init__(
        self, file: RemoteFile, address: str, target: Path, client: Client, patience: Patience
    ) -> None:
        self.file, self.address, self.target = file, address, target
        self.client, self.patience = client, patience
        self.part = target.with_name(f"{target.name}.part")
        self.about = target.with_name(f"{target.name}.part.json")

    def run(self) -> FetchedFile:
        failures, furthest = 0, self._have()
        while True:
            try:
                self._continue()
                return self._finished()
            except requests.RequestException as error:
                why, wait = reason_of(error), 0.0
            except _TryAgainError as error:
                why, wait = reason_of(error), error.wait
            # A line that breaks every gigabyte still brings the file.
            failures = 1 if self._have() > furthest else failures + 1
            furthest = max(furthest, self._have())
            if failures >= self.patience.attempts:
                raise _GivenUpError(why[:300])
            pause = self.patience.pause(failures, wait)
            logging.info("%s: %s; trying again in %.0f s", self.file.name, why[:300], pause)
            time.sleep(pause)

    def _have(self) -> int:
        return self.part.stat().st_size if self.part.is_file() else 0

    def _continue(self) -> None:
        """Ask for what is missing, and add it to what is there."""
        start, validator = self._have(), self._validator()
        if not validator:
            start = 0
        if start and start == self.file.size:
            return
        headers = {"Range": f"bytes={start}-", "If-Range": validator} if start else {}
        with self.client.open(self.address, headers) as answer:
            if answer.status_code == RANGE_IS_WRONG and start:
                self._forget()
                raise _TryAgainError("the part that is there fits no more")
            _check_status(answer)
            start, total = _range(answer, start)
            self._check_total(total, start)
            self._remember(answer)
            self._receive(answer, start, total)

    def _validator(self) -> str:
        """Return what says whether the file on the server is still the one that was begun."""
        try:
            about = json.loads(self.about.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return ""
        return str(about.get("validator", "")) if about.get("address") == self.address else ""

    def _remember(self, answer: Any) -> None:
        tag = answer.headers.get("ETag", "")
        # A weak tag says that the content means the same, not that its bytes are.
        validator = tag if tag and not tag.startswith("W/") else ""
        validator = validator or answer.headers.get("Last-Modified", "")
        write_json(self.about, {"address": self.address, "validator": validator})

    def _check_total(self, total: int | None, start: int) -> None:
        if total is None:
            return
        if self.file.size is not None and total != self.file.size:
            raise _GivenUpError(f"the server has {total} bytes, and {self.file.size} are announced")
        if total > self.file.at_most:
            raise _GivenUpError(f"{total} bytes are more than the {self.file.at_most} expected")
        free = shutil.disk_usage(self.target.parent).free
        if total - start > free:
            raise RetrievalError(
                f"{self.target.parent}: {self.file.name} needs {total - start} bytes more, and "
                f"{free} are free. Free space and run again; what has come is kept."
            )

    def _receive(self, answer: Any, start: int, total: int | None) -> None:
        name = self.file.name
        bar = tqdm(
            total=total, initial=start, desc=name, unit="B", unit_scale=True,
            mininterval=1 if sys.stderr.isatty() else 15, file=sys.stderr,
        )  # fmt: skip
        with bar, self.part.open("r+b" if start else "wb") as written:
            written.truncate(start)
            written.seek(start)
            have = start
            for piece in pieces(answer, PIECE):
                if not have and _WEB_PAGE.match(piece) and not name.endswith((".html", ".htm")):
                    raise _GivenUpError("the server sent a web page in place of the file")
                have += len(piece)
                if have > self.file.at_most:
                    raise _GivenUpError(f"more than {self.file.at_most} bytes came")
                written.write(piece)
                bar.update(len(piece))
        if total is not None and have != total:
            raise _TryAgainError(f"the connection ended after {have} of {total} bytes")

    def _finished(self) -> FetchedFile:
        size, digest = self._have(), sha256_of_file(self.part)
        if not _is_right(self.file, size, digest):
            self._forget()
            raise _GivenUpError(
                f"what came has {size} bytes and the SHA-256 {digest}, which is not the announced "
                f"one, and was deleted"
            )
        os.replace(self.part, self.target)
        self.about.unlink(missing_ok=True)
        return FetchedFile(self.target, size, digest, self.address)

    def _forget(self) -> None:
        self.part.unlink(missing_ok=True)
        self.about.unlink(missing_ok=True)


def _check_status(answer: Any) -> None:
    status = answer.status_code
    if status in (OK, PARTIAL):
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            raise _GivenUpError("the server compresses the file, so that its size means nothing")
        return
    said = f"the server answers {status} {answer.reason or ''}".strip()
    if status in (TOO_MANY_REQUESTS, TIMED_OUT) or status >= 500:
        raise _TryAgainError(said, retry_after(answer.headers))
    raise _GivenUpError(said)


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds that a server asks to wait; 0 where it does not, or names a day."""
    text = headers.get("Retry-After", "").strip()
    return float(text) if text.isdigit() else 0.0


def _range(answer: Any, start: int) -> tuple[int, int | None]:
    """Return where the answer begins and how many bytes the whole file has, if that is told."""
    if answer.status_code == OK:
        length = answer.headers.get("Content-Length", "")
        return 0, int(length) if length.isdigit() else None
    found = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
    if found is None or int(found[1]) != start:
        raise _TryAgainError("the server sent another part than it was asked for")
    return start, None if found[2] == "*" else int(found[2])
