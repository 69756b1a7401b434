"""Decides at run time which way of asking is exact for a model, by comparing it with full forwards.

A configuration tells some of what goes wrong with a shared beginning, but not all: a kernel that
ignores the mask or stale rotary offsets show in probabilities only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from vlmfair.inference.limits import is_out_of_memory
from vlmfair.inference.prepare import Prepared

# Largest difference of a probability in float32; rounding alone is 1e-6.
TOLERANCE = 1e-4
# With fewer bits, what is allowed is this many times what the number format itself does to the
# probabilities of the same prompts, and at least the least of what it was seen to do.
FLOORS = 2.0
LEAST_FLOOR = 1e-3

Probabilities = list[torch.Tensor]


@dataclass(frozen=True)
class Check:
    """What a self-check found: the mode that was chosen, and the error of each that was tried.

    `errors` are the largest differences of a probability from a full forward, `refused` says why a
    mode was not tried. `tolerance` is the largest difference that was accepted.
    """

    mode: str
    errors: dict[str, float]
    refused: dict[str, str]
    tolerance: float

    def record(self) -> dict[str, Any]:
        """Return the check for a manifest."""
        return {
            "mode": self.mode,
            "errors": {mode: float(f"{error:.3g}") for mode, error in self.errors.items()},
            "refused": dict(self.refused),
            "tolerance": self.tolerance,
        }


def check_prompts(group: Sequence[Prepared]) -> list[Prepared]:
    """Return the shortest, the median and the longest prompt of a group, as far as they differ."""
    ordered = sorted(group, key=lambda item: len(item.ids))
    chosen: list[Prepared] = []
    for item in (ordered[0], ordered[len(ordered) // 2], ordered[-1]):
        if all(item is not other for other in chosen):
            chosen.append(item)
    return chosen


def choose_mode(
    modes: Sequence[str],
    probabilities: Callable[[str], Probabilities],
    reference: Probabilities,
    refused: dict[str, str],
    tolerance: float,
) -> Check:
    """Return the first of `modes` that is exact; the last one needs no check.

    `probabilities(mode)` are those of the check's prompts, each [vocabulary], `reference` those of
    full forwards, and `refused` the modes that the configuration rules out, with the reason.
    """
    errors: dict[str, float] = {}
    refused = dict(refused)
    for mode in modes[:-1]:
        if mode in refused:
            continue
        try:
            found = probabilities(mode)
        except (RuntimeError, ValueError, TypeError, IndexError, KeyError) as error:
            if is_out_of_memory(error):
                raise
            refused[mode] = (
                f"it failed: {str(error).splitlines()[0][:200] if str(error) else error!r}"
            )
            continue
        errors[mode] = largest_difference(found, reference)
        if errors[mode] <= tolerance:
            return Check(mode, errors, refused, tolerance)
    return Check(modes[-1], errors, refused, tolerance)


def largest_difference(found: Probabilities, reference: Probabilities) -> float:
    """Return the largest absolute difference of a probability; infinite where one is no number."""
    largest = 0.0
    for one, other in zip(found, reference, strict=True):
        difference = float((one - other).abs().max())
        largest = max(largest, difference if difference == difference else float("inf"))
    return largest


@contextmanager
def computing_in_float32(model: Any) -> Iterator[None]:
    """Let a model with fewer bits compute in float32 inside the block, one module at a time.

    The weights are widened before each module and narrowed behind it, which changes none of them;
    memory grows by one module only. Answers differ by what the number format does to them.
    """
    handles = []

    def widen(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for parameter in module.parameters(recurse=False):
            parameter.data = parameter.data.float()
        return tuple(map(_widened, args)), {key: _widened(value) for key, value in kwargs.items()}

    def narrow(module: nn.Module, args: Any, output: Any) -> None:
        for parameter in module.parameters(recurse=False):
            parameter.data = parameter.data.to(dtype)

    dtype = model.dtype
    for module in model.modules():
        if any(True for _ in module.parameters(recurse=False)):
            handles.append(module.register_forward_pre_hook(widen, with_kwargs=True))
            handles.append(module.register_forward_hook(narrow, always_call=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _widened(value: Any) -> Any:
    is_narrow = isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16)
    return value.float() if is_narrow else value
