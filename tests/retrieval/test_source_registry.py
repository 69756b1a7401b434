"""What config/datasets.yaml says of downloads fits the parsers, and the files that were seen."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from vlmfair.config import read_yaml
from vlmfair.datasets import visogender
from vlmfair.provenance import sha256_of_file
from vlmfair.retrieval.addresses import check_address
from vlmfair.retrieval.archives import is_archive


@pytest.fixture(scope="module")
def sheet(root: Path) -> dict:
    return read_yaml(root / "config/datasets.yaml")


@pytest.fixture(scope="module")
def entries(sheet: dict) -> dict:
    return {**sheet["datasets"], **{f"{name}_lists": own for name, own in sheet["lists"].items()}}


def every_file(entries: dict) -> list[dict]:
    return [file for entry in entries.values() for file in entry.get("files", [])]


def test_every_dataset_can_be_downloaded_or_says_what_to_do_by_hand(entries):
    assert len(entries) == 9
    assert all(entry.get("files") or entry.get("by_hand") for entry in entries.values())


def test_every_address_of_the_registry_is_of_the_public_web(entries):
    addresses = [address for file in every_file(entries) for address in file.get("from", [])]

    assert len(addresses) > 10
    for address in addresses:
        check_address(address)


def test_names_are_unique_and_archives_hold_more_than_they_weigh(entries):
    for entry in entries.values():
        names = [file["name"] for file in entry.get("files", [])]
        assert len(set(names)) == len(names)
    for file in every_file(entries):
        if is_archive(file["name"]):
            assert file["unpack"]["at_most"] >= file.get("bytes", file.get("at_most", 0))


def test_a_file_is_found_where_it_is_put(entries):
    for file in every_file(entries):
        if "to" in file:
            ways = [[way] if isinstance(way, str) else way for way in file["gives"]]
            assert all(
                any(file["to"] == path or file["to"].startswith(f"{path}/") for path in own)
                for own in ways
            ), file["name"]


def test_sizes_and_digests_are_those_of_the_files_that_were_seen(entries, reference_dir):
    seen = {path.name: path for path in reference_dir.rglob("*.?sv")}
    compared = [file for file in every_file(entries) if file["name"] in seen]

    assert {file["name"] for file in compared} >= {
        *("OO_Visogender_10052025.tsv", "selected_images_fairface.csv"),
        "selected_images_aiface.csv",
    }
    for file in compared:
        assert seen[file["name"]].stat().st_size == file["bytes"]
        assert sha256_of_file(seen[file["name"]]).startswith(file["sha256"])


def test_the_lists_are_those_that_the_papers_suite_asks_for(root, sheet):
    asked = read_yaml(root / "config/paper.yaml")["gras"]["selection_sha256"]
    assert {file["sha256"] for file in sheet["lists"]["gras"]["files"]} == set(asked.values())


def test_the_addresses_of_visogender_are_all_asked_for(reference_dir, tmp_path):
    """690 of them, in the newest table of one kind and an older one of the other."""
    for kind, name in (("OO", "OO_Visogender_10052025"), ("OP", "OP_Visogender_02102023")):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / f"{name}.tsv").write_bytes(
            (reference_dir / f"visogender/{name}.tsv").read_bytes()
        )

    found = visogender.addresses(tmp_path)

    assert len(dict(found)) == 690
    for _, address in found:
        check_address(requests.utils.requote_uri(address))
