"""Money: what a question may cost, what was spent on a model, and the cap that stops asking."""

from __future__ import annotations

import json
import logging
import math
import os
import uuid
from pathlib import Path

from vlmfair.inference.queries import Query
from vlmfair.models.api_settings import ApiSettings

logger = logging.getLogger(__name__)

LEDGER = "spending.jsonl"
# First guesses, until the server has stated the tokens of an answer: what one image costs at most
# with GPT-4o (85 + 170 for each of 8 tiles), and bytes of text per token.
TOKENS_PER_IMAGE = 1500
BYTES_PER_TOKEN = 2
TOKENS_PER_CONVERSATION = 50


def price(settings: ApiSettings, prompt_tokens: int, completion_tokens: int) -> float:
    """Return what that many tokens cost, in the currency of the entry's prices."""
    paid = prompt_tokens * settings.price_input + completion_tokens * settings.price_output
    return paid / 1e6


class Estimate:
    """The most that a question may cost; it learns how a server counts the tokens of questions."""

    def __init__(self, settings: ApiSettings) -> None:
        self._settings = settings
        self._factor = 1.0

    def cost(self, query: Query) -> float:
        """Return the price of a question with the longest answer that it may get."""
        longest = 1 if query.mode == "score" else query.max_new_tokens
        return price(self._settings, math.ceil(_prompt_tokens(query) * self._factor), longest)

    def learn(self, query: Query, prompt_tokens: int) -> None:
        """Raise the estimates if the server counted more tokens than expected."""
        self._factor = max(self._factor, prompt_tokens / _prompt_tokens(query))


def _prompt_tokens(query: Query) -> int:
    length = sum(len(turn.text.encode("utf-8", "replace")) for turn in query.turns)
    images = TOKENS_PER_IMAGE * len(query.images)
    return length // BYTES_PER_TOKEN + TOKENS_PER_CONVERSATION + images


class Ledger:
    """What was spent on the answers of one store folder, over all runs, kept in a file there.

    A line `{"id", "cost"}` is written before each request with the most that it may cost, and one
    with the same id and the true cost behind it; the last one counts. So a killed run leaves its
    open requests at their highest price, and a repeated run cannot spend the cap again.
    One process at a time writes; `PaidStore` sees to that.
    """

    def __init__(self, folder: Path, cap: float | None = None) -> None:
        self.cap = cap
        self._path = folder / LEDGER
        self._costs: dict[str, float] = self._read()
        self.spent = sum(self._costs.values())

    def open(self, cost: float) -> str | None:
        """Reserve the highest cost of a request and return its id; None when the cap forbids it."""
        if self.cap is not None and cost > 0 and self.spent + cost > self.cap:
            return None
        ticket = uuid.uuid4().hex[:16]
        self._record(ticket, cost)
        return ticket

    def settle(self, ticket: str, cost: float) -> None:
        """Replace the reservation of a request by what it cost."""
        self._record(ticket, cost)

    def _record(self, ticket: str, cost: float) -> None:
        before = self._costs.get(ticket, 0.0)
        if cost == before:
            return
        self._costs[ticket] = cost
        self.spent += cost - before
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"id": ticket, "cost": round(cost, 9)}) + "\n"
        # One write to a file opened for appending: a kill leaves whole lines.
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(handle, line.encode())
        finally:
            os.close(handle)

    def _read(self) -> dict[str, float]:
        if not self._path.is_file():
            return {}
        costs: dict[str, float] = {}
        for line in self._path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                row = json.loads(line)
                costs[str(row["id"])] = max(0.0, float(row["cost"]))
            except (ValueError, KeyError, TypeError):
                logger.warning("%s: a line is damaged and its cost is not counted.", self._path)
        return costs
