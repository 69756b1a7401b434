"""Devices are lent to one job at a time, whatever becomes of the jobs (real processes here)."""

from __future__ import annotations

import logging
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from vlmfair.errors import InferenceError
from vlmfair.inference.lease import device_pool, lease_devices, lease_folder

# Says which devices it has, then holds them until its input ends.
HOLDER = """
import os, sys
from vlmfair.inference.lease import lease_devices
with lease_devices(int(sys.argv[1]), job=sys.argv[2], timeout=20, poll=0.05) as devices:
    if "forks" in sys.argv and not os.fork():
        os.execlp("sleep", "sleep", "20") if "exec" in sys.argv else sys.stdin.read()
    print(os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
    sys.stdin.read()
"""
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four pretended devices, and a folder of lock files of this test's own."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv("VLMFAIR_DEVICES", "0,1,2,3")
    monkeypatch.setenv("VLMFAIR_LEASES", str(tmp_path / "leases"))
    return tmp_path / "leases"


@pytest.fixture
def start(leases: Path, root: Path) -> Iterator[Start]:
    """Start a process that leases devices; `devices_of` reads what it got."""
    processes: list[subprocess.Popen[str]] = []

    def run(count: int = 1, job: str = "a job", *more: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(count), job, *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
            start_new_session=True,
        )
        processes.append(process)
        return process

    yield run
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def devices_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def first_served(jobs: list[subprocess.Popen[str]]) -> subprocess.Popen[str]:
    """The job that is the first to say which devices it has."""
    ready = select.select([job.stdout for job in jobs], [], [], 20)[0]
    assert ready, "none of the jobs got its devices"
    return next(job for job in jobs if job.stdout is ready[0])


def end(process: subprocess.Popen[str]) -> None:
    process.communicate("")
    assert process.returncode == 0


def test_four_jobs_get_four_different_devices(start: Start) -> None:
    jobs = [start() for _ in range(4)]

    assert sorted(map(devices_of, jobs)) == ["0", "1", "2", "3"]


def test_a_killed_job_gives_its_device_back_and_no_other_is_booked_twice(start: Start) -> None:
    jobs = [start(job=f"job {number}") for number in range(4)]
    devices = dict(zip(jobs, map(devices_of, jobs), strict=True))
    killed = jobs[2]
    killed.send_signal(signal.SIGKILL)
    killed.wait()

    fifth, sixth = start(), start()

    served = first_served([fifth, sixth])
    assert devices_of(served) == devices[killed]
    waiting = sixth if served is fifth else fifth
    assert not select.select([waiting.stdout], [], [], 0.5)[0], "all four are taken"

    end(jobs[0])
    assert devices_of(waiting) == devices[jobs[0]]


@pytest.mark.parametrize("kind", ["forks", "exec"])
def test_a_worker_that_outlives_its_killed_job_holds_nothing(
    start: Start, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("VLMFAIR_DEVICES", "0")
    job = start(1, "a job", "forks", kind)
    assert devices_of(job) == "0"

    job.kill()
    job.wait()

    assert devices_of(start()) == "0"


def test_jobs_that_want_two_of_three_take_turns(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLMFAIR_DEVICES", "0,1,2")
    jobs = [start(2) for _ in range(3)]

    while jobs:
        served = first_served(jobs)
        assert devices_of(served) in ("0,1", "0,2", "1,2")
        jobs.remove(served)
        if jobs:
            assert not select.select([job.stdout for job in jobs], [], [], 0.3)[0]
        end(served)


def test_devices_are_chosen_for_this_process_and_the_choice_ends_with_the_block(
    leases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-5ebe9f43,GPU-ac33420d,GPU-0c1d2e3f")

    with lease_devices(2) as devices:
        assert devices == ("GPU-5ebe9f43", "GPU-ac33420d")
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-5ebe9f43,GPU-ac33420d"
        assert "CUDA_DEVICE_ORDER" not in os.environ, "the names are the scheduler's own"

    assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-5ebe9f43,GPU-ac33420d,GPU-0c1d2e3f"


def test_numbers_are_those_of_nvidia_smi(leases: Path) -> None:
    with lease_devices(1) as devices:
        assert devices == ("0",)
        assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"

    assert not {"CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"} & set(os.environ)


def test_no_device_means_nothing_is_leased(leases: Path) -> None:
    with lease_devices(0) as devices:
        assert devices == ()
        assert "CUDA_VISIBLE_DEVICES" not in os.environ
    assert not leases.exists()


def test_waiting_is_said_and_bounded(
    start: Start, leases: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("VLMFAIR_DEVICES", "0")
    holder = start(job="infer gras tiny 3")
    assert devices_of(holder) == "0"

    with (
        caplog.at_level(logging.INFO),
        pytest.raises(InferenceError) as caught,
        lease_devices(1, job="infer gras tiny 4", timeout=0.3, poll=0.05),
    ):
        pytest.fail("the device was lent twice")

    sentence = str(caught.value)
    assert sentence.startswith("infer gras tiny 4: 1 device of 1 did not become free in 0 seconds")
    assert f"(0: pid {holder.pid} on " in sentence
    assert ", infer gras tiny 3, since 20" in sentence
    assert "--resources gpu=1" in sentence
    waiting = [record.getMessage() for record in caplog.records]
    assert sum(text.startswith("waiting for 1 device of 1") for text in waiting) == 1
    assert f"pid {holder.pid} on " in waiting[0]


def test_more_devices_than_there_are_is_an_error_at_once(leases: Path) -> None:
    with (
        pytest.raises(InferenceError, match="5 devices wanted, .* has 4 devices. Write gpus: 4"),
        lease_devices(5),
    ):
        pytest.fail("there are four")


def test_a_machine_without_devices_says_what_to_write(
    leases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLMFAIR_DEVICES", "")

    with (
        pytest.raises(InferenceError, match=r"has none\. Write gpus: 0 .*, with device: cpu"),
        lease_devices(1),
    ):
        pytest.fail("there is none")


def test_a_folder_that_cannot_be_made_says_what_to_do(
    tmp_path: Path, leases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VLMFAIR_LEASES", str(tmp_path / "file"))

    with (
        pytest.raises(InferenceError, match="Set VLMFAIR_LEASES to a folder of yours"),
        lease_devices(1),
    ):
        pytest.fail("there is no folder")


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("2,3", ("2", "3")),
        (" 0 , 1 ", ("0", "1")),
        ("GPU-5ebe9f43,MIG-0c1d2e3f", ("GPU-5ebe9f43", "MIG-0c1d2e3f")),
        ("1,1", ("1",)),
        ("0,-1,2", ("0",)),
        ("", ()),
        ("NoDevFiles", ()),
    ],
)
def test_what_the_scheduler_allots_is_the_pool(visible: str, expected: tuple[str, ...]) -> None:
    environment = {"CUDA_VISIBLE_DEVICES": visible, "VLMFAIR_DEVICES": "7"}

    assert device_pool(environment) == expected


def test_without_an_allotment_nvidia_smi_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = tmp_path / "nvidia-smi"
    listing.write_text("#!/bin/sh\nprintf '0\\n1\\n'\n")
    listing.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert device_pool({}) == ("0", "1")


def test_each_allocation_and_each_folder_has_its_own_leases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two SLURM jobs on one machine may both call their device 0, and mean different ones."""
    first, second = (lease_folder({"SLURM_JOB_ID": number}) for number in ("17", "18"))

    assert first != second
    assert lease_folder({"VLMFAIR_LEASES": str(tmp_path)}).is_relative_to(tmp_path)
    monkeypatch.setattr("platform.node", lambda: "../elsewhere")
    assert lease_folder({"VLMFAIR_LEASES": str(tmp_path)}).parent == tmp_path


def test_a_device_name_never_leads_out_of_the_folder(
    leases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLMFAIR_DEVICES", "../../escape")

    with lease_devices(1) as devices:
        assert devices == ("../../escape",)
        locks = [path.relative_to(leases).parts[-1] for path in leases.rglob("device-*")]

    assert locks == ["device-..%2F..%2Fescape.lock"]
    assert not list(leases.parent.glob("*escape*"))
