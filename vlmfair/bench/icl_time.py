"""CPU time of captions behind demonstrations on one thread: a conversation each, or the engine."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from vlmfair.bench.cpu_time import OURS, PLAIN
from vlmfair.bench.small_llava import Size, SmallLlava, load_small_llava
from vlmfair.bench.timing import compare_cpu, one_thread
from vlmfair.inference.engine import Engine, open_engine
from vlmfair.inference.queries import Query, Turn
from vlmfair.models.chat import ChatRenderer

SHOTS, QUERIES, NEW_TOKENS = 8, 24, 12
# A context of nine images has to fit in the 4,096 positions of the model, and its bytes are tokens.
SIZE = Size(patches=12)
QUESTION = "Describe the image in one sentence."
CAPTIONS = ("A woman is walking her dog in the park.", "A man is reading a book on a bench.")


def compare_icl(folder: Path, repeats: int = 1) -> dict[str, float]:
    """Measure captions of new images behind 8 shared demonstrations; return `icl_cpu_ratio_k8`.

    `folder` has a model of `write_small_llava`. Each repeat has demonstrations and queries that
    neither way has seen; both answer `QUERIES` queries with `NEW_TOKENS` tokens.
    """
    small = load_small_llava(folder, {})
    seeds = itertools.count()

    def asker(mode: str, warm_up: int) -> Callable[[], None]:
        renderer = ChatRenderer(
            small.loaded.processor, small.loaded.family, small.loaded.entry.name
        )
        engine = open_engine(small.loaded, renderer, model=small.model, mode=mode)
        with one_thread():
            _ask(engine, conversations(small, seeds, SHOTS, warm_up))
        return lambda: _ask(engine, conversations(small, seeds, SHOTS, QUERIES))

    compared = compare_cpu(asker(PLAIN, 1), asker(OURS, QUERIES), repeats=repeats, warm_up=0)
    return {
        f"icl_cpu_ratio_k{SHOTS}": compared.ratio,
        "icl_cpu_seconds": compared.our_seconds,
        "icl_cpu_plain_seconds": compared.plain_seconds,
    }


def conversations(
    small: SmallLlava, seeds: itertools.count[int], shots: int, queries: int
) -> list[Query]:
    """Return queries about new images, each behind the same new demonstrations."""
    shown: list[Turn] = []
    for number in range(shots):
        shown.append(Turn("user", QUESTION, (small.draw_image(next(seeds)),)))
        shown.append(Turn("assistant", CAPTIONS[number % len(CAPTIONS)]))
    asked = [Turn("user", QUESTION, (small.draw_image(next(seeds)),)) for _ in range(queries)]
    return [
        Query(f"query {row}", (*shown, turn), mode="generate", max_new_tokens=NEW_TOKENS)
        for row, turn in enumerate(asked)
    ]


def _ask(engine: Engine, queries: list[Query]) -> None:
    for answer in engine.generate(queries):
        assert answer.error is None, answer.error
