"""The profiles for several GPUs and for a cluster: what they set, and what comes of it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.workflow

# Jobs that lease a device as the rule `infer` does, and hold it until a file appears.
HOLD = """
import os, sys, time
from pathlib import Path
from vlmfair.inference.lease import lease_devices

name, until = sys.argv[1:3]
with lease_devices(1, job=name, timeout=60, poll=0.05):
    Path(f"{name}.device").write_text(os.environ["CUDA_VISIBLE_DEVICES"])
    while not Path(until).exists():
        time.sleep(0.02)
Path(f"{name}.done").touch()
"""
WORKFLOW = """
rule all:
    input:
        expand("job_{number}.done", number=range(4)),


rule hold:
    output:
        "job_{number}.done",
    resources:
        gpu=1,
    shell:
        "PYTHON hold.py job_{wildcards.number} end"
"""
DEVICES = {"0", "1", "2", "3"}


def settings(root: Path, profile: str) -> dict:
    return yaml.safe_load((root / f"profiles/{profile}/config.yaml").read_text())


@pytest.fixture
def four_gpus(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the workflow above, on a machine that pretends to have four devices."""
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VLMFAIR_DEVICES", "0,1,2,3")
    monkeypatch.setenv("VLMFAIR_LEASES", str(tmp_path / "leases"))
    monkeypatch.setenv("PYTHONPATH", str(root))
    (tmp_path / "hold.py").write_text(HOLD)
    yield tmp_path
    (tmp_path / "end").touch()


def start_four_jobs(folder: Path, root: Path) -> subprocess.Popen[str]:
    (folder / "Snakefile").write_text(WORKFLOW.replace("PYTHON", sys.executable))
    command = [sys.executable, "-m", "snakemake", "--cores", "8", "--resources", "gpu=4"]
    return subprocess.Popen(
        [*command, "--workflow-profile", str(root / "profiles/gpu")],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def held(folder: Path) -> dict[str, str]:
    """The device of each job that is running with one."""
    files = {path.stem: path for path in folder.glob("*.device")}
    texts = {name: path.read_text() for name, path in files.items()}
    return {name: text for name, text in texts.items() if text}


def wait_for_holders(folder: Path, count: int) -> dict[str, str]:
    deadline = time.monotonic() + 60
    while len(held(folder)) < count:
        assert time.monotonic() < deadline, held(folder)
        time.sleep(0.05)
    return held(folder)


def finish(folder: Path, run: subprocess.Popen[str]) -> str:
    (folder / "end").touch()
    shown = run.communicate(timeout=60)[0]
    assert run.returncode == 0, shown[-3000:]
    return shown


def test_four_jobs_at_once_see_four_different_devices(root, four_gpus):
    run = start_four_jobs(four_gpus, root)

    devices = wait_for_holders(four_gpus, 4)

    finish(four_gpus, run)
    assert set(devices.values()) == DEVICES


def test_a_killed_holder_frees_its_device_and_no_other_is_booked_twice(root, four_gpus):
    """Another workflow of the same user holds one of the four devices, and is killed."""
    stranger = subprocess.Popen([sys.executable, "hold.py", "stranger", "never"], cwd=four_gpus)
    taken = wait_for_holders(four_gpus, 1)["stranger"]
    run = start_four_jobs(four_gpus, root)
    three = wait_for_holders(four_gpus, 4)
    time.sleep(0.5)
    assert held(four_gpus) == three, "the fourth waits"
    assert {device for name, device in three.items() if name != "stranger"} == DEVICES - {taken}

    stranger.send_signal(signal.SIGKILL)
    stranger.wait()

    devices = wait_for_holders(four_gpus, 5)
    finish(four_gpus, run)
    fourth = set(devices) - set(three)
    assert [devices[name] for name in fourth] == [taken]


@pytest.mark.parametrize("profile", ["gpu", "slurm"])
def test_a_profile_keeps_what_the_default_one_is_for(root, profile):
    default, other = settings(root, "default"), settings(root, profile)

    kept = {key: value for key, value in default.items() if key != "retries"}
    assert {key: other.get(key) for key in kept} == kept
    assert other["retries"] > 0, "a retry asks for more memory"


def test_the_profile_for_slurm_retries_by_new_submissions_and_uses_no_arrays(root):
    slurm = settings(root, "slurm")
    partitions = yaml.safe_load((root / slurm["slurm-partition-config"]).read_text())["partitions"]

    assert slurm["executor"] == "slurm"
    assert slurm["slurm-status-command"] == "squeue"
    assert "slurm-array-jobs" not in slurm
    # Jobs without a GPU need a place too.
    assert {name: limits.get("max_gpu", 0) > 0 for name, limits in partitions.items()} == {
        "main": False,
        "gpu": True,
    }


@pytest.mark.parametrize("profile", ["default", "gpu", "slurm"])
def test_every_line_of_a_profile_says_why(root, profile):
    """A key stands below a comment, alone or in a group with one."""
    lines = (root / f"profiles/{profile}/config.yaml").read_text().splitlines()
    groups = "\n".join(lines).split("\n\n")

    for group in groups:
        assert any(line.startswith("#") for line in group.splitlines()), group
