"""Unpacking archives of others: nothing outside the folder, no links, and no more than expected."""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from vlmfair.errors import RetrievalError, reason_of

MOST_MEMBERS = 5_000_000
TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
ZIP = ".zip"
_PIECE = 1 << 20


@dataclass(frozen=True)
class Unpacked:
    """How many files and bytes an archive had, and the folders and files at its top."""

    files: int
    size: int
    top: tuple[str, ...]


@dataclass(frozen=True)
class _Member:
    path: str
    size: int


class _Archive(Protocol):
    def members(self) -> Iterator[_Member]:
        """Check and yield every file of the archive, without its content."""

    def contents(self) -> Iterator[tuple[_Member, IO[bytes]]]:
        """Yield every file again, with its content."""


def unpack(
    archive: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    at_most: int,
    inside: str = "",
) -> Unpacked:
    """Unpack a zip or tar file into `folder`, and return what it had.

    Every name is checked before anything is written: relative, within the folder, no link, no
    device, no password, and `at_most` bytes in all. Each file appears whole or not at all; one
    that is there with the same size stays, so that an interrupted call is continued. With `inside`,
    the files go into that folder below `folder`, whether or not the archive has it, too. Raises
    RetrievalError on what is refused, a damaged archive, and a file there with another size.
    """
    path, root = Path(archive), Path(folder)
    opened = _opened(path, at_most)
    try:
        members = list(opened.members())
        places = _places(path, members, inside)
        total = sum(member.size for member in members)
        _check_room(path, root, total, at_most)
        with _Writer(path, root, at_most) as writer:
            for member, content in opened.contents():
                writer.write(places[member.path], member, content)
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        zlib.error,
        EOFError,
        NotImplementedError,
    ) as error:
        raise RetrievalError(
            f"{path}: the archive is damaged ({reason_of(error)[:200]}). Delete it and run again."
        ) from error
    top = sorted({place.split("/")[0] for place in places.values()})
    return Unpacked(len(members), total, tuple(top))


def is_archive(name: str) -> bool:
    """Return whether a file's name is that of an archive that `unpack` reads."""
    return name.lower().endswith((ZIP, *TARS))


def _opened(path: Path, at_most: int) -> _Archive:
    name = path.name.lower()
    if name.endswith(ZIP):
        return _Zip(path)
    if name.endswith(TARS):
        return _Tar(path)
    raise RetrievalError(f"{path}: not an archive that can be unpacked. Unpack it by hand.")


def _clean(archive: Path, name: str) -> str:
    """Return a member's path; raises RetrievalError on one that could leave the folder."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    unsafe = "\\" in name or "\0" in name or any(ord(letter) < 32 for letter in name)
    if unsafe or name.startswith("/") or ".." in parts or not parts or ":" in parts[0]:
        raise _refused(archive, name, "its path leaves the folder or is none")
    return "/".join(parts)


def _refused(archive: Path, name: str, why: str) -> RetrievalError:
    shown = ascii(name)[:200]
    return RetrievalError(
        f"{archive}: {shown} is refused, because {why}, and nothing was unpacked. Look at the "
        f"archive; unpack it by hand if you trust it."
    )


class _Zip:
    def __init__(self, path: Path) -> None:
        self.path = path

    def members(self) -> Iterator[_Member]:
        with zipfile.ZipFile(self.path) as archive:
            yield from (member for _, member in self._files(archive))

    def contents(self) -> Iterator[tuple[_Member, IO[bytes]]]:
        with zipfile.ZipFile(self.path) as archive:
            for info, member in self._files(archive):
                with archive.open(info) as content:
                    yield member, content

    def _files(self, archive: zipfile.ZipFile) -> Iterator[tuple[zipfile.ZipInfo, _Member]]:
        for info in archive.infolist():
            # zipfile itself turns a backslash of Windows into a slash, and cuts at a NUL.
            clean = _clean(self.path, info.orig_filename)
            kind = stat.S_IFMT(info.external_attr >> 16)
            if info.is_dir():
                continue
            if kind not in (0, stat.S_IFREG):
                raise _refused(self.path, clean, "it is a link or a device")
            if info.flag_bits & 1:
                raise _refused(self.path, clean, "it has a password")
            yield info, _Member(clean, info.file_size)


class _Tar:
    def __init__(self, path: Path) -> None:
        self.path = path

    def members(self) -> Iterator[_Member]:
        # Streamed, because going back in a compressed file reads it from its beginning.
        with tarfile.open(self.path, "r|*") as archive:
            yield from (member for _, member in self._files(archive))

    def contents(self) -> Iterator[tuple[_Member, IO[bytes]]]:
        with tarfile.open(self.path, "r|*") as archive:
            for info, member in self._files(archive):
                content = archive.extractfile(info)
                if content is not None:
                    with content:
                        yield member, content

    def _files(self, archive: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, _Member]]:
        for info in archive:
            clean = _clean(self.path, info.name)
            try:
                tarfile.data_filter(info, "/nowhere")
            except tarfile.FilterError:
                raise _refused(self.path, clean, "it leaves the folder or is a device") from None
            if info.isdir():
                continue
            if not info.isreg():
                raise _refused(self.path, clean, "it is a link or a device")
            yield info, _Member(clean, info.size)


def _places(archive: Path, members: list[_Member], inside: str) -> dict[str, str]:
    """Return where each member goes; raises RetrievalError where two go to one place."""
    if not members:
        raise RetrievalError(f"{archive}: the archive is empty. Delete it and run again.")
    if len(members) > MOST_MEMBERS:
        raise _refused(archive, f"{len(members)} files", f"more than {MOST_MEMBERS} are too many")
    repeats = all(member.path.startswith(f"{inside}/") for member in members)
    prefix = f"{inside}/" if inside and not repeats else ""
    repeated = [path for path, times in Counter(m.path for m in members).items() if times > 1]
    if repeated:
        raise _refused(archive, repeated[0], "it is there twice")
    return {member.path: prefix + member.path for member in members}


def _check_room(archive: Path, root: Path, total: int, at_most: int) -> None:
    if total > at_most:
        raise _refused(archive, f"{total} bytes", f"more than the {at_most} expected are in it")
    root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(root).free
    if total > free:
        raise RetrievalError(
            f"{root}: {archive.name} unpacks to {total} bytes, and {free} are free. Free space and "
            f"run again; the archive is kept."
        )


class _Writer:
    """Writes members below a folder, each whole or not at all, and never more than announced."""

    def __init__(self, archive: Path, root: Path, at_most: int) -> None:
        self.archive, self.root, self.left = archive, root, at_most
        self._real_root = os.path.realpath(root)
        self._made: set[Path] = set()
        self._unfinished = root / f".unpacking-{archive.name}"

    def __enter__(self) -> _Writer:
        shutil.rmtree(self._unfinished, ignore_errors=True)
        self._unfinished.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._unfinished, ignore_errors=True)

    def write(self, place: str, member: _Member, content: IO[bytes]) -> None:
        target = self.root / place
        self._make_parent(target.parent)
        if target.is_symlink() or target.exists():
            if target.is_file() and target.stat().st_size == member.size:
                return
            raise RetrievalError(
                f"{target}: another file is there than {self.archive} has. Move it away and run "
                f"again."
            )
        unfinished = self._unfinished / "file"
        with unfinished.open("wb") as written:
            self._copy(content, written, member)
        os.replace(unfinished, target)

    def _make_parent(self, parent: Path) -> None:
        """Make a folder; a link that is there already must not lead out of the raw folder."""
        if parent in self._made:
            return
        there = parent
        while not os.path.lexists(there):
            there = there.parent
        real = os.path.realpath(there)
        if real != self._real_root and not real.startswith(self._real_root.rstrip("/") + "/"):
            raise RetrievalError(
                f"{there}: the folder is a link that leaves {self.root}. Link the raw folder as a "
                f"whole instead, and run again."
            )
        try:
            parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise RetrievalError(
                f"{parent}: a file is there where {self.archive} has a folder. Move it away and "
                f"run again."
            ) from None
        self._made.add(parent)

    def _copy(self, content: IO[bytes], written: IO[bytes], member: _Member) -> None:
        size = 0
        while piece := content.read(_PIECE):
            size += len(piece)
            self.left -= len(piece)
            if size > member.size or self.left < 0:
                raise RetrievalError(
                    f"{self.archive}: {ascii(member.path)[:200]} has more bytes than the archive "
                    f"says. Delete the archive and fetch it from its source."
                )
            written.write(piece)
        if size != member.size:
            raise zipfile.BadZipFile(f"{ascii(member.path)[:100]} is shorter than it should be")
