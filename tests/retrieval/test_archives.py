"""An archive puts its files below the folder, and nothing anywhere else."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from vlmfair.errors import RetrievalError
from vlmfair.retrieval.archives import unpack

MANY = 1_000_000


def zipped(path: Path, files: dict[str, bytes], **changes: int) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            for key, value in changes.items():
                setattr(info, key, value)
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return path


def tarred(path: Path, *members: tuple[str, bytes] | tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
    return path


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


FILES = {"train/1.jpg": b"one", "train/2.jpg": b"two", "labels.csv": b"file,age\n"}


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz"])
def test_files_are_unpacked_below_the_folder(tmp_path, name):
    if name.endswith("zip"):
        archive = zipped(tmp_path / name, FILES)
    else:
        archive = tarred(tmp_path / name, *FILES.items())

    done = unpack(archive, tmp_path / "raw", at_most=MANY)

    assert files_below(tmp_path / "raw") == FILES
    assert (done.files, done.size, done.top) == (3, 15, ("labels.csv", "train"))


@pytest.mark.parametrize("member", ["images/1.jpg", "1.jpg"])
def test_a_folder_of_its_own_is_not_doubled(tmp_path, member):
    """images.zip may have a folder images/, or none."""
    unpack(zipped(tmp_path / "a.zip", {member: b"x"}), tmp_path / "raw", at_most=9, inside="images")
    assert files_below(tmp_path / "raw") == {"images/1.jpg": b"x"}


@pytest.mark.parametrize(
    "name",
    ["../outside.txt", "/etc/outside.txt", "a/../../outside.txt", "C:/outside", "..", "a\\..\\b"],
)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_a_path_that_leaves_the_folder_is_refused_before_anything_is_written(tmp_path, kind, name):
    files = {"train/1.jpg": b"one", name: b"evil"}
    if kind == "zip":
        archive = zipped(tmp_path / "a.zip", files)
    else:
        archive = tarred(tmp_path / "a.tar", *files.items())

    with pytest.raises(
        RetrievalError, match="is refused, because its path .* nothing was unpacked"
    ):
        unpack(archive, tmp_path / "raw", at_most=MANY)

    assert [path.name for path in tmp_path.iterdir()] == [archive.name]


@pytest.mark.parametrize(
    "member",
    [
        link("train/link", "/etc/passwd"),
        link("train/link", "1.jpg"),
        link("train/link", "../../../etc/passwd"),
        link("train/hard", "train/1.jpg", tarfile.LNKTYPE),
        link("train/pipe", "", tarfile.FIFOTYPE),
        link("train/device", "", tarfile.CHRTYPE),
    ],
)
def test_links_and_devices_of_a_tar_are_refused(tmp_path, member):
    archive = tarred(tmp_path / "a.tar", ("train/1.jpg", b"one"), member)

    with pytest.raises(RetrievalError, match=r"is refused, because it (is a link|leaves the)"):
        unpack(archive, tmp_path / "raw", at_most=MANY)

    assert not (tmp_path / "raw").exists()


def test_links_of_a_zip_are_refused(tmp_path):
    mode = (stat.S_IFLNK | 0o777) << 16
    archive = zipped(tmp_path / "a.zip", {"train/link": b"/etc/passwd"}, external_attr=mode)

    with pytest.raises(RetrievalError, match="it is a link or a device"):
        unpack(archive, tmp_path / "raw", at_most=MANY)


def test_an_archive_that_grows_beyond_what_is_expected_is_refused(tmp_path):
    archive = zipped(tmp_path / "a.zip", {"bomb.txt": b"0" * 500_000})
    assert archive.stat().st_size < 2000

    with pytest.raises(RetrievalError, match="more than the 100000 expected are in it"):
        unpack(archive, tmp_path / "raw", at_most=100_000)

    assert not (tmp_path / "raw").exists()


def test_a_member_with_more_bytes_than_it_says_is_stopped(tmp_path):
    """The size in a zip's directory is only what its maker wrote there."""
    archive = zipped(tmp_path / "a.zip", {"bomb.txt": b"0" * 500_000})
    content = archive.read_bytes()
    said = (500_000).to_bytes(4, "little")
    assert content.count(said) >= 2
    archive.write_bytes(content.replace(said, (7).to_bytes(4, "little")))

    with pytest.raises(
        RetrievalError, match=r"archive is damaged|more bytes than the archive says"
    ):
        unpack(archive, tmp_path / "raw", at_most=MANY)

    assert files_below(tmp_path / "raw") == {}


def test_a_member_that_is_there_twice_is_refused(tmp_path):
    archive = tarred(tmp_path / "a.tar", ("a.txt", b"one"), ("./a.txt", b"two"))
    with pytest.raises(RetrievalError, match="it is there twice"):
        unpack(archive, tmp_path / "raw", at_most=MANY)


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz"])
def test_a_damaged_archive_says_so(tmp_path, name):
    make = zipped if name.endswith("zip") else lambda path, files: tarred(path, *files.items())
    archive = make(tmp_path / name, {"a.bin": os.urandom(200_000)})
    archive.write_bytes(archive.read_bytes()[:100_000])

    with pytest.raises(RetrievalError, match="the archive is damaged .* Delete it and run again"):
        unpack(archive, tmp_path / "raw", at_most=MANY)

    assert files_below(tmp_path / "raw") == {}


def test_a_flipped_bit_is_found(tmp_path):
    content = os.urandom(50_000)
    archive = zipped(tmp_path / "a.zip", {"a.bin": content})
    damaged = bytearray(archive.read_bytes())
    damaged[25_000] ^= 1
    archive.write_bytes(bytes(damaged))

    with pytest.raises(RetrievalError, match="the archive is damaged"):
        unpack(archive, tmp_path / "raw", at_most=MANY)

    assert files_below(tmp_path / "raw") == {}


def test_an_interrupted_call_is_continued_and_whole_files_stay(tmp_path):
    archive = zipped(tmp_path / "a.zip", FILES)
    unpack(archive, tmp_path / "raw", at_most=MANY)
    kept = tmp_path / "raw/train/1.jpg"
    os.utime(kept, (1, 1))
    (tmp_path / "raw/train/2.jpg").unlink()

    unpack(archive, tmp_path / "raw", at_most=MANY)

    assert files_below(tmp_path / "raw") == FILES
    assert kept.stat().st_mtime == 1, "not written again"


def test_a_file_of_the_user_is_not_overwritten(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/labels.csv").write_text("mine, and longer")

    with pytest.raises(RetrievalError, match=r"labels\.csv: another file is there than .* Move it"):
        unpack(zipped(tmp_path / "a.zip", FILES), tmp_path / "raw", at_most=MANY)

    assert (tmp_path / "raw/labels.csv").read_text() == "mine, and longer"


def test_a_link_of_the_user_must_not_lead_out_of_the_raw_folder(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "raw/train").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(RetrievalError, match="is a link that leaves .* Link the raw folder as a"):
        unpack(zipped(tmp_path / "a.zip", FILES), tmp_path / "raw", at_most=MANY)

    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_raw_folder_itself_may_be_a_link(tmp_path):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "raw").symlink_to(tmp_path / "scratch")

    unpack(zipped(tmp_path / "a.zip", FILES), tmp_path / "raw", at_most=MANY)

    assert files_below(tmp_path / "scratch") == FILES
