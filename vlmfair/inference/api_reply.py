"""What a server sent back: an answer, a refusal, or a failure with a sentence."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vlmfair.inference.store import REFUSED

# Errors (400) by which servers refuse a question before the model sees it.
_FILTER_CODES = frozenset({"content_filter", "content_policy_violation"})
# How servers call an answer that their filter stopped; Gemini writes its own words behind a colon.
_FILTER_REASONS = ("content_filter", "safety", "prohibited_content", "blocklist", "recitation")
_OUT_OF_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_RETRIED = frozenset({408, 409, 425, 429})


@dataclass(frozen=True)
class Reply:
    """One answer of a server; `first_tokens` are the likeliest first tokens and their logprobs."""

    text: str
    finish_reason: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    first_tokens: tuple[tuple[str, float], ...] | None = None
    model: str = ""


class Failure(Exception):
    """A request without an answer.

    `retried` says whether asking again may help, `stops` that no other question would fare better,
    `billed` that the server may have charged for it; `wait` is what the server asks to wait.
    """

    def __init__(
        self,
        reason: str,
        remedy: str,
        *,
        retried: bool = False,
        stops: bool = False,
        billed: bool = False,
        wait: float | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy
        self.retried, self.stops, self.billed, self.wait = retried, stops, billed, wait


def read_reply(content: bytes) -> Reply:
    """Return the answer in the body of a successful response.

    Raises Failure when there is none: no JSON, no choices, or an error in place of them.
    """
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise _unreadable("the server's answer is no complete JSON") from None
    if isinstance(body, dict) and isinstance(body.get("error"), dict) and not body.get("choices"):
        raise error_of(_integer(body["error"].get("code")) or 500, body["error"], None)
    try:
        choice = body["choices"][0]
        message = choice["message"]
        text, refusal = _text(message.get("content")), _text(message.get("refusal"))
    except (KeyError, IndexError, TypeError, AttributeError):
        raise _unreadable("the server's answer has no choices") from None
    reason = _plain(str(choice.get("finish_reason") or "unknown"))[:40]
    if refusal or reason.lower().startswith(_FILTER_REASONS):
        reason = REFUSED
    usage = body.get("usage") if isinstance(body.get("usage"), dict) else {}
    return Reply(
        text=refusal or text if reason == REFUSED else text,
        finish_reason=reason,
        prompt_tokens=_integer(usage.get("prompt_tokens")),
        completion_tokens=_integer(usage.get("completion_tokens")),
        first_tokens=_first_tokens(choice.get("logprobs")),
        model=_plain(str(body.get("model") or ""))[:100],
    )


def refusal_of(status: int, error: Mapping[str, Any]) -> Reply | None:
    """Return the refusal in an error response: a filter that stopped the question, else None."""
    codes = {str(error.get("code")).lower(), str(error.get("type")).lower()}
    if status not in (400, 403, 422) or not codes & _FILTER_CODES:
        return None
    return Reply(text=_text(error.get("message")), finish_reason=REFUSED)


def error_of(status: int, error: Mapping[str, Any], wait: float | None) -> Failure:
    """Return the failure of an error response; `error` is the object in its body."""
    said = f"{status}: {_plain(str(error.get('message') or 'no reason given'))[:300].rstrip('.')}"
    if str(error.get("code")) in _OUT_OF_MONEY or status == 402:
        return Failure(
            f"the account has no money left ({said})",
            "Top up the account and run again.",
            stops=True,
        )
    if status == 401:
        return Failure(
            f"the server does not accept the key ({said})",
            "Put a valid key into the variable that api_key_env names.",
            stops=True,
        )
    if status == 403:
        return Failure(
            f"the server forbids the question ({said})",
            "Give the account access to api_model, or name another model.",
            stops=True,
        )
    if status == 404:
        return Failure(
            f"the server has no such model or address ({said})",
            "Correct api_model or base_url.",
            stops=True,
        )
    if 300 <= status < 400:
        return Failure(
            f"the server redirects to another address ({said})",
            "Write that address as base_url.",
            stops=True,
        )
    if status in _RETRIED or status >= 500:
        return Failure(
            f"the server is not ready ({said})",
            "Run again later; stored answers are reused.",
            retried=True,
            wait=wait,
        )
    return Failure(
        f"the server refuses the question ({said})",
        "Correct the entry's settings, or take the image out of the selection.",
    )


def _unreadable(reason: str) -> Failure:
    return Failure(
        reason,
        "Check that base_url is the address of an OpenAI-compatible server and run again.",
        retried=True,
        billed=True,
    )


def _text(value: object) -> str:
    if isinstance(value, list):
        parts = [part.get("text") for part in value if isinstance(part, dict)]
        value = "".join(part for part in parts if isinstance(part, str))
    # Half of a surrogate pair is legal JSON and no text.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _plain(text: str) -> str:
    return " ".join(_text(text).split())


def _integer(value: object) -> int | None:
    if isinstance(value, str) and value.isdigit():
        value = int(value[:9])
    valid = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
    return int(value) if valid else None  # type: ignore[call-overload]


def _first_tokens(logprobs: object) -> tuple[tuple[str, float], ...] | None:
    """Return the alternatives for the first token, or None when the server states none."""
    try:
        rows = logprobs["content"][0]["top_logprobs"]  # type: ignore[index]
        found = tuple((str(row["token"]), float(row["logprob"])) for row in rows)
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    usable = all(not math.isnan(logprob) and logprob <= 1e-3 for _, logprob in found)
    return found if found and usable else None
