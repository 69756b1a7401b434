"""A copy of the project in which a small demo suite has been run once."""

from __future__ import annotations

import copy
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

SMALL: dict[str, Any] = {
    "gras": {
        "per_cell": 1,
        "per_tone": 3,
        "traits": ["bad", "annoying", "affectionate", "polite"],
        "permutations": 50,
        "bootstraps": 50,
        "images_per_shard": 60,
    },
    "datasets": {
        "facet": {"drawn_per_cell": 3},
        "utkface": {"drawn_per_cell": 6},
        "coco_bias": {"drawn_per_cell": 1},
        "dci": {"drawn_per_cell": 1},
        "visual_cot": {"drawn_per_cell": 1},
    },
    "lvlm_fairness": {
        "choice_prompts": ["p2"],
        "baselines": ["vit"],
        "judges": ["strict", "regex"],
        "resample_sizes": [10, 20],
        "resample_draws": 3,
        "bootstraps": 20,
    },
    "vl_bicle": {
        "tasks": ["visogender_oo", "coco_bias", "visual_cot_direct"],
        "shots": [0, 2],
        "runs": 2,
        "retrieval": ["SIIR", "SITR/balanced"],
        "bootstraps": 20,
        "synthesis": {"models": ["tiny-planted"], "generators": {"sd35l": None}},
    },
}


# What takes minutes and changes the machine runs only where it is asked for by its marker.
ON_REQUEST = ("slurm", "conda", "demo_results")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that `-m` does not ask for by name."""
    asked = config.getoption("-m")
    unasked = [name for name in ON_REQUEST if name not in asked]
    left_out = [item for item in items if any(map(item.get_closest_marker, unasked))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@dataclass(frozen=True)
class Project:
    """A working copy of the project, the settings it runs with, and how to run snakemake in it."""

    folder: Path
    settings: dict[str, Any]

    def with_settings(self, **sections: Any) -> Project:
        """The same copy with other settings; sections are merged key by key."""
        merged = copy.deepcopy(self.settings)
        for name, value in sections.items():
            if isinstance(value, dict):
                merged[name] = {**merged.get(name, {}), **value}
            else:
                merged[name] = value
        return Project(self.folder, merged)

    def snakemake(self, *arguments: str, check: bool = True) -> str:
        """Run snakemake with the settings and return what it printed."""
        configfile = self.folder / "settings.yaml"
        configfile.write_text(yaml.safe_dump(self.settings))
        command = [sys.executable, "-m", "snakemake", "--cores", "2"]
        # What is meant to fail fails at once; an argument may say otherwise.
        command += [] if check else ["--retries", "0"]
        command += arguments
        done = subprocess.run(
            [*command, "--configfile", configfile.name],
            cwd=self.folder,
            env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "PYTHONHASHSEED": "random"},
            capture_output=True,
            text=True,
            timeout=1200,
        )
        shown = done.stdout + done.stderr
        assert not check or done.returncode == 0, shown[-6000:]
        assert check or done.returncode != 0, "this run should have failed"
        return shown

    def planned_rules(self, *arguments: str) -> set[str]:
        """The rules that a dry-run would execute."""
        shown = self.snakemake("--dry-run", *arguments)
        rules = re.findall(r"^(?:local)?rule (\w+):", shown, flags=re.MULTILINE)
        jobs = re.findall(r"^(\w+) +\d+$", shown, flags=re.MULTILINE)
        return {*rules, *jobs} - {"all", "total"}


def copy_project(root: Path, folder: Path) -> None:
    """Copy the project's files, without what is generated or installed."""
    ignored = shutil.ignore_patterns(
        ".venv", ".git", "results", ".snakemake", "__pycache__", ".*_cache", ".hypothesis"
    )
    shutil.copytree(root, folder, ignore=ignored)


@pytest.fixture
def fresh(root, tmp_path) -> Project:
    """A copy of the project in which nothing has been run."""
    copy_project(root, tmp_path / "vlmfair")
    return Project(tmp_path / "vlmfair", SMALL)


@pytest.fixture(scope="session")
def finished(root, tmp_path_factory) -> Project:
    """The small demo suite, run once to its end. Tests may look but not change."""
    folder = tmp_path_factory.mktemp("finished") / "vlmfair"
    copy_project(root, folder)
    project = Project(folder, SMALL)
    project.snakemake()
    return project


@pytest.fixture
def restored(finished) -> Iterator[Callable[[str], Path]]:
    """Give a file of the finished project to change; it is put back after the test."""
    changed: dict[Path, tuple[bytes, os.stat_result]] = {}

    def give(name: str) -> Path:
        path = finished.folder / name
        changed[path] = (path.read_bytes(), path.stat())
        return path

    yield give
    for path, (content, stat) in changed.items():
        path.write_bytes(content)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
