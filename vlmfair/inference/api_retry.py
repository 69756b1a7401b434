"""Waiting for a server: growing pauses with jitter, and the pauses that the server asks for."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

LONGEST_PAUSE = 60.0


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the seconds that a response asks to wait, or None when it does not say.

    `Retry-After` is a number of seconds or an HTTP date; `retry-after-ms`, which some servers of
    OpenAI's kind add, is finer and comes first. `now` is a Unix time.
    """
    seconds = _number(headers.get("retry-after-ms"), 1000.0)
    if seconds is None:
        seconds = _number(headers.get("retry-after"), 1.0)
    if seconds is not None:
        return seconds
    try:
        date = parsedate_to_datetime(headers["retry-after"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    # A date without a zone is in UTC by the rules of HTTP.
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, date.timestamp() - (time.time() if now is None else now))


def _number(text: str | None, unit: float) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(0.0, value / unit) if math.isfinite(value) else None


class Pauses:
    """The pauses of one engine; a pause that the server asks for holds all of its questions."""

    def __init__(self, first: float, source: random.Random | None = None) -> None:
        self._first = first
        self._random = source or random.Random()
        self._closed_until = 0.0
        self.stopping = asyncio.Event()

    def length(self, tries: int, asked_for: float | None) -> float:
        """Return the pause after that many failed tries: doubled each time, half of it random.

        It is never shorter than what the server asked for.
        """
        pause = min(LONGEST_PAUSE, self._first * 2.0 ** min(tries - 1, 30))
        jittered = pause * (0.5 + 0.5 * self._random.random())
        # Whoever was told the same time to come back must not come back at the same moment.
        return jittered if asked_for is None else asked_for + jittered * 0.1

    def close(self, seconds: float) -> None:
        """Let no question through for so long."""
        loop = asyncio.get_running_loop()
        self._closed_until = max(self._closed_until, loop.time() + seconds)

    async def gate(self) -> None:
        """Wait until the server takes questions again, or until the engine stops."""
        loop = asyncio.get_running_loop()
        while not self.stopping.is_set() and (left := self._closed_until - loop.time()) > 0:
            await self.sleep(left)

    async def sleep(self, seconds: float) -> None:
        """Sleep, and wake early when the engine stops."""
        try:
            async with asyncio.timeout(seconds):
                await self.stopping.wait()
        except TimeoutError:
            return
