"""The whole suite of the papers can be planned: with all raw files of full size, fast and light."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from vlmfair.artefacts import built_artefacts, load_artefacts

pytestmark = pytest.mark.workflow

# Rows or files of each download, as their authors and config/datasets.yaml count them.
TABLES = {
    "fairface/fairface_label_train.csv": ("file,age,gender,race,service_test", 86_744),
    "fairface/fairface_label_val.csv": ("file,age,gender,race,service_test", 10_954),
    "ai_face/train.csv": (",Image Path,Gender,Age,Skin Tone", 1_245_660),
    "ai_face/test.csv": (",Image Path,Gender,Age,Skin Tone", 400_885),
    "facet/annotations/annotations.csv": ("person_id,filename,class1,class2", 49_551),
    "visogender/OO/OO_Visogender_10052025.tsv": (
        "IDX\tSector\tURL type (Type NA if can't find)",
        230,
    ),
    "visogender/OP/OP_Visogender_02102023.tsv": (
        "IDX\tSector\tURL type (Type NA if can't find)",
        460,
    ),
    "coco_bias/images_val2014.csv": ("id,bb_gender,bb_skin,split", 15_762),
    "visual_cot/gqa_cot_train.jsonl": ("{}", 82_000),
    "visual_cot/gqa_cot_val.jsonl": ("{}", 1_000),
    "gras/selected_images_fairface.csv": ("file,age,gender,race,service_test,image_path", 3_570),
    "gras/selected_images_aiface.csv": (",Image Path,Skin Tone,image_path", 1_440),
}
FOLDERS = {
    "utkface/part1/{}_0_0_20170109.jpg": 24_106,
    "dci/annotations/{}.json": 7_805,
}


@dataclass(frozen=True)
class Planned:
    """What a dry-run said and took."""

    shown: str
    cpu_seconds: float
    megabytes: float
    jobs: dict[str, int]


def write_raw_files(folder: Path) -> None:
    """Placeholders: planning sees which files there are, never what stands in them."""
    for name, (header, rows) in TABLES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{header}\n" + "0,0,0,0\n" * rows)
    for pattern, files in FOLDERS.items():
        path = folder / pattern
        path.parent.mkdir(parents=True, exist_ok=True)
        for number in range(files):
            os.close(os.open(str(path).format(number), os.O_CREAT | os.O_WRONLY))


# A process begins with the memory of the one that it was forked from, and this one has loaded
# torch: a small one starts what is measured, and says what its only child took.
MEASURE = """
import json, resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
took = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([took.ru_utime + took.ru_stime, took.ru_maxrss / 1000]))
sys.exit(code)
"""


def plan(folder: Path, *arguments: str) -> Planned:
    command = [sys.executable, "-c", MEASURE, sys.executable, "-m", "snakemake", "--cores", "2"]
    done = subprocess.run(
        [*command, "--dry-run", *arguments, "--configfile", "config/paper.yaml"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    shown, _, measured = done.stdout.rstrip().rpartition("\n")
    cpu_seconds, megabytes = json.loads(measured)
    jobs = re.findall(r"^(\w+) +(\d+)$", shown, flags=re.MULTILINE)
    return Planned(
        shown,
        cpu_seconds=cpu_seconds,
        megabytes=megabytes,
        jobs={rule: int(count) for rule, count in jobs},
    )


@pytest.fixture
def planned(fresh) -> Planned:
    write_raw_files(fresh.folder / "data")
    return plan(fresh.folder, "all", "pdf")


def test_the_whole_suite_is_planned_fast_light_and_in_few_jobs(planned, root):
    built = built_artefacts(load_artefacts(root / "config/artefacts.yaml"))

    assert "This was a dry-run" in planned.shown
    assert planned.jobs["total"] < 5_000
    # Of processor time, which other work on the machine does not lengthen as it does a clock's.
    assert planned.cpu_seconds < 20
    assert planned.megabytes < 1_000
    # All of it: each paper's tables, every model's questions, and the report.
    papers = {artefact.paper for artefact in built}
    for paper in papers:
        assert any(rule.startswith(f"tabulate_{paper}_") for rule in planned.jobs), paper
    assert planned.jobs["gather_responses"] == 5, "the five models of GRAS"
    assert planned.jobs["infer"] == 5 * 10, "5,010 images in shards of 501"
    assert planned.jobs["build_report"] == 1
    assert planned.jobs["typeset_tables"] == len(papers)
