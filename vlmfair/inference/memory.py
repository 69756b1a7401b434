"""The C allocator of an inference job on a CPU: memory of one batch is kept for the next."""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
# The largest that glibc accepts; activations of a batch of a small model lie below it.
_MMAP_THRESHOLD = 32 * 1024**2


def keep_freed_memory() -> bool:
    """Tell glibc to reuse freed activations instead of giving them back to the system.

    Every page that is given back is zeroed again by the kernel at its next use, which was a third
    of a small model's time. Returns False where there is no glibc; nothing is changed then.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    settings = (
        (_M_MMAP_THRESHOLD, _MMAP_THRESHOLD),
        (_M_TRIM_THRESHOLD, 1024**3),
        (_M_TOP_PAD, 64 * 1024**2),
    )
    return all(mallopt(name, value) == 1 for name, value in settings)
