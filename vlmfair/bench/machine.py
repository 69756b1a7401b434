"""Where and with what a bench was measured."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from vlmfair.provenance import library_versions

_CPU_INFO = Path("/proc/cpuinfo")


def describe_machine() -> dict[str, str]:
    """Return date, processor, number of CPUs, system, Python and the libraries' versions."""
    libraries = library_versions()
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": _processor(),
        "cpus": str(os.cpu_count()),
        "system": platform.system(),
        "python": platform.python_version(),
        "libraries": ", ".join(f"{name} {libraries[name]}" for name in sorted(libraries)),
    }


def _processor() -> str:
    try:
        lines = _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
