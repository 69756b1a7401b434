"""A file comes whole and as announced, over a line that breaks, or not at all."""

from __future__ import annotations

import hashlib
import shutil
from collections import namedtuple
from pathlib import Path

import pytest
from web_site import QUICK

from vlmfair.errors import RetrievalError
from vlmfair.retrieval.fetch import PIECE, Patience, RemoteFile, fetch

CONTENT = bytes(range(256)) * 40
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def remote(site, *paths, **facts) -> RemoteFile:
    addresses = tuple(site.url(path) for path in paths or ("/a.bin",))
    return RemoteFile("a.bin", addresses, **{"at_most": 100_000, **facts})


def test_a_file_is_downloaded_and_checked(site, tmp_path):
    site.serve("/a.bin", CONTENT)

    fetched = fetch(remote(site, size=len(CONTENT), sha256=DIGEST), tmp_path, site.client(), QUICK)

    assert fetched.path.read_bytes() == CONTENT
    assert (fetched.size, fetched.sha256, fetched.address) == (
        *(len(CONTENT), DIGEST, site.url("/a.bin")),
    )
    assert not list(tmp_path.glob("*.part*"))


def test_what_is_there_is_not_asked_for_again(site, tmp_path):
    site.serve("/a.bin", CONTENT)
    file = remote(site, sha256=DIGEST)

    fetch(file, tmp_path, site.client(), QUICK)
    fetch(file, tmp_path, site.client(), QUICK)

    assert site.paths() == ["/a.bin"]


def test_the_first_digits_of_a_digest_are_enough(site, tmp_path):
    site.serve("/a.bin", CONTENT)
    assert fetch(remote(site, sha256=DIGEST[:12]), tmp_path, site.client(), QUICK).sha256 == DIGEST


def test_a_broken_line_is_continued_where_it_broke(site, tmp_path):
    site.break_off("/a.bin", CONTENT, 4000, 3000)

    fetched = fetch(remote(site, sha256=DIGEST), tmp_path, site.client(), QUICK)

    assert fetched.path.read_bytes() == CONTENT
    ranges = [request.headers.get("Range") for request in site.asked]
    assert ranges == [None, "bytes=4000-", "bytes=7000-"]


def test_a_line_that_breaks_more_often_than_attempts_still_brings_the_file(site, tmp_path):
    site.break_off("/a.bin", CONTENT, *[1000] * 8)
    fetched = fetch(remote(site, sha256=DIGEST), tmp_path, site.client(), QUICK)
    assert fetched.path.read_bytes() == CONTENT


def test_a_later_call_continues_and_the_part_is_kept(site, tmp_path):
    once = Patience(attempts=1, first_pause=0, longest_pause=0)
    site.break_off("/a.bin", CONTENT, 5000)
    with pytest.raises(RetrievalError, match=r"a\.bin could not be downloaded"):
        fetch(remote(site), tmp_path, site.client(), once)
    assert (tmp_path / "a.bin.part").stat().st_size == 5000

    fetch(remote(site, sha256=DIGEST), tmp_path, site.client(), once)

    assert site.asked[-1].headers["Range"] == "bytes=5000-"


def test_a_file_that_changed_on_the_server_is_begun_anew(site, tmp_path):
    once = Patience(attempts=1, first_pause=0, longest_pause=0)
    site.break_off("/a.bin", b"older " * 2000, 6000, tag='"older"')
    with pytest.raises(RetrievalError):
        fetch(remote(site), tmp_path, site.client(), once)
    site.serve("/a.bin", CONTENT, tag='"newer"')

    fetched = fetch(remote(site), tmp_path, site.client(), once)

    assert fetched.path.read_bytes() == CONTENT, "no mixture of the two"


def test_a_server_that_is_busy_is_asked_again(site, tmp_path):
    site.serve("/a.bin", b"", status=503, Retry_After="0")
    with pytest.raises(RetrievalError, match="answers 503"):
        fetch(remote(site), tmp_path, site.client(), QUICK)
    assert len(site.asked) == QUICK.attempts


def test_a_server_decides_how_long_to_wait_up_to_a_limit():
    patience = Patience(first_pause=1, longest_pause=60)
    assert patience.pause(1, asked_for=30) == 30
    assert patience.pause(1, asked_for=3600) == 60
    assert 3 <= patience.pause(3) <= 5


def test_a_mirror_is_asked_where_the_source_does_not_have_it(site, tmp_path):
    site.serve("/mirror", CONTENT)

    fetched = fetch(remote(site, "/gone", "/mirror"), tmp_path, site.client(), QUICK)

    assert fetched.address == site.url("/mirror")
    assert site.paths() == ["/gone", "/mirror"], "404 is not asked for twice"


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"sha256": "0" * 64}, "which is not the announced one, and was deleted"),
        ({"size": 5}, "the server has 10240 bytes, and 5 are announced"),
        ({"at_most": 100}, "10240 bytes are more than the 100 expected"),
    ],
)
def test_another_file_than_the_announced_one_is_an_error(site, tmp_path, facts, says):
    site.serve("/a.bin", CONTENT)

    with pytest.raises(RetrievalError, match=says):
        fetch(remote(site, **facts), tmp_path, site.client(), QUICK)

    assert not (tmp_path / "a.bin").exists()
    assert not (tmp_path / "a.bin.part").exists()


def test_a_server_that_hides_the_size_is_stopped_at_the_limit(site, tmp_path):
    site.drip("/a.bin", 2.0)

    with pytest.raises(RetrievalError, match="more than 20 bytes came"):
        fetch(remote(site, at_most=20), tmp_path, site.client(), QUICK)


def test_a_web_page_in_place_of_the_file(site, tmp_path):
    """As of Google Drive when too many have asked for a file."""
    site.serve("/a.bin", b"<!DOCTYPE html><html><title>Quota exceeded</title>", tag='"page"')

    with pytest.raises(RetrievalError, match="sent a web page in place of the file.* by hand into"):
        fetch(remote(site), tmp_path, site.client(), QUICK)


def test_another_file_of_the_name_is_not_overwritten(site, tmp_path):
    (tmp_path / "a.bin").write_bytes(b"mine")

    with pytest.raises(RetrievalError, match=r"a\.bin: the file is not the one .* Move it away"):
        fetch(remote(site, sha256=DIGEST), tmp_path, site.client(), QUICK)

    assert (tmp_path / "a.bin").read_bytes() == b"mine"
    assert site.asked == []


def test_a_full_disk_is_told_before_the_download(site, tmp_path, monkeypatch):
    site.serve("/a.bin", CONTENT)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 10, 100))

    with pytest.raises(RetrievalError, match="needs 10240 bytes more, and 100 are free. Free"):
        fetch(remote(site), tmp_path, site.client(), QUICK)


def test_a_compressed_answer_is_refused_because_its_size_means_nothing(site, tmp_path):
    site.serve("/a.bin", CONTENT, Content_Encoding="gzip")
    with pytest.raises(RetrievalError, match="compresses the file"):
        fetch(remote(site), tmp_path, site.client(), QUICK)


def test_a_large_file_is_not_held_in_memory(site, tmp_path):
    """Two pieces and a bit: what is written in between is on the disk."""
    content = b"0123456789abcdef" * (PIECE // 8) + b"end"
    site.serve("/a.bin", content)

    fetched = fetch(remote(site, at_most=len(content)), tmp_path, site.client(), QUICK)

    assert Path(fetched.path).stat().st_size == len(content)
