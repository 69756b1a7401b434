"""Operations, GPU hours, money and disk of what a model is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vlmfair.cost.amounts import Amounts
from vlmfair.cost.architecture import Architecture
from vlmfair.cost.assumptions import Assumptions
from vlmfair.cost.parts import Part, total
from vlmfair.cost.subject import NOTHING, Subject

# Answers that grow together, each step reading the weights once; the plain form grows one, as do
# models that bring their own code.
TOGETHER = 64
TERA, GIGA, HOUR = 1e12, 1e9, 3600.0


@dataclass(frozen=True)
class Card:
    """A GPU: peak operations per second in the models' number format, bandwidth of its memory.

    `utilisation` is the share of both that a run reaches.
    """

    name: str
    peak_tflops: float
    bandwidth_gb_s: float
    utilisation: float

    @property
    def flops_per_second(self) -> float:
        """Operations per second that a run reaches."""
        return self.peak_tflops * TERA * self.utilisation

    @property
    def bytes_per_second(self) -> float:
        """Bytes per second that a run reads from the card's memory."""
        return self.bandwidth_gb_s * GIGA * self.utilisation


@dataclass(frozen=True)
class Work:
    """Operations and GPU hours, None where a model's layers are not known."""

    flops: float | None
    hours: float | None


@dataclass(frozen=True)
class Estimate:
    """One row of the plan: a paper's questions to one model.

    `plain` is one full forward for each question, `ours` what the engine does. `money` is in the
    currency of the sheet's prices, disk in GB of weights and of answers. `estimated` names what
    rests on assumptions.
    """

    paper: str
    model: str
    amounts: Amounts
    plain: Work
    ours: Work
    money: float | None
    weights_gb: float
    answers_gb: float
    jobs: int
    estimated: tuple[str, ...]


def estimate(
    subject: Subject, parts: Sequence[Part], card: Card, assumptions: Assumptions, jobs: int
) -> Estimate:
    """Return the row of one paper and model; `jobs` is the number of its inference jobs."""
    amounts = total(part.amounts for part in parts)
    api = subject.entry.api
    weights = _weights_gb(subject)
    money = None
    if api is not None:
        money = (amounts.asked * api.price_input + amounts.answered * api.price_output) / 1e6
    works = {plain: _work(subject, parts, card, weights, plain=plain) for plain in (True, False)}
    size = amounts.requests * assumptions.bytes_per_answer
    size += amounts.answered * assumptions.bytes_per_token
    return Estimate(
        parts[0].paper,
        subject.name,
        amounts,
        works[True],
        works[False],
        money,
        # A server of one's own has its weights on its own disk, too.
        weights if api is None or subject.entry.repository else 0.0,
        size / GIGA,
        jobs,
        _estimated(subject, parts),
    )


def _work(
    subject: Subject, parts: Sequence[Part], card: Card, weights_gb: float, *, plain: bool
) -> Work:
    layers = subject.architecture
    if layers is None:
        return Work(None, None)
    reading = sum(reading_flops(part, layers, plain=plain) for part in parts)
    writing = sum(writing_flops(part, layers) for part in parts)
    alone = plain or (subject.entry.api is None and subject.sharing() == NOTHING)
    steps = sum(part.amounts.answered for part in parts) / (1 if alone else TOGETHER)
    moved = steps * weights_gb * GIGA
    seconds = reading / card.flops_per_second
    seconds += max(writing / card.flops_per_second, moved / card.bytes_per_second)
    return Work(reading + writing, seconds / HOUR)


def reading_flops(part: Part, layers: Architecture, *, plain: bool) -> float:
    """Return the operations of prompts and their images, and of the logits behind each prompt."""
    own = part.amounts
    views = own.images if plain else own.encoded
    tokens, pairs = (own.asked, own.plain_pairs) if plain else (own.computed, own.pairs)
    return (
        views * part.image.crops * layers.vision_flops(part.image.patches)
        + tokens * layers.text.flops_per_token
        + pairs * layers.text.flops_per_pair
        + own.requests * layers.head_flops
    )


def writing_flops(part: Part, layers: Architecture) -> float:
    """Return the operations of the tokens of answers, each of which sees its whole prompt."""
    own = part.amounts
    if not own.requests:
        return 0.0
    seen = own.asked / own.requests * layers.text.flops_per_pair
    return own.answered * (layers.text.flops_per_token + layers.head_flops + seen)


def _weights_gb(subject: Subject) -> float:
    if subject.entry.memory_gb:
        return subject.entry.memory_gb
    if subject.folder is not None:
        files = subject.folder.glob("*.safetensors")
        return sum(path.stat().st_size for path in files) / GIGA
    return 2 * subject.architecture.parameters / GIGA if subject.architecture else 0.0


def _estimated(subject: Subject, parts: Sequence[Part]) -> tuple[str, ...]:
    faults: Mapping[str, bool] = {
        "text": not subject.tokenizer.exact,
        "sizes": _depends_on_size(subject) and any(part.image.tokens for part in parts),
        "answers": any(part.amounts.answered for part in parts),
        "counts": any(part.announced for part in parts),
    }
    return tuple(name for name, holds in faults.items() if holds)


def _depends_on_size(subject: Subject) -> bool:
    sizes = {name: (side, side) for name, side in (("small", 224), ("large", 1500))}
    return subject.image("small", sizes) != subject.image("large", sizes)


def over_context(subject: Subject, parts: Sequence[Part]) -> list[str]:
    """Return the experiments whose mean prompt is longer than a model's context."""
    limit = subject.entry.context_length
    if limit is None:
        return []
    return [
        part.experiment
        for part in parts
        if part.amounts.requests and part.amounts.asked / part.amounts.requests > limit
    ]
