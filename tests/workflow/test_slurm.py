"""The demo's GRAS on a real SLURM of one node: through sbatch, a failure, and a kill in the middle.

Runs on request (`pytest -m slurm`), as root on Debian or Ubuntu; continuous integration does.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from conftest import copy_project

pytestmark = [pytest.mark.workflow, pytest.mark.slurm]

RESULTS = "results/demo/gras"
TABLES = [f"{RESULTS}/tables/table_{number}.csv" for number in (1, 2, 3)]
# 24 traits in 5 wordings about 100 images, of which the demo damages three; in two shards, each of
# which takes about ten seconds.
QUESTIONS = 24 * 5 * 97
SETTINGS = {
    "models": ["tiny-planted"],
    "per_cell": 1,
    "per_tone": 3,
    "permutations": 50,
    "bootstraps": 50,
    "images_per_shard": 50,
}
# Seconds for one run of snakemake, which takes two minutes where nothing else does.
LIMIT = 1500
# Each job waits its turn on two cores; the checks of the profile are for queues of hours.
QUICK = ["--slurm-init-seconds-before-status-checks", "2", "--seconds-between-status-checks", "2"]
SUBMITTED = re.compile(r"Job (\d+) has been submitted with SLURM jobid (\d+) \(log: .*?/rule_(\w+)")
# As a rule that got too little memory the first time: nothing on this node enforces memory.
TOO_LITTLE_MEMORY = (
    "if snakemake.resources.mem_mb < {needed}:\n"
    '    raise MemoryError("too little memory for this test")\n'
)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A SLURM with the partitions main and gpu, and one pretended GPU."""
    if os.geteuid() != 0:
        pytest.skip("a SLURM for tests is started as root")
    if not (shutil.which("slurmctld") or shutil.which("apt-get")):
        pytest.skip("there is no SLURM, and no apt-get to install one")
    script = str(Path(__file__).with_name("one_node_slurm.sh"))
    folder = tmp_path_factory.mktemp("slurm")
    environment = {**os.environ, "SLURM_TEST_DIR": str(folder)}

    def run(action: str) -> subprocess.CompletedProcess[str]:
        # The output goes to a file: daemons keep a pipe open.
        with (folder / "started.log").open("w+") as log:
            return subprocess.run(
                ["bash", script, action], env=environment, stdout=log, stderr=log, timeout=300
            )

    try:
        started = run("start")
        said = (folder / "started.log").read_text()
        if not shutil.which("slurmctld"):
            pytest.skip(f"SLURM's packages cannot be installed: {said[-300:]}")
        if started.returncode == 3:
            pytest.skip(said)
        assert started.returncode == 0, said
        yield
    finally:
        run("stop")


@dataclass(frozen=True)
class Submitted:
    """A job as snakemake said that it was submitted."""

    job: str
    slurm_id: str
    rule: str


@dataclass(frozen=True)
class Story:
    """What was seen while the same tables were made on SLURM, with a kill, and locally."""

    cluster: Path
    local: Path
    before: list[Submitted]
    after: list[Submitted]
    left_running: set[str]
    stored_at_kill: int
    said_without_unlock: str
    jobs: dict[str, dict[str, str]]


def make_copy(root: Path, folder: Path, gpus: int) -> Path:
    copy_project(root, folder)
    traits = yaml.safe_load((root / "config/config.yaml").read_text())["gras"]["traits"]
    known = (root / "resources/words/gras_traits.csv").read_text().split("\n")
    words = [line.split(",")[0] for line in known[1:] if line]
    chosen = [*traits, *[word for word in words if word not in traits][:8]]
    settings = {
        "gras": {**SETTINGS, "traits": chosen},
        "inference": {"gpus": gpus, "mem_mb": 1500},
    }
    (folder / "settings.yaml").write_text(yaml.safe_dump(settings))
    return folder


def snakemake_command(*arguments: str) -> list[str]:
    # A job that no node has room for pends for ever, and SIGTERM does not end snakemake then.
    limit = ["timeout", "-k", "5", str(LIMIT)]
    command = [*limit, sys.executable, "-m", "snakemake", *arguments]
    return [*command, "--configfile", "settings.yaml"]


def on_slurm(*arguments: str) -> list[str]:
    return snakemake_command("--workflow-profile", "profiles/slurm", *QUICK, *arguments)


def run(command: list[str], folder: Path, succeeds: bool = True) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=LIMIT + 30, env=environment()
    )
    said = done.stdout + done.stderr
    assert (done.returncode == 0) == succeeds, said[-6000:]
    return said


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}


def slurm_says(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} after {seconds} s"
        time.sleep(0.1)


def stored_keys(folder: Path) -> list[bytes]:
    parts = (folder / "results/answers").glob("*/*.parquet")
    whole = [path for path in parts if not path.name.startswith(".")]
    return [key for path in whole for key in pq.read_table(path)["key"].to_pylist()]


def submissions(said: str) -> list[Submitted]:
    return [Submitted(*found) for found in SUBMITTED.findall(said)]


def all_jobs() -> dict[str, dict[str, str]]:
    """What SLURM knows of each job, by its id."""
    blocks = slurm_says("scontrol", "show", "job").split("\n\n")
    listed = [dict(re.findall(r"(\S+?)=(\S*)", block)) for block in blocks if block.strip()]
    return {job["JobId"]: job for job in listed}


def run_and_kill(folder: Path) -> tuple[str, set[str], int]:
    """Start a run, kill snakemake while a shard is half answered, and end what it left behind."""
    with (folder / "first_run.log").open("w+") as log:
        first = subprocess.Popen(
            on_slurm(*TABLES),
            cwd=folder,
            stdout=log,
            stderr=log,
            env=environment(),
            start_new_session=True,
        )
        try:
            wait_until(
                lambda: len(stored_keys(folder)) >= 1000 or first.poll() is not None,
                LIMIT,
                "no answers were kept",
            )
        finally:
            os.killpg(first.pid, signal.SIGKILL)
            first.wait()
        left = set(slurm_says("squeue", "-h", "-o", "%i").split())
        if left:
            slurm_says("scancel", *left)
        wait_until(lambda: not slurm_says("squeue", "-h"), 60, "jobs were not cancelled")
        log.seek(0)
        return log.read(), left, len(stored_keys(folder))


@pytest.fixture(scope="module")
def story(root: Path, tmp_path_factory: pytest.TempPathFactory, slurm: None) -> Story:
    folder = tmp_path_factory.mktemp("runs")
    cluster = make_copy(root, folder / "cluster", gpus=1)
    local = make_copy(root, folder / "local", gpus=0)
    script = cluster / "workflow/scripts/gather_responses.py"
    # The rule asks for 3,000 MB, and for twice as much the second time.
    script.write_text(TOO_LITTLE_MEMORY.format(needed=6000) + script.read_text())

    said_before, left, stored = run_and_kill(cluster)
    locked = run(on_slurm(*TABLES), cluster, succeeds=False)
    run(on_slurm("--unlock"), cluster)
    # Side by side: on the cluster most of the time is waiting for the next look at the queue.
    with ThreadPoolExecutor() as pool:
        local_run = pool.submit(run, snakemake_command("--cores", "1", *TABLES), local)
        said_after = run(on_slurm(*TABLES), cluster)
        local_run.result()
    return Story(
        cluster=cluster,
        local=local,
        before=submissions(said_before),
        after=submissions(said_after),
        left_running=left,
        stored_at_kill=stored,
        said_without_unlock=locked,
        jobs=all_jobs(),
    )


def test_jobs_go_to_the_partition_that_has_what_they_ask_for(story):
    submitted = {job.slurm_id: job.rule for job in (*story.before, *story.after)}
    where = {(submitted[name], job["Partition"]) for name, job in story.jobs.items()}

    assert {rule for rule, partition in where if partition == "gpu"} == {"infer"}
    assert ("infer", "main") not in where
    assert {"draw_raw", "prepare_dataset", "plan_gras", "measure_gras"} <= {
        rule for rule, partition in where if partition == "main"
    }


def test_slurm_sees_the_request_for_a_gpu_and_the_job_uses_the_one_it_is_given(story):
    asking = {name for name, job in story.jobs.items() if "gpu" in job.get("TresPerJob", "")}

    assert asking == {job.slurm_id for job in (*story.before, *story.after) if job.rule == "infer"}
    assert {story.jobs[name]["TresPerJob"] for name in asking} == {"gres:gpu:1"}
    log = (story.cluster / "results/demo/logs/infer/gras/tiny-planted/0.log").read_text()
    assert "1 device of 1 leased: 0" in log


def test_a_failed_job_is_submitted_anew_with_twice_the_memory(story):
    tries = [job for job in story.after if job.rule == "gather_responses"]

    first, second = (story.jobs[job.slurm_id] for job in tries)
    assert (first["JobState"], second["JobState"]) == ("FAILED", "COMPLETED")
    assert "mem=3000M" in first["TRES"]
    assert re.search(r"mem=(6000M|5.86G)", second["TRES"]), second["TRES"]
    assert first["JobId"] != second["JobId"]


def test_a_killed_snakemake_leaves_its_jobs_which_have_to_be_ended(story):
    infer = {job.slurm_id for job in story.before if job.rule == "infer"}

    assert story.left_running & infer, "the shard was being answered"
    assert story.left_running <= infer
    assert {story.jobs[name]["JobState"] for name in story.left_running} == {"CANCELLED"}
    assert "--unlock" in story.said_without_unlock


def test_no_answer_is_lost_and_none_that_was_kept_is_computed_again(story):
    shards = [
        json.loads(
            (story.cluster / f"{RESULTS}/responses/tiny-planted/{shard}.manifest.json").read_text()
        )
        for shard in (0, 1)
    ]
    keys = Counter(stored_keys(story.cluster))

    assert 1000 <= story.stored_at_kill < QUESTIONS / 2, "killed in the middle of a shard"
    assert sum(shard["answers"]["stored"] for shard in shards) == story.stored_at_kill
    assert sum(shard["answers"]["asked"] for shard in shards) == QUESTIONS - story.stored_at_kill
    assert len(keys) == QUESTIONS
    assert set(keys.values()) == {1}


def test_the_second_run_repeats_no_job_that_had_finished(story):
    assert {job.rule for job in story.before} >= {"draw_raw", "prepare_dataset", "plan_gras"}
    assert {job.rule for job in story.after} == {
        "infer",
        "gather_responses",
        "judge_gras",
        "measure_gras",
        "collect_metrics",
    }


@pytest.mark.parametrize("table", TABLES)
def test_tables_are_those_of_the_local_run_to_the_byte(story, table):
    for name in (table, table.replace(".csv", ".html"), table.replace(".csv", ".tex")):
        assert (story.cluster / name).read_bytes() == (story.local / name).read_bytes(), name
