"""Images are proved readable to the last pixel, and broken ones end as problems, not as crashes."""

from __future__ import annotations

import hashlib
import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from vlmfair.datasets.images import (
    ImageFacts,
    ImageFault,
    ImageFolder,
    check_image,
    check_images,
    path_fault,
)


def noise(kind: str, mode: str = "RGB") -> bytes:
    """A picture that compresses badly, so that cutting its file cuts its pixels."""
    pixels = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(buffer, kind)
    return buffer.getvalue()


def png_header_only(width: int, height: int) -> bytes:
    """A PNG of 45 bytes that promises any number of pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("kind", "mode"), [("JPEG", "RGB"), ("JPEG", "L"), ("PNG", "RGBA"), ("PNG", "P"), ("GIF", "P")]
)
def test_good_image_has_its_size_and_the_digest_of_its_bytes(
    tmp_path: Path, kind: str, mode: str
) -> None:
    path = tmp_path / "x"
    path.write_bytes(noise(kind, mode))
    assert check_image(path) == ImageFacts(hashlib.sha256(path.read_bytes()).hexdigest(), 50, 40)


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_truncated_image_is_unreadable_though_its_header_is_fine(
    tmp_path: Path, kind: str, share: float
) -> None:
    content = noise(kind)
    path = tmp_path / "x"
    path.write_bytes(content[: int(len(content) * share)])
    fault = check_image(path)
    assert isinstance(fault, ImageFault)
    assert fault.reason == "image_unreadable"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "image_empty"),
        (b"<html>404 Not Found</html>", "image_unreadable"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n", "image_unreadable"),
        (png_header_only(20_000, 20_000), "image_too_large"),
        (png_header_only(2_000_000, 2_000_000), "image_too_large"),
        (png_header_only(9_000, 9_000), "image_too_large"),
        (png_header_only(0, 9), "image_unreadable"),
        (png_header_only(90, 90), "image_unreadable"),
    ],
)
def test_fault_has_a_reason_code(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(content)
    fault = check_image(path)
    assert isinstance(fault, ImageFault)
    assert (fault.reason, bool(fault.detail)) == (reason, True)


def test_pipes_and_folders_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")
    fault = ImageFault("image_unreadable", "not a regular file")
    assert check_image(tmp_path / "pipe.jpg") == fault
    assert check_image(tmp_path) == fault


def test_huge_file_is_not_read_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.jpg"
    with path.open("wb") as file:
        file.truncate(200 * 1024 * 1024)
    fault = check_image(path)
    assert fault == ImageFault("image_too_large", "the file has 209715200 bytes")


def test_file_that_vanishes_is_missing(tmp_path: Path) -> None:
    fault = check_image(tmp_path / "gone.jpg")
    assert isinstance(fault, ImageFault)
    assert fault.reason == "image_missing"


def test_same_fault_is_told_in_the_same_words(tmp_path: Path) -> None:
    path = tmp_path / "x.jpg"
    path.write_bytes(b"no image")
    assert check_image(path) == check_image(path)


def test_results_come_in_order_with_any_number_of_threads(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.png" for number in range(9)]
    for number, path in enumerate(paths):
        Image.new("RGB", (number + 1, 3)).save(path)
    one, four = list(check_images(paths, 1)), list(check_images(paths, 4))
    assert one == four
    assert [fact.width for fact in one if isinstance(fact, ImageFacts)] == list(range(1, 10))


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    kind=st.sampled_from(["JPEG", "PNG", "GIF"]),
    place=st.integers(0, 10_000),
    junk=st.binary(min_size=1, max_size=30),
)
def test_damaged_bytes_never_raise(tmp_path: Path, kind: str, place: int, junk: bytes) -> None:
    content = noise(kind)
    place %= len(content)
    path = tmp_path / "x"
    path.write_bytes(content[:place] + junk + content[place + len(junk) :])
    assert isinstance(check_image(path), ImageFacts | ImageFault)


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("train/1.jpg", ""),
        ("a b/ü, 'x'.jpg", ""),
        ("..hidden/1.jpg", ""),
        ("", "invalid_path"),
        (" . ", "invalid_path"),
        ("train/1\x00.jpg", "invalid_path"),
        ("train/1\n.jpg", "invalid_path"),
        ("/", "path_outside"),
        ("../1.jpg", "path_outside"),
        ("train/..", "path_outside"),
        ("//host/share/1.jpg", "path_outside"),
        ("C:/1.jpg", "path_outside"),
    ],
)
def test_path_fault(path: str, fault: str) -> None:
    assert path_fault(path) == fault


def test_exact_name_in_a_later_layout_goes_before_another_case(tmp_path: Path) -> None:
    for relative in ("TRAIN/1.jpg", "FairFace/train/1.jpg"):
        (tmp_path / relative).parent.mkdir(parents=True)
        (tmp_path / relative).touch()
    place = ImageFolder(tmp_path, ["", "FairFace"]).find("train/1.jpg")
    assert place.path == tmp_path / "FairFace/train/1.jpg"
    assert place.reason == ""


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(relative=st.text(max_size=30))
def test_find_gives_files_below_the_folder_or_nothing(tmp_path: Path, relative: str) -> None:
    root = tmp_path / "root"
    (root / "train").mkdir(parents=True, exist_ok=True)
    (root / "train/1.jpg").touch()
    (tmp_path / "secret").touch()
    path = ImageFolder(root, ["", "train"]).find(relative).path
    assert path is None or path.is_relative_to(root)
