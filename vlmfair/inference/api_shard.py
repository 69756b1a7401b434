"""One inference job of a model behind a server: from the answer store, else by the server."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

import pyarrow as pa
from tqdm import tqdm

from vlmfair.errors import ModelError
from vlmfair.inference.api import ApiEngine
from vlmfair.inference.api_budget import Ledger
from vlmfair.inference.api_messages import API_SEMANTICS, api_answer_key
from vlmfair.inference.api_scores import check_scoring
from vlmfair.inference.api_store import PaidStore
from vlmfair.inference.queries import Answer, Query, make_queries
from vlmfair.inference.responses import ShardAnswers, count_values, make_responses
from vlmfair.inference.store import FLUSH_SECONDS
from vlmfair.models.api_settings import BACKEND, ApiSettings
from vlmfair.models.registry import ModelEntry
from vlmfair.provenance import library_versions

logger = logging.getLogger(__name__)


def api_identity(entry: ModelEntry) -> dict[str, Any]:
    """Return what decides a served model's answers beside the question; it names the folder."""
    api = _settings(entry)
    return {
        "backend": BACKEND,
        "base_url": api.base_url.rstrip("/"),
        "model": api.api_model,
        "revision": entry.revision or "",
        "temperature": api.temperature,
        "seed": api.seed,
        "top_logprobs": api.top_logprobs,
        "semantics": API_SEMANTICS,
    }


def answer_api_shard(
    requests: pa.Table,
    contexts: pa.Table | None,
    entry: ModelEntry,
    labels: Mapping[str, Sequence[str]],
    temperatures: Sequence[float],
    store_root: str | os.PathLike[str],
    *,
    money_cap: float | None = None,
    flush_seconds: float = FLUSH_SECONDS,
    environ: Mapping[str, str] | None = None,
) -> ShardAnswers:
    """Answer the requests of one shard; what the store has is not asked, nor is a key needed.

    Arguments as of `shard.answer_shard`. `money_cap` is the most that all answers in the model's
    store may have cost, in the currency of the entry's prices; None is no cap. Raises ModelError
    when the key is missing or scores cannot be had, InferenceError when the server, the account
    or the cap stops the asking; every answer that came is stored then.
    """
    queries: dict[bytes, Query] = {}
    keys = []
    for query in make_queries(requests, contexts, labels):
        key = api_answer_key(query, temperatures)
        keys.append(key)
        queries.setdefault(key, query)
    unique = list(queries)
    with PaidStore(store_root, api_identity(entry), flush_seconds=flush_seconds) as store:
        stored = store.find(unique)
        known = set(stored["row"].to_pylist())
        missing = [key for row, key in enumerate(unique) if row not in known]
        ledger = Ledger(store.folder, money_cap)
        answers: dict[bytes, Answer] = {}
        report: dict[str, Any] = {}
        failed = 0
        if missing:
            if any(queries[key].mode == "score" for key in missing):
                check_scoring(entry, temperatures)
            engine = ApiEngine(entry, ledger, environ=environ)
            for key, answer in _ask(engine, missing, queries, temperatures, entry.name):
                if answer.error is not None and not failed:
                    logger.warning("first answer that failed: %s", answer.error)
                failed += answer.error is not None
                store.add(key, answer)
                answers[key] = answer
            report = engine.report()
    responses = make_responses(requests, keys, unique, stored, answers)
    manifest = {
        "model": entry.name,
        "model_digest": store.digest,
        "store": store.digest,
        "skipped_store_parts": store.skipped_parts,
        "semantics": API_SEMANTICS,
        "dtype": entry.dtype,
        "attention": entry.attention,
        "temperatures": list(temperatures),
        "answers": {"stored": len(known), "asked": len(missing)},
        "errors": len(requests) - responses["error"].null_count,
        "inference_modes": count_values(responses["inference_mode"]),
        "label_tokens": _label_tokens(queries.values()),
        "server": api_identity(entry),
        "spent_over_all_runs": round(ledger.spent, 6),
        "engine": report,
        "libraries": {**library_versions(), "openai": metadata.version("openai")},
    }
    return ShardAnswers(responses, manifest)


def _settings(entry: ModelEntry) -> ApiSettings:
    if entry.api is None:
        raise ModelError(
            f"{entry.name}: the entry names no server. "
            f"Write backend: {BACKEND} and its keys in {entry.sheet}."
        )
    return entry.api


def _ask(
    engine: ApiEngine,
    keys: Sequence[bytes],
    queries: Mapping[bytes, Query],
    temperatures: Sequence[float],
    model: str,
) -> Iterator[tuple[bytes, Answer]]:
    key_of = {queries[key].request_id: key for key in keys}
    progress = tqdm(
        engine.ask((queries[key] for key in keys), temperatures),
        total=len(keys),
        desc=model,
        unit=" answers",
        file=sys.stderr,
        mininterval=5,
    )
    for answer in progress:
        yield key_of.pop(answer.request_id), answer


def _label_tokens(queries: Iterable[Query]) -> dict[str, list[int]]:
    """Return the places of the labels in their sets, which stand for their tokens' ids."""
    sets = sorted({query.labels for query in queries})
    places: dict[str, set[int]] = {}
    for labels in sets:
        for place, label in enumerate(labels):
            places.setdefault(label, set()).add(place)
    return {label: sorted(found) for label, found in places.items()}
