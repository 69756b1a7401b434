"""Fair comparisons on a busy machine: CPU time of two ways in turn, and memory of one apart."""

from __future__ import annotations

import base64
import gc
import os
import pickle
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from vlmfair.usage import peak_resident_bytes, reset_peak, resident_bytes

_State = TypeVar("_State")
# What keeps numerical libraries to one thread from the start of a process.
ONE_THREAD = {
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "OMP_WAIT_POLICY": "PASSIVE",
}


@dataclass(frozen=True)
class CpuComparison:
    """CPU seconds of each repeat of both ways, measured in turn in one process."""

    plain: tuple[float, ...]
    ours: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """The median over the repeats of plain / ours, each pair from the same moment."""
        return statistics.median(a / b for a, b in zip(self.plain, self.ours, strict=True))

    @property
    def plain_seconds(self) -> float:
        """The median CPU time of the plain way."""
        return statistics.median(self.plain)

    @property
    def our_seconds(self) -> float:
        """The median CPU time of ours."""
        return statistics.median(self.ours)


@dataclass(frozen=True)
class PeakMemory:
    """Bytes that a process occupied before the work, and at most while it worked."""

    baseline: int
    peak: int

    @property
    def above(self) -> int:
        """What the work itself took: the peak above the baseline, in bytes."""
        return max(0, self.peak - self.baseline)


def compare_cpu(
    plain: Callable[[], object],
    ours: Callable[[], object],
    *,
    repeats: int = 3,
    warm_up: int = 1,
) -> CpuComparison:
    """Run both ways in turn, plain first, on one thread, and return the CPU time of each run.

    The first `warm_up` rounds are not counted. CPU time of this process is taken, not wall time,
    so that other load on the machine counts little; what a way gives back is dropped.
    """
    times: dict[str, list[float]] = {"plain": [], "ours": []}
    with one_thread():
        for turn in range(warm_up + repeats):
            for name, way in (("plain", plain), ("ours", ours)):
                gc.collect()
                start = time.process_time()
                way()
                spent = time.process_time() - start
                if turn >= warm_up:
                    times[name].append(spent)
    return CpuComparison(tuple(times["plain"]), tuple(times["ours"]))


def peak_memory(
    prepare: Callable[[], _State],
    work: Callable[[_State], object],
    *,
    timeout: float = 3600.0,
) -> PeakMemory:
    """Run `work(prepare())` in a fresh process and return its memory before and during `work`.

    Both have to be functions of modules, or `functools.partial` of such: the new process imports
    them. It computes with one thread. What `prepare` needed at its own peak does not count where
    the system can reset the peak (Linux). Raises RuntimeError, with the child's last lines, when
    the process fails.
    """
    if "__main__" in (getattr(_innermost(call), "__module__", "") for call in (prepare, work)):
        raise ValueError("a function of __main__ cannot be imported in another process")
    job = base64.b64encode(pickle.dumps((prepare, work))).decode("ascii")
    done = subprocess.run(
        [sys.executable, "-c", "from vlmfair.bench.timing import _measure; _measure()"],
        input=job,
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    if done.returncode:
        tail = "\n".join(done.stderr.splitlines()[-20:])
        raise RuntimeError(f"the measured process ended with {done.returncode}:\n{tail}")
    baseline, peak = done.stdout.split()[-2:]
    return PeakMemory(int(baseline), int(peak))


@contextmanager
def one_thread() -> Iterator[None]:
    """Let numerical libraries that are loaded compute with one thread within the block."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch is not None else 0
    with threadpool_limits(1):
        if torch is not None:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch is not None:
                torch.set_num_threads(threads)


def _innermost(call: Any) -> Any:
    while hasattr(call, "func"):
        call = call.func
    return call


def _measure() -> None:
    """Do what `peak_memory` sent and print baseline and peak in bytes; runs in the new process."""
    prepare, work = pickle.loads(base64.b64decode(sys.stdin.read()))
    state = prepare()
    gc.collect()
    _give_back()
    baseline = resident_bytes()
    reset_peak()
    work(state)
    print(baseline, peak_resident_bytes())


def _give_back() -> None:
    """Return freed memory to the system, so that the work cannot use it for nothing."""
    import ctypes

    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):  # not glibc
        return
