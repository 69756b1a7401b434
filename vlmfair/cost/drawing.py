"""What it costs to draw the demonstrations' images (VL-BICLE, section 5)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vlmfair.config import read_yaml
from vlmfair.cost.amounts import Amounts
from vlmfair.cost.estimate import GIGA, HOUR, Card, Estimate, Work
from vlmfair.models.components import Component
from vlmfair.papers.vl_bicle.tasks import PAPER

# Pixels of a side of what becomes one token: eight by the autoencoder, two by the patches.
PIXELS = 16
# A side in pixels where the config names none.
USUAL = 1024
# Bytes of a pixel of a photograph-like PNG, about.
BYTES_PER_PIXEL = 1.5


@dataclass(frozen=True)
class Denoiser:
    """The transformer of a pipeline, and how often it runs at each step."""

    parameters: float
    layers: int
    hidden: int
    passes: int

    def flops(self, steps: int, tokens: int) -> float:
        """Return the operations of one image of so many tokens, its caption's included."""
        pairs = 4 * self.layers * self.hidden * tokens**2
        return steps * self.passes * (2 * self.parameters * tokens + pairs)


def load_denoisers(path: str | os.PathLike[str]) -> dict[str, Denoiser]:
    """Read the transformers of the pipelines of the sheet, by their names there."""
    content = read_yaml(path)["generators"]
    return {name: Denoiser(**own) for name, own in content.items()}


def drawing_estimates(
    generators: Mapping[str, Mapping[str, Any]],
    components: Mapping[str, Component],
    denoisers: Mapping[str, Denoiser],
    images: int,
    card: Card,
    jobs: int,
    *,
    announced: bool,
) -> list[Estimate]:
    """Return a row for each pipeline that draws; operations only of those of the sheet.

    `generators` is that section of the config, `images` the number of captions, `jobs` that of the
    jobs of each; `announced` tells a number of the sheet from counted samples.
    """
    by_place = {place: one for one in components.values() for place in (one.folder, one.repository)}
    rows = []
    for name, settings in generators.items():
        if settings is None:
            continue
        component = by_place.get(settings.get("path") or settings.get("repository") or "")
        denoiser = denoisers.get(component.name) if component else None
        work = Work(None, None)
        pixels = (settings.get("height") or USUAL) * (settings.get("width") or USUAL)
        if denoiser is not None:
            tokens = pixels // PIXELS**2 + (settings.get("max_tokens") or 512)
            flops = images * denoiser.flops(settings["steps"], tokens)
            work = Work(flops, flops / card.flops_per_second / HOUR)
        size = images * pixels * BYTES_PER_PIXEL
        weights = component.memory_gb or 0.0 if component else 0.0
        rows.append(
            Estimate(
                paper=PAPER,
                model=name,
                amounts=Amounts(requests=images),
                plain=work,
                ours=work,
                money=None,
                weights_gb=weights,
                answers_gb=size / GIGA,
                jobs=jobs,
                estimated=("counts",) if announced else (),
            )
        )
    return rows
