"""Comparisons of speed and memory are right for work whose cost is known."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import pytest

from vlmfair.bench.timing import CpuComparison, PeakMemory, compare_cpu, peak_memory

MEGABYTE = 1024**2


def spin(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def fill(megabytes: int) -> np.ndarray:
    return np.ones(megabytes * MEGABYTE, dtype=np.uint8)


def fill_and_drop(megabytes: int) -> int:
    return int(fill(megabytes)[0])


def work_of(megabytes: int, state: object) -> None:
    assert state is not None
    fill_and_drop(megabytes)


def fail(state: object) -> None:
    raise ValueError(f"cannot work with {state}")


def test_four_times_the_work_is_a_ratio_of_four() -> None:
    compared = compare_cpu(partial(spin, 0.08), partial(spin, 0.02), repeats=3)

    assert compared.ratio == pytest.approx(4, rel=0.1)
    assert compared.plain_seconds == pytest.approx(0.08, rel=0.1)
    assert len(compared.ours) == 3


def test_sleeping_costs_no_cpu_time() -> None:
    compared = compare_cpu(partial(time.sleep, 0.1), partial(spin, 0.05), repeats=1, warm_up=0)

    assert compared.ratio < 0.2


def test_the_ways_take_turns_and_the_warm_up_is_not_counted() -> None:
    calls: list[str] = []

    compared = compare_cpu(
        lambda: calls.append("plain"), lambda: calls.append("ours"), repeats=2, warm_up=1
    )

    assert calls == ["plain", "ours"] * 3
    assert len(compared.plain) == len(compared.ours) == 2


def test_the_ratio_is_the_median_of_pairs_so_that_one_disturbance_does_not_count() -> None:
    # The third pair was disturbed: 1.0 s against the usual 0.1 s.
    assert CpuComparison((0.4, 0.4, 0.4), (0.1, 0.1, 1.0)).ratio == pytest.approx(4.0)


def test_memory_of_the_work_is_counted_above_what_was_there_before() -> None:
    measured = peak_memory(partial(fill, 150), partial(work_of, 60))

    assert measured.above == pytest.approx(60 * MEGABYTE, rel=0.1)
    assert measured.baseline > 150 * MEGABYTE


def test_a_peak_of_the_preparation_is_not_the_works() -> None:
    measured = peak_memory(partial(fill_and_drop, 200), partial(work_of, 20))

    assert measured.above == pytest.approx(20 * MEGABYTE, rel=0.2)
    assert measured.baseline < 150 * MEGABYTE


def test_memory_that_was_free_before_is_not_negative() -> None:
    assert PeakMemory(baseline=5, peak=3).above == 0


def test_a_process_that_fails_says_why() -> None:
    with pytest.raises(RuntimeError, match="ValueError: cannot work with 1"):
        peak_memory(partial(fill_and_drop, 1), fail)
