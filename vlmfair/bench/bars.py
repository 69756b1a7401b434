"""What a bench run has to reach, and its figures as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from vlmfair.errors import VlmfairError


class BenchError(VlmfairError):
    """A figure of the bench is not what it has to be."""


@dataclass(frozen=True)
class Bar:
    """A figure of the bench, what it means, and the least or the most that it may be."""

    key: str
    meaning: str
    bound: float
    is_least: bool = True

    def is_met(self, figures: Mapping[str, float]) -> bool:
        """Whether the figure is there and within the bound; NaN is not."""
        value = figures.get(self.key, math.nan)
        return value >= self.bound if self.is_least else value <= self.bound

    def written(self) -> str:
        """Return the bound in words, like `>= 38`."""
        return f"{'>=' if self.is_least else '<='} {self.bound:,g}"


BARS = (
    Bar(
        "gras_flops_ratio",
        "FLOPs of one full forward per question / ours: LLaVA-1.5-7B, one image, the 500 "
        "questions in the prompt that the paper prints",
        38,
    ),
    Bar(
        "gras_flops_over_floor",
        "ours / each unique token once, the larger of the printed and the released prompt",
        1.15,
        is_least=False,
    ),
    Bar(
        "icl_flops_ratio_k8",
        "the same ratio for Qwen3-VL-8B, 100 images to caption behind 8 demonstrations",
        6,
    ),
    Bar(
        "gras_cpu_ratio",
        "CPU time of one full forward per question / ours: small LLaVA, one image, 100 questions",
        15,
    ),
    Bar(
        "facet_cpu_ratio",
        "the same for a FACET image's six prompts, answers of 8 tokens",
        2.5,
    ),
    Bar(
        "icl_cpu_ratio_k8",
        "the same for 24 captions of 12 tokens behind 8 demonstrations that all share",
        4,
    ),
    Bar(
        "peak_memory_ratio",
        "memory above the loaded model: ours / a batch of 64 that repeats the shared beginning",
        0.3,
        is_least=False,
    ),
    Bar(
        "resume_recomputed",
        "answers computed twice after kill -9 in the middle of a shard, as a share of its "
        "questions",
        0.05,
        is_least=False,
    ),
    Bar(
        "gras_stats_ratio",
        "CPU time of scipy's tests, called one by one / ours, all tests of a model",
        20,
    ),
    Bar(
        "gras_template_ratio",
        "CPU time of statsmodels' AnovaRM / ours, one trait of 1,000 images",
        1000,
    ),
)
# Figures without a bar that the table shows below the others.
BESIDE = {
    "gras_released_flops_ratio": "the first ratio for the prompt of the released scripts",
    "gras_released_flops_ratio_of_floor": "the most that any exact method reaches for that prompt",
}


def as_markdown(figures: Mapping[str, float], machine: Mapping[str, str]) -> str:
    """Return the figures that have a bar as a Markdown table, and where they were measured."""
    lines = ["| key | meaning | measured | bar | met |", "|---|---|---|---|---|"]
    for bar in BARS:
        value = _written(figures[bar.key]) if bar.key in figures else "-"
        met = "yes" if bar.is_met(figures) else "**no**"
        lines.append(f"| `{bar.key}` | {bar.meaning} | {value} | {bar.written()} | {met} |")
    for key, meaning in BESIDE.items():
        if key in figures:
            lines.append(f"| `{key}` | {meaning} | {_written(figures[key])} | | |")
    measured = (
        f"Measured on {machine['date']} with one thread of {machine['processor']}, "
        f"Python {machine['python']}, {machine['libraries']}."
    )
    return "\n".join([*lines, "", measured]) + "\n"


def _written(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def check_bars(figures: Mapping[str, float]) -> None:
    """Raise BenchError naming each bar that is missed, with what was measured."""
    missed = [bar for bar in BARS if not bar.is_met(figures)]
    if missed:
        listed = "; ".join(
            f"{bar.key} is {figures.get(bar.key, math.nan):.4g} and has to be {bar.written()}"
            for bar in missed
        )
        raise BenchError(
            f"the bench misses {len(missed)} of {len(BARS)} bars: {listed}. Measure again with "
            f"snakemake --cores 1 bench --forceall; if it misses them again, look for what made it "
            f"slower."
        )
