"""A planted effect beside its measured value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Effect:
    """One effect: what is planted, what was measured on n answers, and how far apart they may be.

    `unit` is `logit` or `share`.
    """

    name: str
    planted: float
    measured: float
    n: int
    tolerance: float
    unit: str

    @property
    def ok(self) -> bool:
        """Whether the measured value is within the tolerance of the planted one."""
        return abs(self.measured - self.planted) <= self.tolerance

    def __str__(self) -> str:
        verdict = "ok" if self.ok else "OFF"
        return (
            f"{self.name}: planted {self.planted:+.2f}, measured {self.measured:+.2f} "
            f"(n = {self.n}, tolerance {self.tolerance} {self.unit}) {verdict}"
        )


def logit(probability: float) -> float:
    """The logit of a probability, which is kept 0.005 away from 0 and 1.

    Beyond that a logit says nothing about a group: the answer is certain for everybody.
    """
    kept = min(0.995, max(0.005, probability))
    return math.log(kept / (1 - kept))


def mean_logit(probabilities: Sequence[float]) -> float:
    """The mean of the logits of some probabilities."""
    return sum(map(logit, probabilities)) / len(probabilities)


def share_of(choices: Mapping[str, float], choice: str) -> float:
    """The probability of a choice against all the others but " person"."""
    total = sum(p for name, p in choices.items() if name != " person")
    return float(choices[choice] / total)
