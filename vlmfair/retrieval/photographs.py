"""Photographs that a dataset has addresses of: fetched politely, checked, kept under their number.

Addresses die. What is missing stays in the list, with the reason and the address it was asked for.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import requests
from PIL import Image

from vlmfair.datasets.images import FORMATS, ImageFault, check_image
from vlmfair.errors import RetrievalError, reason_of
from vlmfair.provenance import sha256_of_file
from vlmfair.retrieval.addresses import RefusedAddressError
from vlmfair.retrieval.client import Client, pieces
from vlmfair.retrieval.fetch import Patience, retry_after
from vlmfair.retrieval.photograph_list import (
    BY_HAND,
    LIST,
    MISSING,
    OK,
    Found,
    Wanted,
    read_list,
    write_list,
)

MAX_BYTES = 32 * 1024 * 1024
_PIECE = 1 << 16
ENDINGS = {
    **{"JPEG": "jpg", "MPO": "jpg", "PNG": "png", "WEBP": "webp"},
    **{"BMP": "bmp", "GIF": "gif", "TIFF": "tif"},
}
_GONE, _FORBIDDEN = (404, 410), (401, 402, 403, 451)
_TRY_AGAIN = (408, 425, 429)
PATIENCE = Patience(attempts=3, first_pause=2.0, longest_pause=60.0)


@dataclass(frozen=True)
class Manners:
    """How servers are treated, and for how long one photograph may take.

    Each server is asked one thing at a time, with a pause of `pause` seconds; `servers` of them at
    once.
    """

    servers: int = 8
    pause: float = 0.25
    seconds: float = 120.0
    max_bytes: int = MAX_BYTES
    patience: Patience = PATIENCE


MANNERS = Manners()


def fetch_photographs(
    wanted: Sequence[Wanted],
    folder: str | os.PathLike[str],
    client: Client,
    manners: Manners = MANNERS,
) -> list[Found]:
    """Fetch each photograph into `folder`/images/<number>.<format> and return what became of each.

    `folder`/photographs.csv has the same, is read at the beginning and written as photographs come:
    what is there is not asked for again, unless its address has changed; what is missing is. Files
    that were put there by hand are left alone. Raises RetrievalError when a number is no file name
    or stands twice.
    """
    _check_numbers(wanted)
    images = Path(folder) / "images"
    images.mkdir(parents=True, exist_ok=True)
    known = {found.number: found for found in read_list(Path(folder) / LIST)}
    there = _files_by_number(images)
    found: dict[str, Found] = {}
    ask = []
    for one in wanted:
        kept = _kept(one, known.get(one.number), there.get(one.number, []), images)
        if kept is None:
            ask.append(one)
        else:
            found[one.number] = kept
    one_at_a_time = threading.Lock()

    def record(result: Found) -> None:
        # At once, because a file that no list names would be taken for one put there by hand.
        with one_at_a_time:
            found[result.number] = result
            write_list(Path(folder) / LIST, found.values(), wanted)

    _ask_politely(ask, images, client, manners, record)
    placeholders = {one.sha256 for one in known.values() if one.status == "placeholder"}
    results = _without_placeholders(wanted, found, images, placeholders)
    write_list(Path(folder) / LIST, results, wanted)
    return results


def _check_numbers(wanted: Sequence[Wanted]) -> None:
    seen: set[str] = set()
    for one in wanted:
        if not one.number.replace("_", "").isalnum() or not one.number.isascii():
            raise RetrievalError(
                f"{one.number!r} is no number of a photograph. Correct the table of addresses."
            )
        if one.number in seen:
            raise RetrievalError(
                f"{one.number}: the number stands twice. Correct the table of addresses."
            )
        seen.add(one.number)


def _files_by_number(images: Path) -> dict[str, list[str]]:
    files: dict[str, list[str]] = defaultdict(list)
    for name in sorted(os.listdir(images)):
        if not name.startswith("."):
            files[name.partition(".")[0]].append(name)
    return files


def _kept(one: Wanted, known: Found | None, files: list[str], images: Path) -> Found | None:
    """Return what is there already, or None where the photograph has to be asked for."""
    if not files:
        return None
    path = images / files[0]
    digest = sha256_of_file(path) if path.is_file() else ""
    ours = known is not None and known.sha256 == digest != "" and known.file == files[0]
    if ours and known is not None and known.address == one.address:
        return known
    if ours:
        # A row's number may mean another photograph in another version of the table.
        path.unlink()
        return None
    return Found(one.number, BY_HAND, one.address, file=files[0], sha256=digest)


def _ask_politely(
    wanted: Sequence[Wanted],
    images: Path,
    client: Client,
    manners: Manners,
    record: Callable[[Found], None],
) -> None:
    """Ask several servers at once, each one for one thing after another."""
    by_server: dict[str, list[Wanted]] = defaultdict(list)
    for one in wanted:
        by_server[_server(one.address)].append(one)

    def ask(queue: Sequence[Wanted]) -> None:
        for place, one in enumerate(queue):
            if place:
                time.sleep(manners.pause)
            record(_fetch(one, images, client, manners))

    # The longest queue decides how long it takes, and begins first.
    queues = sorted(by_server.values(), key=len, reverse=True)
    with ThreadPoolExecutor(manners.servers) as pool:
        for done in [pool.submit(ask, queue) for queue in queues]:
            done.result()


def _server(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _fetch(one: Wanted, images: Path, client: Client, manners: Manners) -> Found:
    """Ask for a photograph until it is there, or it is clear that it will not come."""
    failures = 0
    while True:
        result, wait = _fetch_once(one, images, client, manners)
        failures += 1
        if wait is None or failures >= manners.patience.attempts:
            return result
        time.sleep(manners.patience.pause(failures, wait))


def _fetch_once(
    one: Wanted, images: Path, client: Client, manners: Manners
) -> tuple[Found, float | None]:
    """Return the result, and where another try may help the seconds that the server asks for."""

    def missing(status: str, detail: str, final: str = "") -> Found:
        return Found(one.number, status, one.address, final, detail=" ".join(detail.split())[:300])

    unfinished = images / f".{one.number}.part"
    try:
        with client.open(requests.utils.requote_uri(one.address.strip())) as answer:
            final, status = answer.url, answer.status_code
            said = f"the server answers {status}"
            if status in _GONE:
                return missing("gone", said, final), None
            if status in _FORBIDDEN:
                return missing("forbidden", said, final), None
            if status != 200:
                again = (
                    retry_after(answer.headers) if status in _TRY_AGAIN or status > 499 else None
                )
                return missing("server_error", said, final), again
            fault = _receive(answer, unfinished, manners)
        if fault:
            return missing(fault, MISSING[fault], final), 0.0 if fault == "timed_out" else None
        return _kept_image(one, unfinished, images, final), None
    except RefusedAddressError as error:
        return missing("refused", str(error)), None
    except (requests.Timeout, TimeoutError) as error:
        return missing("timed_out", reason_of(error)), 0.0
    except (requests.exceptions.InvalidURL, UnicodeError) as error:
        return missing("refused", reason_of(error)), None
    except RetrievalError as error:
        return missing("gone", str(error)), None
    except requests.RequestException as error:
        return missing("unreachable", reason_of(error)), 0.0
    finally:
        unfinished.unlink(missing_ok=True)


def _receive(answer: requests.Response, path: Path, manners: Manners) -> str:
    """Write the answer's content; return a key of MISSING where it is too large or too slow."""
    announced = answer.headers.get("Content-Length", "")
    if announced.isdigit() and int(announced) > manners.max_bytes:
        return "too_large"
    end, size = time.monotonic() + manners.seconds, 0
    with path.open("wb") as written:
        for piece in pieces(answer, _PIECE):
            size += len(piece)
            if size > manners.max_bytes:
                return "too_large"
            if time.monotonic() > end:
                return "timed_out"
            written.write(piece)
    return ""


def _kept_image(one: Wanted, path: Path, images: Path, final: str) -> Found:
    """Prove that the file is an image, whatever its address ends in, and give it its name."""
    facts = check_image(path)
    if isinstance(facts, ImageFault):
        status = "too_large" if facts.reason == "image_too_large" else "no_image"
        return Found(one.number, status, one.address, final, detail=facts.detail)
    with Image.open(path, formats=FORMATS) as image:
        ending = ENDINGS[image.format or ""]
    size, name = path.stat().st_size, f"{one.number}.{ending}"
    os.replace(path, images / name)
    return Found(
        one.number, OK, one.address, final, name, size, facts.sha256, facts.width, facts.height
    )


def _without_placeholders(
    wanted: Sequence[Wanted], found: Mapping[str, Found], images: Path, known: set[str]
) -> list[Found]:
    """Take out the pictures that a server sends in place of photographs that it lost.

    Bytes that come for different photographs are such a picture when a redirect led to them, or
    one server sends them; news sites may have one photograph under addresses of their own.
    """
    photographs = {one.number: one.photograph for one in wanted}
    by_bytes: dict[str, list[Found]] = defaultdict(list)
    for one in found.values():
        if one.status == OK:
            by_bytes[one.sha256].append(one)
    results = dict(found)
    for digest, same in by_bytes.items():
        several = len({photographs[one.number] for one in same}) > 1
        if not (digest in known or (several and _one_sender(same))):
            continue
        others = ", ".join(sorted(one.number for one in same))
        for one in same:
            (images / one.file).unlink(missing_ok=True)
            detail = f"the same bytes came for {others}"
            results[one.number] = replace(one, status="placeholder", file="", detail=detail)
    return [results[one.number] for one in wanted]


def _one_sender(same: Sequence[Found]) -> bool:
    redirected = any(_place(one.address) != _place(one.final_address) for one in same)
    senders = [_server(one.final_address) for one in same]
    return redirected or len(set(senders)) < len(senders)


def _place(address: str) -> tuple[str, str]:
    """Return server and path: a redirect to https, or to the name with www, is none that counts."""
    try:
        parts = urlsplit(address.strip())
        return (parts.hostname or "").removeprefix("www."), parts.path.rstrip("/")
    except ValueError:
        return "", address
