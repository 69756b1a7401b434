"""How much goes through the model at once, halved whenever memory does not suffice."""

from __future__ import annotations

import gc
import logging
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from vlmfair.errors import InferenceError

logger = logging.getLogger(__name__)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory did not suffice, on a GPU or on the CPU."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and (
        "out of memory" in text or "can't allocate memory" in text or "not enough memory" in text
    )


@dataclass
class Attempt:
    """Whether what was tried fitted into memory."""

    succeeded: bool = False


class MemoryLimit:
    """The size of a batch or pack of one model; it only ever shrinks, by halves.

    `unit` names what `size` counts; `least` is the smallest size that is tried.
    """

    def __init__(self, model: str, unit: str, size: int, least: int) -> None:
        self.size = max(size, least)
        self._model = model
        self._unit = unit
        self._least = least
        self._halvings: list[dict[str, Any]] = []

    @contextmanager
    def halved_when_full(self, smallest: str) -> Iterator[Attempt]:
        """Run the block; when memory does not suffice, halve the size and let the caller retry.

        `smallest` names what is left at the smallest size, as in "a prompt of 700 tokens". Raises
        InferenceError when even that does not fit.
        """
        attempt = Attempt()
        full = False
        try:
            yield attempt
            attempt.succeeded = True
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            full = True
        # Behind the except block, where the traceback no longer holds the tensors that filled it.
        if full:
            self._halve(smallest)

    def _halve(self, smallest: str) -> None:
        gc.collect()
        memory = _memory()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if self.size <= self._least:
            raise InferenceError(
                f"{self._model}: {smallest} does not fit into memory even by itself ({memory}). "
                f"Use a device with more memory, several of them (gpus: in the models file), a "
                f"smaller dtype or fewer demonstrations."
            )
        smaller = max(self._least, self.size // 2)
        logger.warning(
            "%s: out of memory with %d %s at once (%s); going on with %d.",
            *(self._model, self.size, self._unit, memory, smaller),
        )
        self._halvings.append({"from": self.size, "to": smaller, "unit": self._unit})
        self.size = smaller

    def record(self) -> list[dict[str, Any]]:
        """Return the halvings there were, for the manifest of the responses."""
        return list(self._halvings)


def _memory() -> str:
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        free, total = torch.cuda.mem_get_info()
        return (
            f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB free on {torch.cuda.get_device_name()}"
        )
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return f"{peak / 2**30:.1f} GiB used at most by this process"
