"""What drawn demonstrations change: gaps on revealed answers, paired by image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bicle_drawn import both, pick
from bicle_samples import ENTRY, WORDS, Row, items, respond
from scipy.stats import false_discovery_control

from vlmfair.papers.vl_bicle.contexts import shared_contexts, zero_shot_contexts
from vlmfair.papers.vl_bicle.judge import judge_captions
from vlmfair.papers.vl_bicle.measure import measure_model
from vlmfair.papers.vl_bicle.measure_mitigation import measure_mitigation
from vlmfair.papers.vl_bicle.plan import plan_task
from vlmfair.papers.vl_bicle.synthetic_items import share_pool

SHOTS, RUNS = (0, 2, 4), 2
Says = Callable[[Row], str | None]


def judgements(say: Says, *, queries: int = 40, encoder: Any = None) -> pa.Table:
    """Judged captions with photographs and with drawn images, in MS and FS."""
    own = items("coco_bias", queries=queries)
    pool = share_pool(own, both(own))
    contexts = [
        shared_contexts(one, setting, run, shots=SHOTS, seed=0, image_source=source)
        for source, one in pool.items.items()
        for setting in ("MS", "FS")
        for run in range(1, RUNS + 1)
    ]
    plan = plan_task(
        own,
        ENTRY,
        [zero_shot_contexts(own), *contexts],
        shots=SHOTS,
        images_per_shard=10**6,
        max_new_tokens=8,
    )
    responses = respond(plan.requests, say)
    return judge_captions(plan.requests, responses, {}, WORDS, items=own, encoder=encoder)


def number_of(request: Row) -> int:
    return int(request["sample_id"][-3:])


NOUN = {"Male": "man", "Female": "woman"}
OTHER = {"Male": "woman", "Female": "man"}


def errs(men: float, women: float, neutral: float = 0.0, seed: int = 0) -> Says:
    """Captions with the wrong gender for so many of men and women, and without one for so many."""
    random = np.random.default_rng(seed)

    def say(request: Row) -> str:
        if random.random() < neutral:
            return "A person."
        wrong = random.random() < (men if request["gender"] == "Male" else women)
        return f"A {(OTHER if wrong else NOUN)[request['gender']]}."

    return say


def by_source(**says: Says) -> Says:
    return lambda request: says[request["image_source"]](request)


def test_the_gap_is_that_of_answers_that_reveal_a_gender_over_runs() -> None:
    # Of 40 men and 40 women: 8 and 0 wrong on photographs, 2 and 4 on flux's images; sd35l's
    # answers for the first 20 of each gender reveal nothing.
    def wrong(request: Row, men: int, women: int) -> bool:
        first = {"Male": 19, "Female": 19 + 40}[request["gender"]]
        limit = men if request["gender"] == "Male" else women
        return number_of(request) - first < limit

    def say(request: Row) -> str:
        source = request["image_source"]
        first = {"Male": 19, "Female": 19 + 40}[request["gender"]]
        if source == "sd35l" and number_of(request) - first < 20:
            return "A person."
        limits = {"real": (8, 0), "flux": (2, 4), "sd35l": (25, 20)}[source]
        noun = (OTHER if wrong(request, *limits) else NOUN)[request["gender"]]
        return f"A {noun}."

    metrics = measure_mitigation(judgements(say), model="made-up", bootstraps=50, seed=3)

    cell = {"setting": "MS", "shots": 4, "group": "Male-Female"}
    size = {
        source: pick(metrics, "revealed_gap_abs", image_source=source, **cell)
        for source in ("real", "flux", "sd35l")
    }
    # 100 * 8/40; |2/40 - 4/40|; of the 20 of each that reveal something, 5 men.
    assert [size[source]["value"] for source in size] == pytest.approx([20.0, 5.0, 25.0])
    assert [size[source]["n"] for source in size] == [40, 40, 20]
    changes = [
        pick(metrics, "revealed_gap_change", image_source=source, **cell)["value"]
        for source in ("flux", "sd35l")
    ]
    assert changes == pytest.approx([-15.0, 5.0])
    everybody = {**cell, "group": "all"}
    reveal = pick(metrics, "reveal_change", image_source="sd35l", **everybody)
    assert reveal["value"] == pytest.approx(-50.0)
    assert reveal["n"] == 80
    assert pick(metrics, "reveal_change", image_source="flux", **everybody)["value"] == 0
    # 6 of 80 wrong against 8 of 80.
    errors = pick(metrics, "error_change", image_source="flux", **everybody)
    assert errors["value"] == pytest.approx(100 * (6 - 8) / 80)
    assert "clipscore_change" not in metrics["metric"].to_pylist()


def test_the_gap_over_runs_is_the_mean_of_signed_gaps() -> None:
    # Men always wrong in run 1, women in run 2: gaps of +100 and -100 cancel.
    def say(request: Row) -> str:
        wrong = (request["gender"] == "Male") == (request["run"] == 1)
        return f"A {(OTHER if wrong else NOUN)[request['gender']]}."

    metrics = measure_mitigation(judgements(say, queries=4), model="m", bootstraps=0)

    values = metrics.to_pandas().query("metric == 'revealed_gap_abs'")["value"]
    assert set(values) == {0.0}


def test_equal_answers_change_nothing_in_any_resample() -> None:
    def say(request: Row) -> str:
        wrong = number_of(request) % 3 == 0
        return f"A {(OTHER if wrong else NOUN)[request['gender']]}."

    metrics = measure_mitigation(judgements(say), model="made-up", bootstraps=100)

    changes = metrics.to_pandas().query("metric == 'revealed_gap_change'")
    assert len(changes) == 2 * 2 * 2
    # Paired by image: not only the value, the whole interval is 0.
    assert (changes[["value", "ci_low", "ci_high"]] == 0.0).all(axis=None)
    assert (changes["p"] == 1.0).all()


def test_a_real_improvement_is_found_and_corrected_for_the_number_of_tests() -> None:
    say = by_source(real=errs(0.5, 0.0, seed=1), flux=errs(0.05, 0.05), sd35l=errs(0.5, 0.0))

    metrics = measure_mitigation(judgements(say, queries=60), model="made-up", bootstraps=400)

    changes = metrics.to_pandas().query("metric == 'revealed_gap_change'")
    flux = changes[changes["image_source"] == "flux"]
    assert (flux["ci_high"] < 0).all()
    assert (flux["p_adjusted"] < 0.05).all()
    assert (changes.query("image_source == 'sd35l'")["p_adjusted"] > 0.05).all()
    expected = false_discovery_control(changes["p"])
    assert changes["p_adjusted"].to_numpy() == pytest.approx(expected)


def test_nobody_revealed_has_no_gap_and_no_change() -> None:
    neutral = lambda request: "A person."  # noqa: E731
    say = by_source(real=errs(0.2, 0.1), flux=neutral, sd35l=errs(0.1, 0.2))

    metrics = measure_mitigation(judgements(say, queries=10), model="made-up", bootstraps=20)

    found = metrics.to_pandas().query("image_source == 'flux'")
    gaps = found[found["metric"].isin(["revealed_gap_abs", "revealed_gap_change"])]
    assert gaps["value"].isna().all()
    assert (gaps["n"] == 0).all()
    assert found.query("metric == 'reveal_change'")["value"].notna().all()


def test_without_drawn_images_or_without_photographs_there_are_no_rows() -> None:
    table = judgements(errs(0.2, 0.1), queries=4)
    source = table["image_source"].cast(pa.string())
    real = table.filter(pa.compute.equal(source, "real"))
    zero = pa.compute.equal(table["shots"], 0)
    unreal = table.filter(pa.compute.or_(zero, pa.compute.not_equal(source, "real")))

    assert len(measure_mitigation(real, model="made-up", bootstraps=5)) == 0
    assert len(measure_mitigation(unreal, model="made-up", bootstraps=5)) == 0


def test_mitigation_agrees_with_the_rates_of_the_model_and_ignores_the_order_of_rows() -> None:
    table = judgements(errs(0.3, 0.1, neutral=0.3), queries=20)
    shuffled = table.take(np.random.default_rng(1).permutation(len(table)))

    own = measure_mitigation(table, model="made-up", bootstraps=30)
    again = measure_mitigation(shuffled, model="made-up", bootstraps=30)
    rates = measure_model({"coco_bias": table}, model="made-up", bootstraps=0)

    assert own.equals(again)
    for setting in ("MS", "FS"):
        for source in ("real", "flux", "sd35l"):
            keys = {"setting": setting, "shots": 2, "image_source": source}
            gap = pick(rates, "revealed_error_rate", group="Male-Female", run=0, **keys)
            size = pick(own, "revealed_gap_abs", **keys)
            assert size["value"] == pytest.approx(abs(gap["value"]))
            assert size["n"] == gap["n"]
