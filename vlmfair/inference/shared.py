"""The shared-prefix engine: what prompts have in common is computed once for all of them.

It checks itself against full forwards before it answers, and falls back to the plain engine's ways
for models and prompts where sharing is not exact.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from vlmfair.errors import InferenceError
from vlmfair.inference.forward import (
    FeatureTable,
    Forward,
    PackOutput,
    RepeatedForward,
    feature_table,
)
from vlmfair.inference.generate import greedy
from vlmfair.inference.groups import Layout, Layouts, group_prompts
from vlmfair.inference.limits import MemoryLimit
from vlmfair.inference.plain import PlainEngine
from vlmfair.inference.prepare import Prepared
from vlmfair.inference.queries import Answer, Query
from vlmfair.inference.selfcheck import (
    FLOORS,
    LEAST_FLOOR,
    TOLERANCE,
    Check,
    Probabilities,
    check_prompts,
    choose_mode,
    computing_in_float32,
    largest_difference,
)
from vlmfair.models.chat import ChatRenderer
from vlmfair.models.families.base import text_config
from vlmfair.models.loading import LoadedProcessor

logger = logging.getLogger(__name__)

SHARED_MODES = ("packed", "repeated")
# The order in which ways of asking are tried; the last one is exact by definition.
FALL_BACK = ("packed", "repeated", "image_features", "full_forward")
# A longer pack fills the device better, but its tokens are compared with more of other questions.
PACK_TOKENS = 512
PACK_TOKENS_OF_NARROW = 256
NARROW = 1024
LEAST_PACK_TOKENS = 16
# Prompts whose logits of the whole vocabulary are kept at once, and sequences that grow together.
MOST_SCORED = 256
MOST_GENERATED = 64

_Temperatures = Sequence[float] | None


class SharedPrefixEngine:
    """Answers through packed suffixes behind shared beginnings, or the best fall-back.

    `mode` is `auto`, or one of FALL_BACK to use it without a check.
    """

    def __init__(
        self,
        loaded: LoadedProcessor,
        renderer: ChatRenderer,
        model: Any,
        *,
        device: str = "cpu",
        batch_size: int = 32,
        mode: str = "auto",
        pack_tokens: int | None = None,
    ) -> None:
        if mode not in ("auto", *FALL_BACK):
            raise InferenceError(
                f"{loaded.entry.name}: there is no inference mode {mode!r}. Use auto, or one of "
                f"{', '.join(FALL_BACK)}."
            )
        self.mode = mode if mode != "auto" else FALL_BACK[0]
        self.checks: list[Check] = []
        self._plain = PlainEngine(loaded, renderer, model, device=device, batch_size=batch_size)
        self._family = loaded.family
        self._model = model
        self._dtype = loaded.entry.dtype
        self._forced = mode != "auto"
        self._forwards = {
            "packed": Forward(loaded.family, model, torch.device(device)),
            "repeated": RepeatedForward(loaded.family, model, torch.device(device)),
        }
        self._layouts: Layouts | None = None
        self._name = loaded.entry.name
        self._limit = MemoryLimit(
            loaded.entry.name,
            "tokens in a pack",
            pack_tokens or default_pack_tokens(model),
            LEAST_PACK_TOKENS,
        )
        self._modes: dict[tuple[Any, ...], str] = {}
        self._asked = 0

    def score(self, queries: Iterable[Query], temperatures: Sequence[float]) -> Iterator[Answer]:
        """Yield label logits and logsumexp; see `Engine.score`."""
        yield from self._answer(queries, temperatures)

    def generate(self, queries: Iterable[Query]) -> Iterator[Answer]:
        """Yield greedy answers; see `Engine.generate`."""
        yield from self._answer(queries, None)

    def report(self) -> dict[str, Any]:
        """Return what was computed and how it was checked, for the manifest of the responses."""
        plain = self._plain.report()
        computed = sum(forward.tokens for forward in self._forwards.values())
        return {
            "tokens_asked": self._asked + plain["tokens_asked"],
            "tokens_computed": computed + plain["tokens_computed"],
            "out_of_memory": [*self._limit.record(), *plain["out_of_memory"]],
            "self_checks": [check.record() for check in self.checks],
        }

    def _answer(self, queries: Iterable[Query], temperatures: _Temperatures) -> Iterator[Answer]:
        for ready, errors in self._plain.preparer.windows(queries, lambda: self.mode):
            yield from errors
            groups = group_prompts(ready)
            self._choose_modes(groups, temperatures is None)
            others: dict[str, list[Prepared]] = {}
            for group in groups:
                mode = self._modes[self._kind(group, temperatures is None)]
                if mode in SHARED_MODES:
                    yield from self._shared(group, temperatures, mode)
                else:
                    others.setdefault(mode, []).extend(group)
            for mode, prompts in others.items():
                if temperatures is None:
                    yield from self._plain.generate_prepared(prompts, mode)
                else:
                    yield from self._plain.score_prepared(prompts, temperatures, mode)

    def _shared(
        self, group: Sequence[Prepared], temperatures: _Temperatures, mode: str
    ) -> Iterator[Answer]:
        left = {id(item): item for item in group}
        while left:
            prompts = list(left.values())
            longest = max(len(item.ids) for item in prompts)
            with self._limit.halved_when_full(f"a prompt of {longest} tokens"):
                for answered, answers in self._packs(prompts, temperatures, mode):
                    for item in answered:
                        del left[id(item)]
                        self._asked += len(item.ids)
                    yield from answers

    def _packs(
        self, group: Sequence[Prepared], temperatures: _Temperatures, mode: str
    ) -> Iterator[tuple[list[Prepared], list[Answer]]]:
        """Yield the prompts of each pack with their answers."""
        answers = self._plain.answers
        with torch.inference_mode():
            layout, table = self._layout(group, generating=temperatures is None)
        packs = self._forwards[mode].packs(layout, table)
        while True:
            # Not around the yield: the mode would leak into whoever consumes the answers.
            with torch.inference_mode():
                output = next(packs, None)
                if output is None:
                    return
                members = [group[row] for row in output.members]
                if temperatures is None:
                    texts = self._greedy(layout, output, members, mode)
                    done = [
                        answers.generated(item, ids, mode)
                        for item, ids in zip(members, texts, strict=True)
                    ]
                else:
                    logits = self._family.head(self._model, output.hidden)
                    done = answers.scored(members, logits, temperatures, mode)
            yield members, done

    def _layout(self, group: Sequence[Prepared], generating: bool) -> tuple[Layout, FeatureTable]:
        if self._layouts is None:
            self._layouts = Layouts(self._family, self._model, self._name)
        features = self._plain.features.get(group)
        most = MOST_GENERATED if generating else MOST_SCORED
        layout = self._layouts.layout(group, features, self._limit.size, most)
        return layout, feature_table(list(features.values()))

    def _greedy(
        self, layout: Layout, output: PackOutput, members: Sequence[Prepared], mode: str
    ) -> list[list[int]]:
        def check(logits: torch.Tensor, rows: Sequence[int]) -> None:
            self._plain.answers.check_numbers(logits, [members[row].query for row in rows])

        return greedy(
            self._forwards[mode],
            output,
            [layout.arrays[row].positions for row in output.members],
            [item.query.max_new_tokens for item in members],
            self._plain.answers.ends,
            check,
        )

    def _kind(self, group: Sequence[Prepared], generating: bool) -> tuple[Any, ...]:
        """Groups of one kind are checked once: by images in a prompt and the order of length."""
        images = max(len(item.images) for item in group)
        room = max(item.query.max_new_tokens for item in group) if generating else 0
        longest = max(len(item.ids) for item in group) + room
        return generating, images, longest.bit_length()

    def _choose_modes(self, groups: Sequence[list[Prepared]], generating: bool) -> None:
        largest: dict[tuple[Any, ...], list[Prepared]] = {}
        for group in groups:
            kind = self._kind(group, generating)
            if kind not in self._modes and len(group) > len(largest.get(kind, ())):
                largest[kind] = group
        for kind, group in largest.items():
            if self._forced:
                self._modes[kind] = self.mode
                continue
            check = self._fitting_check(group, generating)
            self.checks.append(check)
            self._modes[kind] = self.mode = check.mode
            logger.info("%s: asking in mode %s: %s", self._name, check.mode, check.record())

    def _fitting_check(self, group: Sequence[Prepared], generating: bool) -> Check:
        longest = max(len(item.ids) for item in group)
        while True:
            with self._limit.halved_when_full(f"a prompt of {longest} tokens") as attempt:
                check = self._check(group, generating)
            if attempt.succeeded:
                return check

    def _check(self, group: Sequence[Prepared], generating: bool) -> Check:
        refused = self._refused(group, generating)
        if len(refused) == len(FALL_BACK) - 1:
            # Nothing to compare: full forwards are exact by definition.
            return Check(FALL_BACK[-1], {}, refused, TOLERANCE)
        prompts = check_prompts(group)
        logits = [self._plain.logits([item], "full_forward")[0].float() for item in prompts]
        tokens = [int(row.argmax()) for row in logits]
        reference = [row.softmax(-1) for row in logits]
        longer = [
            dataclasses.replace(item, ids=(*item.ids, token))
            for item, token in zip(prompts, tokens, strict=True)
        ]
        if generating:
            reference += self._plain_probabilities(longer, "full_forward")
        tolerance = TOLERANCE
        if self._dtype != "float32":
            with computing_in_float32(self._model):
                exact = self._plain_probabilities(prompts, "full_forward")
            floor = largest_difference(reference[: len(prompts)], exact)
            tolerance = FLOORS * max(LEAST_FLOOR, floor)

        def probabilities(mode: str) -> Probabilities:
            if mode not in SHARED_MODES:
                asked = [*prompts, *longer] if generating else prompts
                return self._plain_probabilities(asked, mode)
            return self._shared_probabilities(prompts, tokens if generating else None, mode)

        return choose_mode(FALL_BACK, probabilities, reference, refused, tolerance)

    def _refused(self, group: Sequence[Prepared], generating: bool) -> dict[str, str]:
        images = max(len(item.images) for item in group)
        if not self._family.shares_image_features:
            reason = f"the family {self._family.name} has no image features apart"
            return dict.fromkeys(FALL_BACK[:-1], reason)
        room = max(item.query.max_new_tokens for item in group) if generating else 0
        longest = max(len(item.ids) for item in group) + room
        obstacle = self._family.obstacle(self._model, longest, images)
        return dict.fromkeys(SHARED_MODES, obstacle) if obstacle else {}

    def _plain_probabilities(self, prompts: Sequence[Prepared], mode: str) -> Probabilities:
        return [self._plain.logits([item], mode)[0].float().softmax(-1) for item in prompts]

    @torch.inference_mode()
    def _shared_probabilities(
        self, prompts: Sequence[Prepared], tokens: Sequence[int] | None, mode: str
    ) -> Probabilities:
        """Probabilities behind prompts, and with `tokens` those behind one more token each."""
        forward = self._forwards[mode]
        layout, table = self._layout(prompts, generating=tokens is not None)
        first: dict[int, torch.Tensor] = {}
        second: dict[int, torch.Tensor] = {}
        for output in forward.packs(layout, table):
            logits = self._family.head(self._model, output.hidden).float().softmax(-1)
            first.update(zip(output.members, logits, strict=True))
            if tokens is not None:
                ids = torch.tensor([tokens[row] for row in output.members], device=logits.device)
                steps = [
                    self._family.next_positions(layout.arrays[row].positions, 1).to(logits.device)
                    for row in output.members
                ]
                hidden = forward.step(ids, torch.stack(steps, dim=1), output.visible, output.cache)
                logits = self._family.head(self._model, hidden).float().softmax(-1)
                second.update(zip(output.members, logits, strict=True))
        rows = range(len(prompts))
        return [first[row] for row in rows] + [second[row] for row in rows if row in second]


def default_pack_tokens(model: Any) -> int:
    """Return how many tokens a pack has: the narrower the model, the more its attention costs."""
    width = text_config(model.config).hidden_size
    return PACK_TOKENS_OF_NARROW if width < NARROW else PACK_TOKENS
