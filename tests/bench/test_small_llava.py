"""The small model's ways of asking agree, so that what the bench compares is the same work."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from vlmfair.bench import resume
from vlmfair.bench.cpu_time import compare_facet, compare_gras
from vlmfair.bench.icl_time import compare_icl, conversations
from vlmfair.bench.memory import score_packed, score_repeated
from vlmfair.bench.repeated_batch import repeated_logits
from vlmfair.bench.small_llava import Size, SmallLlava, load_small_llava, write_small_llava
from vlmfair.inference.engine import open_engine
from vlmfair.inference.prepare import Prepared, Preparer
from vlmfair.models.chat import ChatRenderer

TINY = Size(hidden=32, layers=2, heads=2, vision_hidden=32, patches=3)
PROMPTS = {
    "first": (1, 5, 32_000, 10, 11, 12, 13),
    "second": (1, 5, 32_000, 10, 11, 14, 15, 16, 17, 13),
    "third": (1, 5, 32_000, 10, 20, 13),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("small")
    write_small_llava(written, TINY)
    return written


@pytest.fixture(scope="module")
def small(folder: Path) -> SmallLlava:
    return load_small_llava(folder, PROMPTS)


def test_an_image_takes_the_place_of_its_placeholder(small: SmallLlava) -> None:
    (query, *_) = small.queries(small.draw_image(0))

    prepared = Preparer(small.loaded, small.renderer()).prepare(query, "any")

    assert isinstance(prepared, Prepared)
    assert prepared.ids == (1, 5, *[32_000] * 9, 10, 11, 12, 13)


def test_a_padded_batch_of_repeated_beginnings_gives_the_engines_scores(small: SmallLlava) -> None:
    queries = small.queries(small.draw_image(0))
    preparer = Preparer(small.loaded, small.renderer())
    prompts = [preparer.prepare(query, "any") for query in queries]

    logits = repeated_logits(
        small.loaded.family, small.model, [p for p in prompts if isinstance(p, Prepared)], 2
    )

    for mode in ("full_forward", "packed"):
        engine = open_engine(small.loaded, small.renderer(), model=small.model, mode=mode)
        answers = {answer.request_id: answer for answer in engine.score(queries, (1.0,))}
        for query, row in zip(queries, logits, strict=True):
            found = answers[query.request_id]
            np.testing.assert_allclose(found.logits, row[[3869, 1939]], atol=1e-5)
            np.testing.assert_allclose(found.logsumexp, [row.logsumexp(-1)], atol=1e-5)


def test_what_is_measured_for_memory_runs(small: SmallLlava) -> None:
    score_packed(small)
    score_repeated(small)


def test_cpu_time_is_compared_for_scores_and_answers(folder: Path) -> None:
    scores = compare_gras(folder, PROMPTS, repeats=1)
    answers = compare_facet(folder, PROMPTS, repeats=1)

    assert scores["gras_cpu_questions"] == answers["facet_cpu_questions"] == 3
    assert scores["gras_cpu_ratio"] == pytest.approx(
        scores["gras_cpu_plain_seconds"] / scores["gras_cpu_seconds"]
    )


def test_captions_behind_shared_demonstrations_are_the_same_in_both_ways(small: SmallLlava) -> None:
    queries = conversations(small, itertools.count(1000), shots=3, queries=4)
    renderer = ChatRenderer(small.loaded.processor, small.loaded.family, "small")

    texts = []
    for mode in ("full_forward", "auto"):
        engine = open_engine(small.loaded, renderer, model=small.model, mode=mode)
        answers = {answer.request_id: answer for answer in engine.generate(queries)}
        texts.append([answers[query.request_id].text for query in queries])

    assert [len(query.images) for query in queries] == [4] * 4
    assert len({query.images[:3] for query in queries}) == 1, "all share the demonstrations"
    assert texts[0] == texts[1]


def test_captions_behind_demonstrations_are_timed(folder: Path) -> None:
    figures = compare_icl(folder)

    assert figures["icl_cpu_ratio_k8"] == pytest.approx(
        figures["icl_cpu_plain_seconds"] / figures["icl_cpu_seconds"]
    )


def test_a_shard_logs_each_answer_it_computes_once(root: Path, tmp_path: Path) -> None:
    # Two images, two traits, five templates; a second run finds all answers in the store.
    resources = root / "resources"
    questions = resume.prepare_shard(tmp_path, resources, images=2, traits=2)

    resume.answer(str(tmp_path), str(resources))
    first = resume.answers_computed(tmp_path)
    resume.answer(str(tmp_path), str(resources))

    assert questions == first == resume.answers_computed(tmp_path) == 20
