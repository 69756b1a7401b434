"""The engine of models behind an OpenAI-compatible server: GPT-4o, Gemini, any vLLM server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from vlmfair.errors import InferenceError, ModelError
from vlmfair.inference.api_budget import Estimate, Ledger, price
from vlmfair.inference.api_client import ApiClient, read_key
from vlmfair.inference.api_messages import request_body, why_unaskable
from vlmfair.inference.api_pool import Pool
from vlmfair.inference.api_reply import Failure, Reply
from vlmfair.inference.api_retry import Pauses
from vlmfair.inference.api_scores import LabelScores, check_scoring
from vlmfair.inference.images import UnreadableImageError
from vlmfair.inference.queries import Answer, Query
from vlmfair.models.registry import ModelEntry

logger = logging.getLogger(__name__)

MODE = "api"
# Requests for one question that may have been charged without giving an answer.
MOST_BILLED_TRIES = 4
# Questions that fail one after the other before nothing more is asked.
MOST_FAILURES_IN_A_ROW = 10
# Different reasons for trying again that are logged, each once.
MOST_NOTED = 20


class _StoppedError(Exception):
    """A question was left because the engine stops; the reason is with the engine."""


class ApiEngine:
    """Asks a server `concurrency` questions at a time, each until it has an answer or an error.

    Answers come in the order in which the server gives them. When the key, the model's name or
    the money cap stops everything, the answers under way are still yielded; then InferenceError
    says why and how many questions are left. `environ` is where the key is looked up.
    """

    mode = MODE

    def __init__(
        self, entry: ModelEntry, ledger: Ledger, *, environ: Mapping[str, str] | None = None
    ) -> None:
        if entry.api is None:
            raise ModelError(
                f"{entry.name}: the entry names no server. "
                f"Write backend: openai and its keys in {entry.sheet}."
            )
        self._entry, self._settings, self._ledger = entry, entry.api, ledger
        self._spent_before = ledger.spent
        self._key = read_key(entry.name, entry.api, environ)
        self._estimate = Estimate(entry.api)
        self._any_finished = False
        self._noted: set[str] = set()
        self._stop: tuple[str, str] | None = None
        self._left = 0
        self._failures_in_a_row = 0
        self._requests = 0
        self._served_models: dict[str, int] = {}
        self._scores = LabelScores()

    def generate(self, queries: Iterable[Query]) -> Iterator[Answer]:
        """Yield the text of each answer; see `Engine.generate`.

        A refusal has its text, if any, and the finish reason `refused`.
        """
        return self.ask(queries, ())

    def score(self, queries: Iterable[Query], temperatures: Sequence[float]) -> Iterator[Answer]:
        """Yield the log-probability of each label as first token; see `Engine.score`.

        A label stands for the token that is spelled like it; one that the server does not list
        gets -100. Raises ModelError when the entry has no top_logprobs, or a temperature other
        than 1 is asked for, which needs the whole vocabulary.
        """
        return self.ask(queries, temperatures)

    def report(self) -> dict[str, Any]:
        """Return what was asked and spent, and which labels the server never listed."""
        return {
            "requests": self._requests,
            "served_models": dict(self._served_models),
            "spent": round(self._ledger.spent - self._spent_before, 6),
            **self._scores.report(self._settings.top_logprobs),
        }

    def ask(self, queries: Iterable[Query], temperatures: Sequence[float]) -> Iterator[Answer]:
        """Yield the answer of each query of either mode, as `generate` and `score` do."""
        remaining = iter(queries)
        # Bound to the event loop of this call.
        self._pauses = Pauses(self._settings.first_wait_seconds)
        self._reading = asyncio.Lock()
        with Pool[Answer](self._settings.concurrency) as pool:
            client = ApiClient(self._settings, self._key)
            try:
                for query in remaining:
                    if query.mode == "score":
                        check_scoring(self._entry, temperatures)
                    unaskable = why_unaskable(query)
                    if unaskable is not None:
                        yield self._error(query, unaskable)
                        continue
                    ticket = yield from self._reserve(query, pool)
                    if ticket is None:
                        self._left += 1
                        break
                    pool.start(self._answer(client, query, ticket))
                while pool.is_busy:
                    yield from self._collect(pool)
            finally:
                pool.cancel()
                pool.run(client.close())
        if self._stop is not None:
            reason, remedy = self._stop
            left = self._left + sum(1 for _ in remaining)
            raise InferenceError(
                f"{self._entry.name}: {reason}. {left} questions are left, the other answers are "
                f"stored. {remedy}"
            )

    def _reserve(self, query: Query, pool: Pool[Answer]) -> Generator[Answer, None, str | None]:
        """Wait for a place and for money, yielding the answers that come; None: do not ask."""
        while self._stop is None:
            cost = self._estimate.cost(query)
            # The first question goes alone: it shows whether key and model are right, and how
            # dear a question is.
            if not pool.is_busy or (self._any_finished and not pool.is_full):
                ticket = self._ledger.open(cost)
                if ticket is not None:
                    return ticket
                # Answers under way may turn out cheaper than they might have been.
                if not pool.is_busy:
                    self._halt(*self._cap_reached(cost))
                    break
            yield from self._collect(pool)
        return None

    def _collect(self, pool: Pool[Answer]) -> Iterator[Answer]:
        for task in pool.wait():
            self._any_finished = True
            try:
                answer = task.result()
            except _StoppedError:
                self._left += 1
            else:
                yield answer

    async def _answer(self, client: ApiClient, query: Query, ticket: str) -> Answer:
        cost = self._estimate.cost(query)
        try:
            # One image at a time: Pillow's warnings are not switched off safely side by side.
            async with self._reading:
                body = await asyncio.to_thread(request_body, query, self._settings)
        except UnreadableImageError as error:
            self._ledger.settle(ticket, 0.0)
            return self._error(query, f"{error}. Take the image out of the selection.")
        except InferenceError as error:
            self._ledger.settle(ticket, 0.0)
            reason, _, remedy = str(error).partition(". ")
            self._halt(reason, remedy)
            raise _StoppedError from None
        loop = asyncio.get_running_loop()
        started, tries, billed = loop.time(), 0, 0
        while True:
            await self._pauses.gate()
            if self._stop is not None:
                self._ledger.settle(ticket, 0.0)
                raise _StoppedError
            tries += 1
            self._requests += 1
            try:
                reply = await client.ask(body)
            except Failure as failure:
                self._ledger.settle(ticket, cost if failure.billed else 0.0)
                billed += failure.billed
                waited = loop.time() - started
                pause = self._pause(failure, tries, billed, waited)
                if pause is None:
                    return self._failed(query, failure, tries, waited)
                await self._pauses.sleep(pause)
                ticket = self._reopen(cost)
            else:
                self._settle(ticket, query, reply, cost)
                return self._made(query, reply)

    def _pause(self, failure: Failure, tries: int, billed: int, waited: float) -> float | None:
        """Return how long to wait before the next try, or None when there is none."""
        if not failure.retried or billed >= MOST_BILLED_TRIES:
            return None
        pause = self._pauses.length(tries, failure.wait)
        if waited + pause > self._settings.max_wait_seconds:
            return None
        if failure.wait is not None:
            self._pauses.close(failure.wait)
        if failure.reason not in self._noted and len(self._noted) < MOST_NOTED:
            self._noted.add(failure.reason)
            logger.info("%s: %s; trying again in %.1f s", self._entry.name, failure.reason, pause)
        return pause

    def _failed(self, query: Query, failure: Failure, tries: int, waited: float) -> Answer:
        if failure.stops:
            self._halt(failure.reason, failure.remedy)
            raise _StoppedError from None
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= MOST_FAILURES_IN_A_ROW:
            self._halt(
                f"{self._failures_in_a_row} questions in a row have failed, the last one because "
                f"{failure.reason}",
                failure.remedy,
            )
        effort = f" ({tries} tries in {waited:.0f} s)" if tries > 1 else ""
        return self._error(query, f"{failure.reason}{effort}. {failure.remedy}")

    def _reopen(self, cost: float) -> str:
        if self._stop is None:
            ticket = self._ledger.open(cost)
            if ticket is not None:
                return ticket
            self._halt(*self._cap_reached(cost))
        raise _StoppedError from None

    def _halt(self, reason: str, remedy: str) -> None:
        if self._stop is None:
            self._stop = reason, remedy
            self._pauses.stopping.set()

    def _cap_reached(self, cost: float) -> tuple[str, str]:
        return (
            f"the money cap of {self._ledger.cap:g} is reached: {self._ledger.spent:.4g} is spent "
            f"on this model over all runs, and the next question may cost {cost:.2g}",
            "Raise inference.money_cap in the config and run again to go on.",
        )

    def _settle(self, ticket: str, query: Query, reply: Reply, cost: float) -> None:
        if reply.prompt_tokens is not None and reply.completion_tokens is not None:
            cost = price(self._settings, reply.prompt_tokens, reply.completion_tokens)
            self._estimate.learn(query, reply.prompt_tokens)
        self._ledger.settle(ticket, cost)

    def _made(self, query: Query, reply: Reply) -> Answer:
        self._failures_in_a_row = 0
        if reply.model:
            self._served_models[reply.model] = self._served_models.get(reply.model, 0) + 1
        common: dict[str, Any] = {
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
            "finish_reason": reply.finish_reason,
        }
        if query.mode == "score":
            if reply.first_tokens is None:
                return self._error(
                    query,
                    f"the server gave no log-probabilities (finish reason {reply.finish_reason}). "
                    f"Ask this model for texts only, or a server that gives top_logprobs.",
                )
            scores = self._scores.of(query, reply.first_tokens)
            return Answer(query.request_id, MODE, **scores, **common)
        if not reply.text.strip() and reply.finish_reason == "length":
            return self._error(
                query,
                f"the answer is empty, because all of its {query.max_new_tokens} tokens went into "
                f"reasoning. Raise max_new_tokens for this model.",
            )
        return Answer(query.request_id, MODE, text=reply.text, **common)

    def _error(self, query: Query, sentence: str) -> Answer:
        return Answer(query.request_id, MODE, error=sentence)
