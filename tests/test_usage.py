"""What a process has used is measured, written into its log, and read back."""

from __future__ import annotations

import mmap
import time
from pathlib import Path

import pytest

from vlmfair.logs import rule_log
from vlmfair.usage import (
    cpu_seconds,
    peak_resident_bytes,
    read_usage,
    reset_peak,
    resident_bytes,
)

MEGABYTE = 1_000_000


def test_cpu_time_goes_on_while_this_process_works() -> None:
    before = cpu_seconds()
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass

    assert cpu_seconds() - before == pytest.approx(0.1, abs=0.03)


def test_the_peak_remembers_memory_that_was_given_back() -> None:
    if not reset_peak():
        pytest.skip("this system cannot reset a process's peak")
    before = resident_bytes()
    # Pages of their own: what an allocator kept of freed memory would not grow the process.
    with mmap.mmap(-1, 80 * MEGABYTE) as occupied:
        occupied.write(b"x" * len(occupied))

    assert peak_resident_bytes() - before > 75 * MEGABYTE
    reset_peak()
    assert peak_resident_bytes() - before < 75 * MEGABYTE


def test_a_log_ends_with_what_its_job_has_used(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    with rule_log(log):
        print("work")

    used = read_usage(log)

    assert used is not None
    assert used.cpu_seconds == pytest.approx(cpu_seconds(), abs=1)
    assert used.peak_megabytes == pytest.approx(peak_resident_bytes() / MEGABYTE, rel=0.1)


def test_the_last_of_several_lines_counts_and_no_line_is_none(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(
        "12:00 INFO used 1.50 s of CPU time and at most 100 MB of memory\n"
        "12:01 INFO used 2.25 s of CPU time and at most 300 MB of memory\n"
        "of which nothing was wasted\n"
    )
    used = read_usage(log)

    assert used is not None
    assert (used.cpu_seconds, used.peak_megabytes) == (2.25, 300)
    log.write_text("used a lot of memory\n")
    assert read_usage(log) is None
    assert read_usage(tmp_path / "none.log") is None
