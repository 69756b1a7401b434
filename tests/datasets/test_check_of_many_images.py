"""What is missing among 100,000 images is known in seconds, and no image is opened for it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from vlmfair.config import read_yaml
from vlmfair.datasets.checklist import check_raw
from vlmfair.folder_state import folder_state

# The rows of FairFace as released, a little under 100,000.
PARTS = {"train": 86_744, "val": 10_954}
GONE = ("train/7.jpg", "val/10954.jpg")


def make_fairface(folder: Path) -> None:
    """Labels of the released size, and files that have content but are no images."""
    for part, count in PARTS.items():
        (folder / part).mkdir()
        rows = ["file,age,gender,race,service_test"]
        for number in range(1, count + 1):
            rows.append(f"{part}/{number}.jpg,20-29,Male,White,True")
            # One content under as many names as a file may have.
            source = folder / f"{part}-{number // 20_000}"
            if not source.exists():
                source.write_bytes(b"no image")
            os.link(source, folder / part / f"{number}.jpg")
        (folder / f"fairface_label_{part}.csv").write_text("\n".join(rows))
    for name in GONE:
        (folder / name).unlink()


@pytest.mark.slow
def test_the_images_of_a_whole_dataset_are_looked_at_within_a_minute(root, tmp_path):
    make_fairface(tmp_path)
    entry = read_yaml(root / "config/datasets.yaml")["datasets"]["fairface"]

    started = time.monotonic()
    state = folder_state(tmp_path)
    checked = check_raw("fairface", str(tmp_path), entry)
    seconds = time.monotonic() - started

    assert seconds < 60
    assert (checked.images, checked.expected) == (97_696, 97_698)
    assert "fairface/train/7.jpg, fairface/val/10954.jpg" in checked.next_step
    (tmp_path / "train/1.jpg").unlink()
    assert folder_state(tmp_path) != state
    print(f"{seconds:.1f} s")


def test_the_state_of_a_folder_follows_names_and_labels(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train/1.jpg").write_bytes(b"one")
    labels = tmp_path / "labels.csv"
    labels.write_text("file\n")
    states = [folder_state(tmp_path), folder_state(tmp_path)]
    labels.write_text("file,age\n")
    states.append(folder_state(tmp_path))
    (tmp_path / "train/2.jpg").write_bytes(b"two")
    states.append(folder_state(tmp_path))

    assert states[0] == states[1]
    assert len(set(states)) == 3
    assert folder_state(tmp_path / "none") == ""
