"""CPU time of questions about an image on one thread: one full forward each, against the engine."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path

from vlmfair.bench.recorded_tokens import Ids
from vlmfair.bench.small_llava import SmallLlava, load_small_llava
from vlmfair.bench.timing import CpuComparison, compare_cpu, one_thread
from vlmfair.inference.engine import Engine, open_engine
from vlmfair.inference.queries import Query

TEMPERATURES = (0.5, 0.7, 1.0, 1.5)
FACET_NEW_TOKENS = 8
FACET_IMAGES = 1
PLAIN, OURS = "full_forward", "auto"


def compare_gras(folder: Path, recorded: Mapping[str, Ids], repeats: int = 1) -> dict[str, float]:
    """Measure scores of all recorded questions about an image; return `gras_cpu_ratio`."""
    small = load_small_llava(folder, recorded)
    return _figures("gras", _compare(small, 0, 1, repeats), len(recorded))


def compare_facet(folder: Path, recorded: Mapping[str, Ids], repeats: int = 3) -> dict[str, float]:
    """Measure greedy answers of 8 tokens to all recorded prompts; return `facet_cpu_ratio`."""
    small = load_small_llava(folder, recorded)
    compared = _compare(small, FACET_NEW_TOKENS, FACET_IMAGES, repeats)
    return _figures("facet", compared, len(recorded) * FACET_IMAGES)


def _figures(name: str, compared: CpuComparison, questions: int) -> dict[str, float]:
    return {
        f"{name}_cpu_ratio": compared.ratio,
        f"{name}_cpu_seconds": compared.our_seconds,
        f"{name}_cpu_plain_seconds": compared.plain_seconds,
        f"{name}_cpu_questions": float(questions),
    }


def _compare(small: SmallLlava, new_tokens: int, images: int, repeats: int) -> CpuComparison:
    """Compare both ways on images that neither has seen, engines open and warm.

    The engine has checked itself on a first image, as it does once for all images of a job.
    """
    seeds = itertools.count()

    def asker(mode: str, warm_up: int | None) -> Callable[[], None]:
        engine = open_engine(small.loaded, small.renderer(), model=small.model, mode=mode)
        with one_thread():
            _ask(engine, small.queries(small.draw_image(next(seeds)), new_tokens)[:warm_up])

        def ask() -> None:
            for _ in range(images):
                _ask(engine, small.queries(small.draw_image(next(seeds)), new_tokens))

        return ask

    return compare_cpu(asker(PLAIN, 2), asker(OURS, None), repeats=repeats, warm_up=0)


def _ask(engine: Engine, queries: list[Query]) -> None:
    generating = queries[0].mode == "generate"
    answers = engine.generate(queries) if generating else engine.score(queries, TEMPERATURES)
    for answer in answers:
        assert answer.error is None
