"""Each environment of the demo's road is created from its YAML, and its rules run in it.

No conda client or channel is asked: a stand-in (conda_stand_in.py) takes their place. It shows
that the YAMLs, their pins and the rules' `conda:` hold together, and nothing about conda-forge.
Runs on request (`pytest -m conda`), takes minutes and, for a while, 6 GB.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from conda_stand_in import make_stand_in
from conftest import Project, copy_project

pytestmark = [pytest.mark.workflow, pytest.mark.conda]

FREE_GIGABYTES = 10
# Seconds for one run of snakemake; an environment with torch takes two minutes on an idle machine.
LIMIT = 2400
GRAS, DRAWN = "results/demo/gras", "results/demo/vl_bicle/synthesis"
LIST = "results/demo/raw/gras/selected_images_fairface.csv"
SETTINGS: dict[str, Any] = {
    "gras": {
        "models": ["tiny-planted"],
        "per_cell": 1,
        "per_tone": 3,
        "traits": ["bad", "polite"],
        "permutations": 20,
        "bootstraps": 20,
    },
    "datasets": {"coco_bias": {"drawn_per_cell": 1}},
    "vl_bicle": {
        "synthesis": {
            "generators": {
                "flux": None,
                "sd35l": {
                    "title": "Tiny",
                    "path": "resources/demo/tiny-sd3",
                    "pipeline": "StableDiffusion3Pipeline",
                    "steps": 2,
                    "guidance": 1.0,
                    "height": 32,
                    "width": 32,
                    "dtype": "float32",
                    "batch_size": 4,
                    "offload": "never",
                },
            },
            "tolerated_problems": 1.0,
        }
    },
}
# One rule of each environment says where it runs and whose packages it has.
WITNESS = """
import json, sys
import {package}
with open("{name}.witness.json", "w") as file:
    json.dump([sys.prefix, {package}.__file__, {package}.__version__], file)
"""
# Environment, the script that is the witness, what is made, and a package of it.
ROAD = [
    ("analysis", "select_gras_images", f"{GRAS}/requests/tiny-planted.parquet", "pandas"),
    ("inference", "infer", f"{GRAS}/responses/tiny-planted/0.parquet", "torch"),
    ("synthesis", "synthesize", f"{DRAWN}/sd35l/shards/0.parquet", "diffusers"),
]
# What only models that bring their own code need, of which the demo has none.
OFF_THE_ROAD = {"inference-legacy"}


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    pytest.importorskip("rattler", reason="the stand-in for conda needs py-rattler")
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the environments ask for Python 3.11, and the stand-in has only this one")
    folder = tmp_path_factory.mktemp("conda")
    free = shutil.disk_usage(folder).free / 1e9
    if free < FREE_GIGABYTES:
        pytest.skip(f"{free:.0f} GB are free in {folder}, and {FREE_GIGABYTES} are needed")
    yield make_stand_in(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def project(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("environments") / "vlmfair"
    copy_project(root, folder)
    for name, script, _, package in ROAD:
        path = folder / f"workflow/scripts/{script}.py"
        path.write_text(path.read_text() + WITNESS.format(name=name, package=package))
    yield Project(folder, SETTINGS)
    shutil.rmtree(folder)


def snakemake(project: Project, stand_in: dict[str, str], *arguments: str) -> tuple[int, str]:
    (project.folder / "settings.yaml").write_text(yaml.safe_dump(project.settings))
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--use-conda", "--retries", "0"]
    done = subprocess.run(
        [*command, *arguments, "--configfile", "settings.yaml"],
        cwd=project.folder,
        env={**os.environ, **stand_in, "OMP_WAIT_POLICY": "PASSIVE"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    return done.returncode, done.stdout + done.stderr


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins_of(project: Project, name: str) -> dict[str, str]:
    settings = yaml.safe_load((project.folder / f"envs/{name}.yaml").read_text())
    pins = next(entry["pip"] for entry in settings["dependencies"] if isinstance(entry, dict))
    return {normal(package): version for package, version in (pin.split("==") for pin in pins)}


def installed_in(prefix: Path) -> dict[str, str]:
    python = str(prefix / "bin/python")
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    # A local build, like +cpu, is the same version.
    return {normal(entry["name"]): entry["version"].split("+")[0] for entry in json.loads(listed)}


@pytest.mark.parametrize(
    ("name", "script", "target", "package"), ROAD, ids=[row[0] for row in ROAD]
)
def test_an_environment_is_created_as_pinned_and_its_rule_runs_in_it(
    project, stand_in, name, script, target, package
):
    status, said = snakemake(project, stand_in, target)

    assert status == 0, said[-6000:]
    assert f"Creating conda environment envs/{name}.yaml" in said
    assert (project.folder / target).is_file()
    witness = json.loads((project.folder / f"{name}.witness.json").read_text())
    prefix, package_file, version = Path(witness[0]), Path(witness[1]), witness[2]
    assert prefix.is_relative_to(project.folder / ".snakemake/conda")
    assert package_file.is_relative_to(prefix), "the packages are not those of the calling Python"
    pins, installed = pins_of(project, name), installed_in(prefix)
    assert {key: installed.get(key) for key in pins} == pins
    assert version.split("+")[0] == pins[package]
    # The next one needs the room.
    shutil.rmtree(prefix)


def test_each_environment_is_on_the_road_or_said_not_to_be(root):
    there = {path.stem for path in (root / "envs").glob("*.yaml")}

    assert there == {name for name, *_ in ROAD} | OFF_THE_ROAD


def test_an_unknown_package_is_refused(project, stand_in):
    path = project.folder / "envs/analysis.yaml"
    kept = path.read_text()
    path.write_text(kept.replace("  - pip\n", "  - pip\n  - no-such-package=1.0\n", 1))
    try:
        status, said = snakemake(project, stand_in, LIST, "--forcerun", "draw_selection")
    finally:
        path.write_text(kept)

    assert status != 0
    assert "no-such-package" in said
    assert "Creating conda environment envs/analysis.yaml" in said


def test_a_pin_that_does_not_exist_is_refused(project, stand_in):
    path = project.folder / "envs/analysis.yaml"
    kept = path.read_text()
    pins = kept[: kept.index("      - ")] + "      - tqdm==0.0.0.1\n"
    path.write_text(pins)
    try:
        status, said = snakemake(project, stand_in, LIST, "--forcerun", "draw_selection")
    finally:
        path.write_text(kept)

    assert status != 0
    assert "tqdm==0.0.0.1" in said
