"""Coroutines side by side, driven by an ordinary loop that takes results as they come."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

_Result = TypeVar("_Result")


class Pool(Generic[_Result]):
    """At most `size` coroutines at a time; use as a context manager, which ends what still runs."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._runner = asyncio.Runner()
        self._tasks: set[asyncio.Task[_Result]] = set()

    def __enter__(self) -> Pool[_Result]:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()
        self._runner.close()

    def cancel(self) -> None:
        """End what still runs."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            self._runner.run(_ignore_results(self._tasks))
        self._tasks.clear()

    @property
    def is_full(self) -> bool:
        """Whether no further coroutine may start."""
        return len(self._tasks) >= self._size

    @property
    def is_busy(self) -> bool:
        """Whether anything runs."""
        return bool(self._tasks)

    def start(self, coroutine: Coroutine[Any, Any, _Result]) -> None:
        """Let a coroutine run along with the others, whenever `wait` or `run` is called."""
        self._tasks.add(self._runner.get_loop().create_task(coroutine))

    def wait(self) -> list[asyncio.Task[_Result]]:
        """Run until at least one coroutine has finished and return those that have."""
        done = self._runner.run(_first_finished(self._tasks))
        self._tasks -= done
        return list(done)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run one more coroutine to its end and return its result."""
        return self._runner.run(coroutine)


async def _first_finished(tasks: set[asyncio.Task[_Result]]) -> set[asyncio.Task[_Result]]:
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    return done


async def _ignore_results(tasks: set[asyncio.Task[_Result]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
