"""What this process has used so far: CPU time and memory. Standard library only."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
_SENTENCE = re.compile(r"used ([0-9.]+) s of CPU time and at most ([0-9]+) MB of memory$")


@dataclass(frozen=True)
class Usage:
    """CPU time in seconds, and the most memory that was occupied at once in MB (10^6 bytes)."""

    cpu_seconds: float
    peak_megabytes: int


def usage_sentence() -> str:
    """Say in a line of a log what this process has used so far."""
    peak = round(peak_resident_bytes() / 1e6)
    return f"used {cpu_seconds():.2f} s of CPU time and at most {peak} MB of memory"


def read_usage(log: Path) -> Usage | None:
    """Return what the last such line of a log says, None where there is none."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    found = next(filter(None, map(_SENTENCE.search, reversed(lines))), None)
    return Usage(float(found[1]), int(found[2])) if found else None


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended, in seconds."""
    try:
        import resource
    except ImportError:  # no such module on Windows
        return time.process_time()
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def resident_bytes() -> int:
    """Return the memory that this process occupies now; where /proc is missing, its peak."""
    return _from_status("VmRSS") or peak_resident_bytes()


def peak_resident_bytes() -> int:
    """Return the most memory that this process has occupied since its start, or since a reset."""
    peak = _from_status("VmHWM")
    if peak is not None:
        return peak
    try:
        import resource
    except ImportError:
        return 0
    # Bytes on macOS, kibibytes elsewhere; a forked process starts with its parent's peak there.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def reset_peak() -> bool:
    """Let the peak start again from what is occupied now; False where the system has no such."""
    try:
        _CLEAR_REFS.write_text(_RESET_PEAK)
    except OSError:
        return False
    return True


def _from_status(name: str) -> int | None:
    try:
        status = _STATUS.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = re.search(rf"^{name}:\s+(\d+) kB$", status, flags=re.MULTILINE)
    return int(found[1]) * 1024 if found else None
