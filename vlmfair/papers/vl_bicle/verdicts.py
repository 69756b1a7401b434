"""The judge of visual questions: how close an answer is to the right one, from 0 to 1 (0.F).

A language model is asked as Shao et al. ask theirs, each pair of answers once; without one, the
lexical judge compares words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from vlmfair.contracts import REQUESTS, conform
from vlmfair.errors import ConfigError
from vlmfair.inference.queries import CONTEXTS
from vlmfair.papers.vl_bicle.judge import in_request_order
from vlmfair.papers.vl_bicle.plan import WORD
from vlmfair.papers.vl_bicle.questions import Prompts
from vlmfair.provenance import content_id
from vlmfair.text.answers import normalise
from vlmfair.text.gender import tokens
from vlmfair.text.thoughts import read_thought

OK, UNPARSED, FAILED, HELD_BACK = "ok", "unparsed", "failed", "held_back"
LEXICAL, LLM = "lexical", "llm"
JUDGES = (LEXICAL, LLM)
CONTEXT = "vl_bicle/judge"
# How an API says that an answer was held back.
HOLDS_BACK = ("refused", "refusal", "content_filter", "safety")
_NUMBER = (
    r"[\s\"'*_`<(\[]*(?P<score>-?\d+(?:[.,]\d+)?|[.,]\d+)"
    r"(?:\s*(?:/|out of)\s*(?P<full>\d+(?:\.\d+)?)|\s*(?P<percent>%))?"
)
# The form that is asked for, with any quotation marks; only without it, the score in a sentence.
_STATED = re.compile(rf"\bscore[\s\"'*_`]*[:=]{_NUMBER}", re.IGNORECASE)
_IN_WORDS = re.compile(rf"\bscore\b[\s\"'*_`]*(?:is|of)\b{_NUMBER}", re.IGNORECASE)
_ARTICLES = frozenset({"a", "an", "the"})
_NUMBER_WORDS = dict(
    zip(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
        map(str, range(11)),
        strict=True,
    )
)
Pair = tuple[str, str, str]


@dataclass(frozen=True)
class Verdict:
    """A score from 0 to 1, or None where the judge gave none, and why (`status`)."""

    score: float | None
    status: str


def pair_of(question: str, truth: str, text: str | None) -> Pair:
    """Return what a judge compares: the question, the right answer and the answer that was read."""
    return question, truth, read_thought(text or "").answer


def plan_verdicts(
    asked: Iterable[tuple[pa.Table, pa.Table]],
    prompts: Prompts,
    *,
    shards: int,
    max_new_tokens: int,
) -> tuple[pa.Table, pa.Table]:
    """Return the requests to a language model that judges, and their one context.

    `asked` are pairs of requests and responses of visual questions; equal pairs of answers are
    judged once, answers that are empty or failed never, and spread evenly over `shards`. Requests
    carry `question`, `truth` and `answer`. Raises ConfigError on numbers that are not positive.
    """
    if shards < 1 or max_new_tokens < 1:
        raise ConfigError(
            f"vl_bicle: the judge has {shards} shards and {max_new_tokens} new tokens. "
            f"Write at least 1 for both."
        )
    pairs: dict[Pair, str] = {}
    for requests, responses in asked:
        responses = in_request_order(requests, responses)
        columns = (requests[name].to_pylist() for name in ("question", "truth", "sample_id"))
        texts, errors = (responses[name].to_pylist() for name in ("text", "error"))
        for question, truth, sample, text, error in zip(*columns, texts, errors, strict=True):
            pair = pair_of(question, truth, text)
            if error is None and pair[2]:
                pairs.setdefault(pair, str(sample))
    rows = [_request(pair, pairs[pair], prompts, max_new_tokens) for pair in sorted(pairs)]
    for place, row in enumerate(rows):
        row["shard"] = place * shards // len(rows)
    return _as_requests(rows), judge_context(prompts)


def judge_context(prompts: Prompts) -> pa.Table:
    """Return the system message of the judge as a context."""
    row = {"context_id": CONTEXT, "turn": 0, "role": "system", "text": prompts.judge_system}
    return conform(pa.Table.from_pylist([row]), CONTEXTS)


def _request(pair: Pair, sample: str, prompts: Prompts, max_new_tokens: int) -> dict[str, object]:
    question, truth, answer = pair
    text = prompts.judge_question(question, truth, answer)
    return {
        "request_id": content_id(CONTEXT, prompts.judge_system, text, str(max_new_tokens)),
        "sample_id": sample,
        "context_id": CONTEXT,
        "text": text,
        "mode": "generate",
        "max_new_tokens": max_new_tokens,
        "question": question,
        "truth": truth,
        "answer": answer,
        "rendering": "chat",
    }


def _as_requests(rows: list[dict[str, object]]) -> pa.Table:
    texts = ["request_id", "sample_id", "context_id", "text", "mode"]
    texts += ["question", "truth", "answer", "rendering"]
    kinds = [(name, pa.string()) for name in texts]
    kinds += [(name, pa.int32()) for name in ("shard", "max_new_tokens")]
    table = pa.Table.from_pylist(rows, schema=pa.schema(kinds))
    for name in ("question", "truth", "answer", "rendering"):
        column = table[name].dictionary_encode().cast(WORD)
        table = table.set_column(table.column_names.index(name), name, column)
    return conform(table, REQUESTS)


def read_verdicts(requests: pa.Table, responses: pa.Table) -> dict[Pair, Verdict]:
    """Return the verdict of each pair from a language model's replies.

    A reply without exactly one score is `unparsed`, never a 0; one that failed or was held back
    has no score either. Raises ContractError when requests and responses differ.
    """
    responses = in_request_order(requests, responses)
    pairs = zip(*(requests[name].to_pylist() for name in ("question", "truth", "answer")))
    failed = pc.is_valid(responses["error"]).to_pylist()
    reasons, texts = (responses[name].to_pylist() for name in ("finish_reason", "text"))
    verdicts = {}
    for pair, bad, reason, text in zip(pairs, failed, reasons, texts, strict=True):
        if bad:
            verdicts[pair] = Verdict(None, FAILED)
        elif reason in HOLDS_BACK:
            verdicts[pair] = Verdict(None, HELD_BACK)
        else:
            verdicts[pair] = parse_score(text or "")
    return verdicts


def parse_score(reply: str) -> Verdict:
    """Return the score of a judge's reply, `score: 0.8`; different scores, or none, are unparsed.

    The released script reads exactly `score: <digits>` and takes everything else for 0; this
    reader also takes JSON, a full stop behind the number, and fractions. Scores above 1 become 1 as
    released, unless a fraction says what is full.
    """
    cleaned = normalise(reply)
    matches = list(_STATED.finditer(cleaned)) or list(_IN_WORDS.finditer(cleaned))
    found = {_value(match) for match in matches}
    if len(found) != 1:
        return Verdict(None, UNPARSED)
    return Verdict(min(1.0, max(0.0, found.pop())), OK)


def _value(match: re.Match[str]) -> float:
    score = float(match["score"].replace(",", "."))
    full = float(match["full"]) if match["full"] else 100.0 if match["percent"] else 1.0
    return score / full if full > 0 else score


def lexical_score(answer: str, truth: str) -> float:
    """Return how far the words of an answer are those of the right one, from 0 to 1.

    F1 of words without articles, numbers as digits; yes and no count only where they come first.
    It knows no synonyms: it stands in for a language model where there is none.
    """
    said, right = _plain(answer), _plain(truth)
    if said == right:
        return 1.0
    if right in (["yes"], ["no"]):
        return float(said[:1] == right)
    common = sum((Counter(said) & Counter(right)).values())
    return 2 * common / (len(said) + len(right)) if common else 0.0


def _plain(text: str) -> list[str]:
    words = tokens(text) + [str(number) for number in re.findall(r"\d+", text)]
    return [_NUMBER_WORDS.get(word, word) for word in words if word not in _ARTICLES]


def lexical_verdict(pair: Pair) -> Verdict:
    """Return the lexical judge's verdict on an answer."""
    return Verdict(lexical_score(pair[2], pair[1]), OK)


Verdicts = Mapping[Pair, Verdict]
