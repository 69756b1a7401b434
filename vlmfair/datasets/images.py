"""Finding images below a raw folder, and proving that each one can be decoded to its last pixel."""

from __future__ import annotations

import filecmp
import hashlib
import io
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image

MAX_PIXELS = 50_000_000
MAX_BYTES = 128 * 1024 * 1024
# Formats that photographs come in. Pillow's full list would hand an `.eps` to another program.
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")
BATCH = 4096
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class ImageFacts:
    """An image that decodes: SHA-256 of the file's bytes, width and height in pixels."""

    sha256: str
    width: int
    height: int


@dataclass(frozen=True)
class ImageFault:
    """Why an image cannot be used: a reason code of `base.REASONS` and what was seen."""

    reason: str
    detail: str


@dataclass(frozen=True)
class Place:
    """Where a labelled image lies; without a path, or with another case, it has a reason."""

    path: Path | None
    reason: str = ""
    detail: str = ""


def check_image(path: str | os.PathLike[str]) -> ImageFacts | ImageFault:
    """Read and decode an image wholly; never raises for what a file may contain.

    The header's size is checked before decoding, so that a small file cannot fill the memory.
    """
    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            return ImageFault("image_unreadable", "not a regular file")
        if status.st_size == 0:
            return ImageFault("image_empty", "the file has 0 bytes")
        if status.st_size > MAX_BYTES:
            return ImageFault("image_too_large", f"the file has {status.st_size} bytes")
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return ImageFault("image_missing", "no such file in the raw folder")
    except OSError as error:
        return ImageFault("image_unreadable", _sentence(error))
    return _decode(content)


def _decode(content: bytes) -> ImageFacts | ImageFault:
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            width, height = image.size
            if width * height > MAX_PIXELS:
                return ImageFault("image_too_large", f"the picture has {width} x {height} pixels")
            image.load()
            if image.mode != "RGB":
                image.convert("RGB")
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        return ImageFault("image_too_large", _sentence(error))
    except Exception as error:  # decoders raise whatever a broken file leads them to
        return ImageFault("image_unreadable", _sentence(error))
    return ImageFacts(hashlib.sha256(content).hexdigest(), width, height)


def _sentence(error: BaseException) -> str:
    # The object's address in memory would make two runs differ.
    text = " ".join(str(error).split()).partition(" <_io.")[0]
    return f"{type(error).__name__}: {text}"[:300]


Check = Callable[[Path], ImageFacts | ImageFault]
_CHECK: ContextVar[Check | None] = ContextVar("check", default=None)


def check_images(paths: Sequence[Path], threads: int) -> Iterator[ImageFacts | ImageFault]:
    """Yield the result of `check_image` for each path, in order, with `threads` threads."""
    check = _CHECK.get() or check_image
    if threads <= 1:
        yield from map(check, paths)
        return
    with ThreadPoolExecutor(threads) as pool:
        for start in range(0, len(paths), BATCH):
            yield from pool.map(check, paths[start : start + BATCH])


@contextmanager
def without_opening() -> Iterator[list[Path]]:
    """Within the block, `check_images` takes a file with content for an image, and opens none.

    Yields a list that takes the path of each. What a parser makes of it is good for counting:
    digests are those of paths, and pictures have no size.
    """
    seen: list[Path] = []

    def look(path: Path) -> ImageFacts | ImageFault:
        try:
            status = path.stat()
        except OSError:
            return ImageFault("image_missing", "no such file in the raw folder")
        if not stat.S_ISREG(status.st_mode):
            return ImageFault("image_unreadable", "not a regular file")
        if status.st_size == 0:
            return ImageFault("image_empty", "the file has 0 bytes")
        seen.append(path)
        return ImageFacts(hashlib.sha256(os.fsencode(path)).hexdigest(), 0, 0)

    token = _CHECK.set(look)
    try:
        yield seen
    finally:
        _CHECK.reset(token)


@dataclass
class _Listing:
    names: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    by_lower_case: dict[str, list[str]] = field(default_factory=dict)


class ImageFolder:
    """Finds labelled images below a raw folder, in any of the layouts that users unpack.

    `layouts` are folders below `raw_dir` that may hold the images, "" for `raw_dir` itself. Names
    are looked up in folder listings, so that a hostile path never reaches the file system.
    """

    def __init__(self, raw_dir: Path, layouts: Sequence[str]) -> None:
        self.raw_dir = raw_dir
        self.layouts = tuple(layouts)
        self._real_root = os.path.realpath(raw_dir)
        self._listings: dict[Path, _Listing] = {}
        self._inside: dict[Path, bool] = {}

    def has_folder(self, name: str) -> bool:
        """Return whether a folder of that name (in any case) is in one of the layouts."""
        places = (self._walk([*_parts(layout), name]) for layout in self.layouts)
        return any(path is not None and path.is_dir() for path, _ in places)

    def find(self, relative: str) -> Place:
        """Return where the image of a clean relative path (`train/1.jpg`) lies.

        An exact match in any layout goes before one that differs in case.
        """
        matches = [self._walk([*_parts(layout), *_parts(relative)]) for layout in self.layouts]
        for exactly in (True, False):
            for path, exact in matches:
                if path is not None and exact is exactly:
                    return self._place(path, exact)
        if any(not exact for _, exact in matches):
            return Place(None, "image_missing", "several files differ from it in case only")
        return Place(None, "image_missing", "no such file in the raw folder")

    def is_ambiguous(self, relative: str) -> bool:
        """Return whether several layouts have a file of exactly this name, but not the same one."""
        matches = [self._walk([*_parts(layout), *_parts(relative)]) for layout in self.layouts]
        found = [path for path, exact in matches if path is not None and exact]
        inside = [path for path in found if self._is_inside(path)]
        return any(not _same_bytes(inside[0], other) for other in inside[1:])

    def _place(self, path: Path, exact: bool) -> Place:
        if not self._is_inside(path):
            return Place(None, "path_outside", "a link on the path leaves the raw folder")
        if exact:
            return Place(path)
        return Place(path, "other_case", f"found as {path.relative_to(self.raw_dir).as_posix()}")

    def _walk(self, parts: list[str]) -> tuple[Path | None, bool]:
        """Return the path and whether every part matched exactly; (None, False): ambiguous."""
        folder, exact = self.raw_dir, True
        for part in parts:
            listing = self._list(folder)
            if part not in listing.names:
                similar = listing.by_lower_case.get(part.casefold(), [])
                if len(similar) != 1:
                    return None, not similar
                part, exact = similar[0], False
            folder = folder / part
        return folder, exact

    def _list(self, folder: Path) -> _Listing:
        if folder not in self._listings:
            listing = _Listing()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        listing.names.add(entry.name)
                        listing.by_lower_case.setdefault(entry.name.casefold(), []).append(
                            entry.name
                        )
                        if entry.is_symlink():
                            listing.links.add(entry.name)
            except OSError:
                listing = _Listing()
            self._listings[folder] = listing
        return self._listings[folder]

    def _is_inside(self, path: Path) -> bool:
        folder = path.parent
        if folder not in self._inside:
            self._inside[folder] = self._leads_inside(folder)
        if path.name in self._list(folder).links:
            return self._leads_inside(path)
        return self._inside[folder]

    def _leads_inside(self, path: Path) -> bool:
        real = os.path.realpath(path)
        return real == self._real_root or real.startswith(self._real_root.rstrip(os.sep) + os.sep)


def _parts(relative: str) -> list[str]:
    return [part for part in relative.split("/") if part not in ("", ".")]


def _same_bytes(one: Path, other: Path) -> bool:
    try:
        return filecmp.cmp(one, other, shallow=False)
    except OSError:
        return False


def path_fault(path: str) -> str:
    """Return the reason code for a path as a label file states it, or "" when it is clean.

    Clean means: relative, no `..`, no drive letter, no control characters, not empty.
    """
    parts = path.split("/")
    if path.startswith("/") or ".." in parts or ":" in parts[0]:
        return "path_outside"
    if not path.strip("/ .") or _CONTROL.search(path):
        return "invalid_path"
    return ""
