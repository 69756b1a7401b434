"""What one GPU does with models of real size: exactness, speed, memory, hours of the papers."""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from vlmfair.bench.machine import describe_machine
from vlmfair.bench.random_models import REAL, Sizes, Subject, llava_subject, qwen_subject
from vlmfair.inference.engine import Engine
from vlmfair.inference.queries import Answer, Query
from vlmfair.inference.selfcheck import computing_in_float32
from vlmfair.usage import peak_resident_bytes, reset_peak, resident_bytes

TEMPERATURES = (0.5, 0.7, 1.0, 1.5)
IN_BATCHES = 32
# Each way is measured once, and again unless that took longer than so many seconds.
ENOUGH_SECONDS = 20.0
# A mask that hides nothing has to be seen at so many times the difference that is allowed.
NOTICED = 3.0
PLAIN, BATCHES, OURS = "plain", "plain_batches", "ours"

# The papers' answers to one model. GRAS: 5,010 images x 500 questions.
GRAS_QUESTIONS = 2_505_000


@dataclass(frozen=True)
class Part:
    """A part of VL-BICLE: its queries, and the answers to each by whose demonstrations they have.

    `shared` of them show demonstrations that all queries share, `own` those retrieved for one.
    """

    name: str
    queries: int
    shared: int
    own: int = 0

    @property
    def answers(self) -> int:
        """All answers of one model."""
        return self.queries * (self.shared + self.own)


# Four settings of five runs at 2, 4, 6 and 8 demonstrations, and once none; on COCOBias also two
# settings of retrieved ones, from the pool and from a balanced one.
_SHARED, _RETRIEVED = 4 * 5 * 4 + 1, 2 * 2 * 4
VL_BICLE = (
    Part("VisoGender: OO (138) and OP (276)", 138 + 276, _SHARED),
    Part("DCI: 80 % of 371 images", 296, _SHARED),
    Part("COCOBias: each 1,000 images", 1000, _SHARED, _RETRIEVED),
)


@dataclass(frozen=True)
class Card:
    """The device that computes: `cuda`, or `cpu` where only the road is tried."""

    device: str

    @property
    def is_gpu(self) -> bool:
        """Whether it has memory and a clock of its own."""
        return self.device.startswith("cuda")

    @property
    def name(self) -> str:
        """What the device calls itself, with its memory."""
        if not self.is_gpu:
            return describe_machine()["processor"]
        properties = torch.cuda.get_device_properties(self.device)
        return f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB"

    def wait(self) -> None:
        """Return when all that was asked of the device is done."""
        if self.is_gpu:
            torch.cuda.synchronize(self.device)

    def used(self) -> int:
        """Return the bytes in use."""
        return torch.cuda.memory_allocated(self.device) if self.is_gpu else resident_bytes()

    def forget_peak(self) -> None:
        """Give back what is not in use, and let the peak start anew."""
        gc.collect()
        if self.is_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.device)
        else:
            reset_peak()

    def peak(self) -> int:
        """Return the most bytes that were in use."""
        if self.is_gpu:
            return torch.cuda.max_memory_allocated(self.device)
        return peak_resident_bytes()


def run(device: str, resources: Path, sizes: Sizes = REAL) -> dict[str, Any]:
    """Return the whole report; one model is on the device at a time.

    Raises ConfigError when GRAS's questions have changed since their tokens were recorded, and
    RuntimeError when an answer fails.
    """
    card, start = Card(device), time.perf_counter()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        figures["llava"] = measure(llava_subject(device, sizes, resources, Path(folder)), card)
        card.forget_peak()
        figures["qwen"] = measure(qwen_subject(device, sizes, Path(folder)), card)
    machine = describe_machine()
    return {
        "card": card.name,
        "date": machine["date"],
        "libraries": machine["libraries"],
        "seconds": time.perf_counter() - start,
        **figures,
        "hours": hours(figures["llava"], figures["qwen"]),
    }


def measure(subject: Subject, card: Card) -> dict[str, Any]:
    """Return the figures of one model: weights, exactness, and each way's speed and memory."""
    figures: dict[str, Any] = {
        "parameters": sum(weight.numel() for weight in subject.model.parameters()),
        "weights_bytes": card.used(),
        **check_exactness(subject, card),
    }
    for name, mode, batch_size in (
        (PLAIN, "full_forward", 1),
        (BATCHES, "full_forward", IN_BATCHES),
        # Whatever its self-check says of rounding, which is reported apart.
        (OURS, "packed", IN_BATCHES),
    ):
        engine = subject.engine(card.device, mode, batch_size)
        chosen = list if name == OURS else subject.sample
        # Kernels are chosen at their first use.
        ask(engine, chosen(subject.fresh_queries()))
        figures[name] = _timed(engine, subject.fresh_queries, chosen, card)
    return figures


def _timed(
    engine: Engine,
    fresh: Callable[[], list[Query]],
    chosen: Callable[[list[Query]], list[Query]],
    card: Card,
) -> dict[str, float]:
    card.forget_peak()
    answered, seconds = 0, 0.0
    for _ in range(2):
        queries = chosen(fresh())
        card.wait()
        start = time.perf_counter()
        ask(engine, queries)
        card.wait()
        seconds += time.perf_counter() - start
        answered += len(queries)
        if seconds > ENOUGH_SECONDS:
            break
    return {"per_second": answered / seconds, "peak_bytes": float(card.peak())}


def ask(engine: Engine, queries: Sequence[Query]) -> list[Answer]:
    """Return the answers; RuntimeError when one failed."""
    generating = queries[0].mode == "generate"
    found = engine.generate(queries) if generating else engine.score(queries, TEMPERATURES)
    answers = list(found)
    failed = [answer.error for answer in answers if answer.error is not None]
    if failed or len(answers) != len(queries):
        raise RuntimeError(f"{len(failed)} of {len(queries)} answers failed, first {failed[:1]}")
    return answers


def check_exactness(subject: Subject, card: Card) -> dict[str, Any]:
    """Return the engine's self-check in bfloat16, in float32, and with a mask that hides nothing.

    All compare probabilities of packed prompts with full forwards. What bfloat16 does to random
    weights is large, so that only float32 tells a small fault from rounding; the last of the three
    says how large a fault is there.
    """
    first = subject.fresh_queries()
    in_bfloat16 = _self_check(subject.engine(card.device, "auto", IN_BATCHES), first)
    with computing_in_float32(subject.model):
        in_float32 = _self_check(subject.engine(card.device, "auto", IN_BATCHES, "float32"), first)
        with patch("vlmfair.inference.forward.additive_mask", _hides_nothing):
            faulty = _self_check(subject.engine(card.device, "auto", IN_BATCHES, "float32"), first)
    return {"bfloat16": in_bfloat16, "float32": in_float32, "without_mask": faulty}


def _self_check(engine: Engine, queries: Sequence[Query]) -> dict[str, Any]:
    ask(engine, queries[:3])
    (check,) = engine.report()["self_checks"]
    found: dict[str, Any] = check
    return found


def _hides_nothing(allowed: torch.Tensor, cached: int, dtype: torch.dtype) -> torch.Tensor:
    tokens, width = allowed.shape
    return torch.zeros((1, 1, tokens, cached + width), dtype=dtype, device=allowed.device)


def is_exact(figures: Mapping[str, Any]) -> bool:
    """Whether packed prompts were exact, and a fault would have been noticed."""
    chosen = [figures[name]["mode"] for name in ("bfloat16", "float32")]
    fault, allowed = packed_error(figures["without_mask"]), figures["float32"]["tolerance"]
    return chosen == ["packed", "packed"] and fault > NOTICED * allowed


def packed_error(check: Mapping[str, Any]) -> float:
    """Return the largest difference of a probability in mode packed, NaN where it failed."""
    return float(check["errors"].get("packed", float("nan")))


def hours(gras: Mapping[str, Any], captions: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the hours of each paper's answers to one model, plain and ours, from rates.

    VL-BICLE's answers are all taken as captions behind eight demonstrations, the dearest of those
    that the paper asks for without reasoning. What has demonstrations of its own shares nothing.
    """

    def of(answers: float, figures: Mapping[str, Any], way: str) -> float:
        return float(answers / figures[way]["per_second"] / 3600)

    rows = [
        {
            "part": "GRAS: all images and questions",
            "answers": GRAS_QUESTIONS,
            "plain": of(GRAS_QUESTIONS, gras, PLAIN),
            "ours": of(GRAS_QUESTIONS, gras, OURS),
        }
    ]
    for part in VL_BICLE:
        shared, own = part.queries * part.shared, part.queries * part.own
        rows.append(
            {
                "part": f"VL-BICLE, {part.name}",
                "answers": part.answers,
                "plain": of(part.answers, captions, PLAIN),
                "ours": of(shared, captions, OURS) + of(own, captions, PLAIN),
            }
        )
    return rows


def as_markdown(report: Mapping[str, Any]) -> str:
    """Return the report as the section of docs/performance.md."""
    columns = report["llava"], report["qwen"]

    def row(name: str, value: Callable[[Mapping[str, Any]], str]) -> str:
        return f"| {name} | {' | '.join(map(value, columns))} |"

    def rates(name: str, way: str) -> str:
        return row(f"{name}, per second", lambda figures: f"{figures[way]['per_second']:,.2f}")

    def times(name: str, way: str) -> str:
        return row(
            f"ours / {name}",
            lambda figures: f"{figures[OURS]['per_second'] / figures[way]['per_second']:.1f}",
        )

    def memory(name: str, value: Callable[[Mapping[str, Any]], float]) -> str:
        return row(f"memory: {name}", lambda figures: f"{value(figures) / 2**30:.1f} GiB")

    def peak(name: str, way: str) -> str:
        return memory(f"peak, {name}", lambda figures: figures[way]["peak_bytes"])

    def error(name: str, key: str) -> str:
        def written(figures: Mapping[str, Any]) -> str:
            check = figures[key]
            return f"{packed_error(check):.1e} (allowed {check['tolerance']:.1e})"

        return row(f"largest difference of a probability, {name}", written)

    batches = f"plain, up to {IN_BATCHES} of equal length"
    lines = [
        "| | LLaVA-1.5-7B, questions of GRAS | Qwen3-VL-8B, captions behind demonstrations |",
        "|---|---|---|",
        row("parameters", lambda figures: f"{figures['parameters'] / 1e9:.2f} x 10^9"),
        rates("plain, one at a time", PLAIN),
        rates(batches, BATCHES),
        rates("ours", OURS),
        times("plain, one at a time", PLAIN),
        times(batches, BATCHES),
        memory("weights", lambda figures: figures["weights_bytes"]),
        peak("plain, one at a time", PLAIN),
        peak(batches, BATCHES),
        peak("ours", OURS),
        error("ours, bfloat16", "bfloat16"),
        error("ours, float32", "float32"),
        error("the same without the mask", "without_mask"),
        row("exact", lambda figures: "yes" if is_exact(figures) else "**no**"),
        "",
        "| answers of one model | number | hours, plain | hours, ours |",
        "|---|---|---|---|",
        *(
            f"| {line['part']} | {line['answers']:,} | {line['plain']:,.1f} | {line['ours']:,.1f} |"
            for line in report["hours"]
        ),
        "",
        f"Measured on {report['date']} on {report['card']}, with {report['libraries']}, in "
        f"{report['seconds'] / 60:.1f} minutes.",
    ]
    return "\n".join(lines) + "\n"
