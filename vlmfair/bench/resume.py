"""How many questions are computed twice when an inference job is killed in the middle."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from vlmfair.bench.small_llava import Size, draw_image, small_entry, write_small_llava
from vlmfair.bench.timing import ONE_THREAD
from vlmfair.contracts import REQUESTS, read_table, write_table
from vlmfair.errors import InferenceError
from vlmfair.inference.engine import Engine, open_engine
from vlmfair.inference.label_sets import load_label_sets
from vlmfair.inference.queries import Answer, Query
from vlmfair.inference.shard import answer_shard
from vlmfair.papers.gras.plan import plan_requests
from vlmfair.papers.gras.questions import load_prompts, load_traits

SIZE = Size(hidden=64, layers=2, heads=4, vision_hidden=32, patches=4)
IMAGES = 16
_MODEL, _STORE, _REQUESTS = "model", "answers", "requests.parquet"
_LOG, _MESSAGES = "computed", "messages"
_START = "import sys; from vlmfair.bench.resume import answer; answer(*sys.argv[1:])"


def measure_resume(
    folder: Path, resources: Path, *, images: int = IMAGES, traits: int | None = None
) -> dict[str, float]:
    """Return `resume_recomputed`: answers computed twice, as a share of the shard's questions.

    A real inference process is ended with SIGKILL once it has computed half of the answers to
    GRAS's questions, and a second one finishes the shard from the same store. Raises
    InferenceError when the first is too fast to be killed.
    """
    questions = prepare_shard(folder, resources, images=images, traits=traits)
    with _running(folder, resources) as first:
        _wait_for(folder, questions // 2, first)
    before = answers_computed(folder)
    with _running(folder, resources) as second:
        if second.wait():
            raise InferenceError(f"the second run of the killed shard failed: {_last_line(folder)}")
    computed = answers_computed(folder)
    return {
        "resume_recomputed": (computed - questions) / questions,
        "resume_questions": float(questions),
        "resume_computed_before_kill": float(before),
        "resume_computed_in_all": float(computed),
    }


def prepare_shard(folder: Path, resources: Path, *, images: int, traits: int | None) -> int:
    """Write the model and the requests of one shard; return how many questions it has."""
    write_small_llava(folder / _MODEL, SIZE)
    refs = [draw_image(folder, seed, SIZE.image_pixels) for seed in range(images)]
    shown = pa.table(
        {
            "sample_id": [f"noise/{seed}" for seed in range(images)],
            "dataset": ["noise"] * images,
            "image": [ref.path for ref in refs],
            "image_sha256": [ref.sha256 for ref in refs],
        }
    )
    requests = plan_requests(
        shown,
        load_traits(resources / "words/gras_traits.csv")[:traits],
        load_prompts(resources / "prompts/gras.yaml"),
        small_entry(folder / _MODEL),
        "paper",
        images_per_shard=images,
    )
    write_table(folder / _REQUESTS, requests, REQUESTS)
    return len(requests)


def answers_computed(folder: Path) -> int:
    """Return how many answers all runs of a prepared shard have computed so far."""
    log = folder / _LOG
    return log.stat().st_size if log.exists() else 0


@contextmanager
def _running(folder: Path, resources: Path) -> Iterator[subprocess.Popen[bytes]]:
    """An inference process, which is killed where the block ends before it."""
    with (folder / _MESSAGES).open("wb") as messages:
        process = subprocess.Popen(
            [sys.executable, "-c", _START, str(folder), str(resources)],
            stdout=messages,
            stderr=messages,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _wait_for(folder: Path, answers: int, process: subprocess.Popen[bytes]) -> None:
    while answers_computed(folder) < answers:
        if process.poll() is not None:
            raise InferenceError(
                f"the process to be killed ended with {process.returncode} before that: "
                f"{_last_line(folder)}. Ask about more images if it was too fast."
            )
        time.sleep(0.02)


def _last_line(folder: Path) -> str:
    messages = (folder / _MESSAGES).read_text(encoding="utf-8", errors="replace")
    return (messages.strip().splitlines() or ["it said nothing"])[-1].strip().rstrip(".")


def answer(folder: str, resources: str) -> None:
    """Answer the prepared shard, and append a byte to its log for each answer computed."""
    prompts = Path(resources, "prompts/gras.yaml")
    answer_shard(
        read_table(Path(folder, _REQUESTS), REQUESTS),
        None,
        small_entry(Path(folder, _MODEL)),
        load_label_sets(prompts),
        (1.0,),
        Path(folder, _STORE),
        device="cpu",
        threads=1,
        open_engine=functools.partial(_open_logged, Path(folder, _LOG)),
    )


def _open_logged(log: Path, *arguments: Any, **options: Any) -> Engine:
    return _LoggedEngine(open_engine(*arguments, **options), log)


class _LoggedEngine:
    """An engine that appends a byte to a file for each answer, which a kill cannot take back."""

    def __init__(self, engine: Engine, log: Path) -> None:
        self.mode = engine.mode
        self._engine = engine
        self._log = log

    def score(self, queries: Iterable[Query], temperatures: Sequence[float]) -> Iterator[Answer]:
        """Yield the engine's answers."""
        return self._logged(self._engine.score(queries, temperatures))

    def generate(self, queries: Iterable[Query]) -> Iterator[Answer]:
        """Yield the engine's answers."""
        return self._logged(self._engine.generate(queries))

    def report(self) -> dict[str, Any]:
        """Return the engine's report."""
        return self._engine.report()

    def _logged(self, answers: Iterator[Answer]) -> Iterator[Answer]:
        with self._log.open("ab", buffering=0) as log:
            for answer in answers:
                log.write(b".")
                yield answer
