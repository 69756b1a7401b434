"""One inference job: the requests of a shard, answered from the store or by the model."""

from __future__ import annotations

import itertools
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import torch
from tqdm import tqdm

from vlmfair.errors import InferenceError
from vlmfair.inference.engine import SEMANTICS, Engine, open_engine
from vlmfair.inference.memory import keep_freed_memory
from vlmfair.inference.queries import Answer, Query, make_queries
from vlmfair.inference.responses import ShardAnswers, count_values, make_responses
from vlmfair.inference.store import FLUSH_SECONDS, AnswerStore, answer_key
from vlmfair.models.chat import ChatRenderer
from vlmfair.models.labels import LabelTokens, check_stated_id, shared_labels
from vlmfair.models.loading import LoadedProcessor, choose_device, load_processor
from vlmfair.models.registry import ModelEntry, model_digest
from vlmfair.provenance import library_versions

logger = logging.getLogger(__name__)

OpenEngine = Callable[..., Engine]


@dataclass
class _Asked:
    """The key of each request, one query for each key, and the tokens that labels stood for."""

    keys: list[bytes] = field(default_factory=list)
    queries: dict[bytes, Query] = field(default_factory=dict)
    tokens: set[tuple[tuple[str, ...], LabelTokens]] = field(default_factory=set)


def store_identity(loaded: LoadedProcessor, digest: str) -> dict[str, Any]:
    """Return what decides a model's answers beside the question; it names the store's folder."""
    entry = loaded.entry
    return {
        "model": entry.repository or entry.name,
        "revision": entry.revision or "",
        "content": digest,
        "family": entry.family,
        "dtype": entry.dtype,
        "attention": entry.attention,
        "processor": loaded.settings(),
        "semantics": SEMANTICS,
    }


def answer_shard(
    requests: pa.Table,
    contexts: pa.Table | None,
    entry: ModelEntry,
    labels: Mapping[str, Sequence[str]],
    temperatures: Sequence[float],
    store_root: str | os.PathLike[str],
    *,
    device: str = "auto",
    batch_size: int = 32,
    threads: int | None = None,
    engine_mode: str = "auto",
    flush_seconds: float = FLUSH_SECONDS,
    open_engine: OpenEngine = open_engine,
) -> ShardAnswers:
    """Answer the requests of one shard; what the store has is neither asked nor loads the model.

    `labels` maps the names in `label_set` to the surface forms to score; responses hold their
    logits in that order, and logsumexp in the order of `temperatures`. Raises ModelError when the
    model cannot be loaded or disagrees with a stated token id, InferenceError on logits that are
    not numbers, ContractError on requests that do not fit.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    loaded = load_processor(entry)
    digest = model_digest(entry)
    renderer = ChatRenderer(loaded.processor, loaded.family, entry.name)
    asked = _render_all(requests, contexts, labels, temperatures, loaded, renderer)
    unique = list(asked.queries)
    with AnswerStore(
        store_root, store_identity(loaded, digest), flush_seconds=flush_seconds
    ) as store:
        stored = _within_context(store.find(unique), unique, asked, loaded.context_length)
        known = set(stored["row"].to_pylist())
        missing = [key for row, key in enumerate(unique) if row not in known]
        answers: dict[bytes, Answer] = {}
        report: dict[str, Any] = {}
        answers_with_error = 0
        if missing:
            store.check_writable()
            store.keep_most_of(len(missing))
            chosen = choose_device(device)
            if chosen == "cpu":
                keep_freed_memory()
            engine = open_engine(
                loaded,
                renderer,
                device=chosen,
                batch_size=batch_size,
                mode=engine_mode,
            )
            for key, answer in _ask(engine, missing, asked.queries, temperatures, entry.name):
                if answer.error is not None and not answers_with_error:
                    logger.warning("first answer that failed: %s", answer.error)
                answers_with_error += answer.error is not None
                store.add(key, answer)
                answers[key] = answer
            report = engine.report()
    responses = make_responses(requests, asked.keys, unique, stored, answers)
    manifest = {
        "model": entry.name,
        "model_digest": digest,
        "store": store.digest,
        "skipped_store_parts": store.skipped_parts,
        "semantics": SEMANTICS,
        "dtype": entry.dtype,
        "attention": entry.attention,
        "processor": loaded.settings(),
        "temperatures": list(temperatures),
        "answers": {"stored": len(known), "asked": len(missing)},
        "errors": len(requests) - responses["error"].null_count,
        "inference_modes": count_values(responses["inference_mode"]),
        "engine": report,
        **_label_notes(asked),
        "libraries": library_versions(),
    }
    return ShardAnswers(responses, manifest)


def check_errors(requests: pa.Table, responses: pa.Table, tolerated: float, model: str) -> None:
    """Raise InferenceError when more than a share of the images has an answer that failed.

    `requests` and `responses` are in the same order; `tolerated` is between 0 and 1. Without this
    a disk that was away for a minute would become a finished result about fewer images.
    """
    failed = pc.is_valid(responses["error"])
    images = pc.count_distinct(requests["sample_id"].cast(pa.string())).as_py()
    lost = pc.unique(requests["sample_id"].cast(pa.string()).filter(failed))
    if len(lost) > tolerated * images:
        first = responses["error"].filter(failed)[0].as_py()
        raise InferenceError(
            f"{model}: {len(lost)} of {images} images have failed answers (first: {first}). "
            f"Mend the cause and run again; stored answers are reused."
        )


def _render_all(
    requests: pa.Table,
    contexts: pa.Table | None,
    label_sets: Mapping[str, Sequence[str]],
    temperatures: Sequence[float],
    loaded: LoadedProcessor,
    renderer: ChatRenderer,
) -> _Asked:
    asked = _Asked()
    for query in make_queries(requests, contexts, label_sets):
        prompt = renderer.render(query.turns, query.assistant_prefix, query.rendering)
        tokens = renderer.label_tokens(prompt, query.labels)
        key = answer_key(query, prompt, tokens.ids, temperatures)
        asked.keys.append(key)
        asked.queries.setdefault(key, query)
        if query.labels:
            asked.tokens.add((query.labels, tokens))
    _check_stated_ids(asked, loaded)
    return asked


def _within_context(
    stored: pa.Table, unique: Sequence[bytes], asked: _Asked, limit: int | None
) -> pa.Table:
    """Return the stored answers that this entry's context could have given; it may be shorter."""
    if limit is None or not len(stored):
        return stored
    rooms = [
        query.max_new_tokens if query.mode == "generate" else 0
        for query in (asked.queries[unique[row]] for row in stored["row"].to_pylist())
    ]
    lengths = pc.add(pc.fill_null(stored["prompt_tokens"], 0), pa.array(rooms, pa.int32()))
    return stored.filter(pc.less_equal(lengths, limit))


def _check_stated_ids(asked: _Asked, loaded: LoadedProcessor) -> None:
    entry, decode = loaded.entry, loaded.processor.tokenizer.decode
    for labels, tokens in asked.tokens:
        if entry.yes_id is not None and entry.yes_form in labels:
            found = tokens.ids[labels.index(entry.yes_form)]
            check_stated_id(
                entry.name, entry.yes_form, entry.yes_id, found, lambda token: str(decode([token]))
            )


def _label_notes(asked: _Asked) -> dict[str, Any]:
    ids: dict[str, set[int]] = {}
    merged: set[str] = set()
    shared: set[tuple[str, ...]] = set()
    for labels, tokens in asked.tokens:
        for label, token, is_merged in zip(labels, tokens.ids, tokens.merged, strict=True):
            ids.setdefault(label, set()).add(token)
            if is_merged:
                merged.add(label)
        shared.update(tuple(group) for group in shared_labels(labels, tokens.ids))
    return {
        "label_tokens": {label: sorted(tokens) for label, tokens in ids.items()},
        "labels_merged_with_prompt": sorted(merged),
        "labels_with_one_token": sorted(map(list, shared)),
    }


def _ask(
    engine: Engine,
    keys: Sequence[bytes],
    queries: Mapping[bytes, Query],
    temperatures: Sequence[float],
    model: str,
) -> Iterator[tuple[bytes, Answer]]:
    key_of = {queries[key].request_id: key for key in keys}
    to_score = (queries[key] for key in keys if queries[key].mode == "score")
    to_generate = (queries[key] for key in keys if queries[key].mode == "generate")
    answers = itertools.chain(engine.score(to_score, temperatures), engine.generate(to_generate))
    progress = tqdm(
        answers, total=len(keys), desc=model, unit=" answers", file=sys.stderr, mininterval=5
    )
    for answer in progress:
        if answer.request_id not in key_of:
            raise InferenceError(
                f"{model}: the engine answered {answer.request_id} twice or unasked. "
                f"Report it with this model's family; nothing wrong was stored."
            )
        yield key_of.pop(answer.request_id), answer
    if key_of:
        raise InferenceError(
            f"{model}: the engine left {len(key_of)} of {len(keys)} questions unanswered. "
            f"Run again; the stored answers are reused."
        )
