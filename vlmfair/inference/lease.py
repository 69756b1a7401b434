"""Devices of one machine, lent to inference jobs: two jobs that run at once never share a GPU.

A scheduler on one machine counts GPUs but does not say which one a job gets: all would land on the
first. Here a job locks the files of the devices that it takes. The locks are the kernel's (flock),
so that those of a killed process are gone with it, and what its file still says blocks nobody.
"""

from __future__ import annotations

import errno
import gc
import logging
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import quote

from filelock import FileLock, Timeout

from vlmfair.errors import InferenceError

logger = logging.getLogger(__name__)

VISIBLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"
# Names devices where there are none, for tests; and the folder of the lock files.
PRETENDED, FOLDER = "VLMFAIR_DEVICES", "VLMFAIR_LEASES"
TIMEOUT_SECONDS = 24 * 3600.0
POLL_SECONDS = 2.0
REMIND_SECONDS = 600.0


@contextmanager
def lease_devices(
    count: int,
    *,
    folder: Path | None = None,
    job: str = "",
    timeout: float = TIMEOUT_SECONDS,
    poll: float = POLL_SECONDS,
) -> Iterator[tuple[str, ...]]:
    """Take `count` free devices of the pool for this process and make only them visible to CUDA.

    All of them are taken at once or none, so that jobs that want several cannot block each other.
    While too few are free it waits, at most `timeout` seconds, and says so in the log. The block
    should hold all of the process's work: its CUDA context lives as long as the process. 0 devices:
    nothing is leased or changed. Raises InferenceError when the pool is too small, the time is
    over, the lock files cannot be made, or CUDA has started before.
    """
    if count == 0:
        yield ()
        return
    pool = device_pool()
    _check(pool, count, job)
    with ExitStack() as leases:
        devices = _take(pool, count, folder or lease_folder(), job, timeout, poll, leases)
        logger.info("%s of %d leased: %s", _devices(count), len(pool), ", ".join(devices))
        leases.enter_context(_visible(devices))
        yield devices


def device_pool(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the devices that may be taken.

    Those in CUDA_VISIBLE_DEVICES where it is set, as SLURM does; else those in VLMFAIR_DEVICES;
    else the numbers of those that nvidia-smi lists, or as many as torch counts.
    """
    settings = os.environ if environment is None else environment
    for name in (VISIBLE, PRETENDED):
        if name in settings:
            return _listed(settings[name])
    return _found_by_nvidia_smi() or _found_by_torch()


def lease_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder of the lock files: one for each user, machine and SLURM allocation.

    It lies in the folder of temporary files, which is local; VLMFAIR_LEASES names another one.
    XDG_RUNTIME_DIR is no place for it: it is removed when the user logs out, and jobs run on.
    """
    settings = os.environ if environment is None else environment
    named = settings.get(FOLDER)
    base = Path(named) if named else _own_folder()
    # A named folder may be shared by several machines, which have a device 0 each. Within an
    # allocation, numbers may count from 0 whatever the devices are; no other job has these.
    allocation = settings.get("SLURM_JOB_ID")
    place = base / quote(platform.node() or "localhost", safe="")
    return place / f"slurm-{quote(allocation, safe='')}" if allocation else place


def _own_folder() -> Path:
    return Path(tempfile.gettempdir(), f"vlmfair-leases-{os.getuid()}")


def _listed(text: str) -> tuple[str, ...]:
    devices: list[str] = []
    for entry in map(str.strip, text.split(",")):
        # CUDA ignores everything from the first entry on that is no device; SLURM may write
        # NoDevFiles where an allocation has none.
        if entry in ("", "-1", "NoDevFiles"):
            break
        if entry not in devices:
            devices.append(entry)
    return tuple(devices)


def _found_by_nvidia_smi() -> tuple[str, ...]:
    listed = _output(["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"])
    return tuple(line.strip() for line in listed.splitlines() if line.strip().isdigit())


def _found_by_torch() -> tuple[str, ...]:
    # In a process of its own: counting may start CUDA, after which the choice has no effect.
    counted = _output([sys.executable, "-c", "import torch; print(torch.cuda.device_count())"])
    return tuple(map(str, range(int(counted)))) if counted.strip().isdigit() else ()


def _output(command: Sequence[str]) -> str:
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=True
        ).stdout
    return ""


def _check(pool: Sequence[str], count: int, job: str) -> None:
    if len(pool) < count:
        there = f"has {_devices(len(pool))}" if pool else "has none"
        raise InferenceError(
            f"{_said(job)}{_devices(count)} wanted, and this machine (or what "
            f"{VISIBLE} leaves of it) {there}. Write gpus: {len(pool)} under inference in the "
            f"config, with device: cpu where there is none, or run on another machine."
        )
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        raise InferenceError(
            f"{_said(job)}CUDA has started in this process, and devices can no longer be chosen. "
            f"Lease devices before any model is loaded."
        )


def _take(
    pool: Sequence[str],
    count: int,
    folder: Path,
    job: str,
    timeout: float,
    poll: float,
    leases: ExitStack,
) -> tuple[str, ...]:
    """Return `count` devices, whose locks are entered into `leases`."""
    _make_folder(folder)
    gate = FileLock(folder / "gate.lock", preserve_lock_file=True, fallback_to_soft=False)
    deadline, reminded = time.monotonic() + timeout, -REMIND_SECONDS
    while True:
        with _sentences(folder), suppress(Timeout), gate.acquire(timeout=poll):
            devices = _try_all(pool, count, folder, job, leases)
            if devices:
                return devices
        now = time.monotonic()
        if now >= deadline:
            raise InferenceError(
                f"{_said(job)}{_devices(count)} of {len(pool)} did not become free in "
                f"{_duration(timeout)} ({_holders(pool, folder)}). Start fewer jobs at once, with "
                f"--resources gpu={len(pool)}, or end those that hang."
            )
        if now - reminded >= REMIND_SECONDS:
            reminded = now
            logger.info(
                "waiting for %s of %d, at most %s (%s)",
                _devices(count),
                len(pool),
                _duration(deadline - now),
                _holders(pool, folder),
            )
        time.sleep(min(poll, deadline - now))


def _try_all(
    pool: Sequence[str], count: int, folder: Path, job: str, leases: ExitStack
) -> tuple[str, ...]:
    """Lock the first `count` free devices, or none; only one process at a time is in here."""
    with ExitStack() as attempt:
        devices: list[str] = []
        for device in pool:
            path = _lock_path(folder, device)
            lock = FileLock(
                path,
                preserve_lock_file=True,
                fallback_to_soft=False,
                on_acquired=partial(_write_holder, text=_holder(job)),
            )
            try:
                lock.acquire(blocking=False)
            except Timeout:
                continue
            attempt.callback(lock.release)
            attempt.callback(_empty, path)
            devices.append(device)
            if len(devices) == count:
                leases.push(attempt.pop_all())
                return tuple(devices)
    return ()


@contextmanager
def _visible(devices: Sequence[str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in (VISIBLE, ORDER)}
    os.environ[VISIBLE] = ",".join(devices)
    if before[VISIBLE] is None:
        # The numbers are nvidia-smi's, which counts along the bus; CUDA by itself may not.
        os.environ[ORDER] = "PCI_BUS_ID"
    try:
        yield
    finally:
        _free_memory()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _free_memory() -> None:
    """Give back what torch keeps, before the device is somebody else's."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        gc.collect()
        torch.cuda.empty_cache()


def _make_folder(folder: Path) -> None:
    own = _own_folder()
    with _sentences(folder):
        if folder.is_relative_to(own):
            own.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Anybody may make a folder of this name in /tmp, and would then own our locks.
            if own.is_symlink() or own.lstat().st_uid != os.getuid():
                raise PermissionError(errno.EPERM, "it belongs to another user", str(own))
        folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def _sentences(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InferenceError(
            f"{folder}: lock files of devices cannot be made there ({error.strerror or error}). "
            f"Set {FOLDER} to a folder of yours on a local disk."
        ) from error


def _lock_path(folder: Path, device: str) -> Path:
    return folder / f"device-{quote(device, safe='')}.lock"


def _holder(job: str) -> str:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return f"pid {os.getpid()} on {platform.node()}, {job or 'no job named'}, since {since}\n"


def _write_holder(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)


def _empty(path: Path) -> None:
    with suppress(OSError):
        os.truncate(path, 0)


def _holders(pool: Sequence[str], folder: Path) -> str:
    said = []
    for device in pool:
        with suppress(OSError, UnicodeDecodeError):
            text = _lock_path(folder, device).read_text(encoding="utf-8").strip()
            if text:
                said.append(f"{device}: {text[:200]}")
    return "; ".join(said) or "no job says that it holds one"


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count} devices"


def _said(job: str) -> str:
    return f"{job}: " if job else ""


def _duration(seconds: float) -> str:
    for unit, size in (("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"
