"""The allocator's settings are accepted, or left alone where there is no glibc."""

from __future__ import annotations

import pytest

from vlmfair.inference import memory


def test_glibc_accepts_the_settings() -> None:
    ctypes = pytest.importorskip("ctypes")
    try:
        _ = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        pytest.skip("this system has no glibc")

    assert memory.keep_freed_memory() is True


def test_another_system_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.sys, "platform", "darwin")

    assert memory.keep_freed_memory() is False


def test_a_missing_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(memory.ctypes, "CDLL", missing)

    assert memory.keep_freed_memory() is False
