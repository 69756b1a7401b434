"""Of a dataset, what may be downloaded comes to its place; the rest is named with what to do."""

from __future__ import annotations

import io
import shutil
import zipfile

import pytest
from web_site import QUICK

from vlmfair.errors import RetrievalError
from vlmfair.retrieval.dataset import Folders, retrieve
from vlmfair.retrieval.parts import missing_files, require_nothing_by_hand

LABELS = b"file,age\n"
BY_HAND = {
    "what": "images_val2014.csv",
    "gate": "request",
    "gives": [["images_val2014.csv", "images_2014all.csv"]],
    "get": "Ask for it at https://example.org/form.",
}


@pytest.fixture
def folders(tmp_path) -> Folders:
    return Folders(tmp_path / "raw", tmp_path / "downloads")


@pytest.fixture
def entry(site) -> dict:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("1.jpg", b"one")
        archive.writestr("2.jpg", b"two")
    site.serve("/images.zip", written.getvalue())
    site.serve("/labels.csv", LABELS)
    return {
        "files": [
            {
                "name": "images.zip",
                "from": [site.url("/images.zip")],
                "at_most": 9999,
                "unpack": {"inside": "images", "at_most": 100},
                "gives": ["images"],
            },
            {
                "name": "labels.csv",
                "from": [site.url("/labels.csv")],
                "bytes": len(LABELS),
                "to": "annotations/labels.csv",
                "gives": [["annotations/labels.csv", "labels.csv"]],
            },
        ],
        "by_hand": [BY_HAND],
    }


def test_files_are_unpacked_or_put_in_their_place(site, entry, folders):
    report = retrieve("coco_bias", entry, folders, site.client(), patience=QUICK)

    assert (folders.raw / "images/2.jpg").read_bytes() == b"two"
    assert (folders.raw / "annotations/labels.csv").read_bytes() == LABELS
    assert [file["status"] for file in report["files"]] == ["downloaded", "downloaded"]
    assert report["files"][0]["unpacked_files"] == 2
    assert report["files"][1]["address"] == site.url("/labels.csv")
    assert len(report["files"][1]["sha256"]) == 64


def test_a_second_call_asks_for_nothing_also_without_the_archives(site, entry, folders):
    retrieve("coco_bias", entry, folders, site.client(), patience=QUICK)
    (folders.downloads / "images.zip").unlink()
    asked = len(site.asked)

    report = retrieve("coco_bias", entry, folders, site.client(), patience=QUICK)

    assert len(site.asked) == asked
    assert [file["status"] for file in report["files"]] == ["downloaded", "downloaded"]


def test_what_the_user_has_is_not_downloaded(site, entry, folders):
    (folders.raw / "images").mkdir(parents=True)
    (folders.raw / "labels.csv").write_bytes(b"mine")

    report = retrieve("coco_bias", entry, folders, site.client(), patience=QUICK)

    assert site.asked == []
    assert [file["status"] for file in report["files"]] == ["there", "there"]


def test_an_unpacking_that_was_killed_is_continued(site, entry, folders, monkeypatch):
    """The folder is there then, but not all that is in it."""
    replace, calls = shutil.os.replace, []

    def dying(source, target):
        calls.append(target)
        if str(target).endswith("2.jpg"):
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr("vlmfair.retrieval.archives.os.replace", dying)
    with pytest.raises(KeyboardInterrupt):
        retrieve("coco_bias", entry, folders, site.client(), patience=QUICK)
    assert not (folders.raw / "images/2.jpg").exists()
    monkeypatch.undo()

    retrieve("coco_bias", entry, folders, site.client(), patience=QUICK)

    assert (folders.raw / "images/2.jpg").read_bytes() == b"two"
    assert site.paths().count("/images.zip") == 1, "the archive was there"


def test_what_is_gated_has_a_sentence_of_its_own(entry, folders):
    with pytest.raises(RetrievalError) as caught:
        require_nothing_by_hand("coco_bias", entry, folders.raw)

    assert str(caught.value) == (
        f"{folders.raw}: coco_bias lacks images_val2014.csv, which cannot be downloaded here: it "
        f"is given out on request only. Ask for it at https://example.org/form."
    )


def test_what_can_be_downloaded_and_is_not_there_is_known_without_asking(site, entry, folders):
    assert missing_files(entry, folders.raw) == ["images.zip", "labels.csv"]
    retrieve("coco_bias", entry, folders, site.client(), patience=QUICK)
    assert missing_files(entry, folders.raw) == []


def test_what_was_fetched_by_hand_stops_nothing(entry, folders):
    folders.raw.mkdir()
    (folders.raw / "images_2014all.csv").touch()

    require_nothing_by_hand("coco_bias", entry, folders.raw)


def test_a_dataset_without_downloads_asks_nobody(site, folders):
    report = retrieve("facet", {"by_hand": [BY_HAND]}, folders, site.client())
    assert (report["files"], site.asked) == ([], [])
