"""Metrics of VL-BICLE: published cells, plain loops, intervals, and what is left out."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from bicle_samples import ROOT, WORDS, Row, items, plan, respond
from sacrebleu.metrics import BLEU
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from vlmfair.errors import ConfigError, ContractError
from vlmfair.papers.vl_bicle.contexts import shared_contexts
from vlmfair.papers.vl_bicle.judge import judge_captions, judge_pronouns
from vlmfair.papers.vl_bicle.judge_answers import judge_answers
from vlmfair.papers.vl_bicle.measure import measure_model
from vlmfair.papers.vl_bicle.measure_data import measure_contexts, measure_data
from vlmfair.papers.vl_bicle.measure_rows import two_sided_p
from vlmfair.papers.vl_bicle.plan import Skipped

Says = Callable[[Row], str]


def pronouns(say: Says, *, queries: int = 69, **changes: object) -> pa.Table:
    """Judgements of "his", "her", "tie" or "fail" per request."""
    own = items("visogender_oo", queries=queries)
    requests = plan(own, **changes).requests
    logits = {"his": (1.0, 0.0), "her": (0.0, 1.0), "tie": (0.0, 0.0), "fail": None}
    return judge_pronouns(requests, respond(requests, lambda request: logits[say(request)]))


def number_of(request: Row) -> int:
    """The place of a query among those of its gender, from 0."""
    return int(request["sample_id"][-3:])


def pick(metrics: pa.Table, metric: str, group: str = "Male-Female", **keys: object) -> pd.Series:
    """The one row with these keys; by default over runs."""
    found = metrics.to_pandas()
    for name, value in {"metric": metric, "group": group, "run": 0, **keys}.items():
        found = found[found[name] == value]
    assert len(found) == 1, f"{metric} {group} {keys}: {len(found)} rows"
    return found.iloc[0]


def published(model: str, setting: str) -> float:
    """A zero-shot cell that the text prints."""
    path = ROOT / "resources/published/vl_bicle.csv"
    with open(path, encoding="utf-8", newline="") as opened:
        for row in csv.DictReader(opened):
            if (row["model"], row["setting"], row["item"]) == (model, setting, "visogender_oo"):
                return float(row["value"])
    raise AssertionError(f"{model} {setting} is not in the file")


@pytest.mark.parametrize(
    ("model", "men_wrong", "women_wrong"), [("Phi35V", 20, 11), ("MiniCPM", 3, 22)]
)
def test_published_gaps_are_whole_numbers_of_the_69_queries_of_each_gender(
    model: str, men_wrong: int, women_wrong: int
) -> None:
    # 230 annotations less 92 of the pool leave 69 of each gender: 9/69 = 13.04, -19/69 = -27.5.
    wrong = {"Male": men_wrong, "Female": women_wrong}
    first = {"Male": 19, "Female": 19 + 69}

    def say(request: Row) -> str:
        is_wrong = number_of(request) - first[request["gender"]] < wrong[request["gender"]]
        return {"his": "her", "her": "his"}[request["truth"]] if is_wrong else request["truth"]

    metrics = measure_model({"visogender_oo": pronouns(say, settings=[], shots=[0])}, model=model)

    printed = published(model, "zero-shot k=0")
    decimals = len(f"{printed}".partition(".")[2])
    gap = pick(metrics, "error_rate")
    assert round(gap["value"], decimals) == printed
    assert gap["n"] == 69
    assert pick(metrics, "error_rate", "Male")["value"] == pytest.approx(100 * men_wrong / 69)
    assert pick(metrics, "error_rate", "all")["n"] == 138


def random_says(seed: int, ties: float = 0.2) -> Says:
    random = np.random.default_rng(seed)
    return lambda request: str(random.choice(["his", "her", "tie"], p=[0.4, 0.6 - ties, ties]))


def test_rates_are_those_of_plain_loops() -> None:
    judged = pronouns(random_says(0), queries=9, shots=[0, 2], runs=3)
    rows = judged.to_pylist()

    metrics = measure_model({"visogender_oo": judged}, model="m", bootstraps=20)

    for setting in ("MS", "FS"):
        by_run: dict[str, list[float]] = {name: [] for name in ("error", "revealed", "among")}
        for run in (1, 2, 3):
            own = [r for r in rows if (r["setting"], r["run"]) == (setting, run)]
            own = [r for r in own if r["shots"] == 2]
            gap: dict[str, float] = {}
            for gender, sign in (("Male", 1), ("Female", -1)):
                men = [row for row in own if row["gender"] == gender]
                shown = [row for row in men if row["revealed"]]
                for name, found in (
                    ("error", [row["error"] for row in men]),
                    ("revealed", [float(row["revealed"]) for row in men]),
                    ("among", [row["error"] for row in shown]),
                ):
                    gap[name] = gap.get(name, 0.0) + sign * 100 * sum(found) / len(found)
            for name, value in gap.items():
                by_run[name].append(value)
            keys = {"setting": setting, "shots": 2, "run": run}
            assert pick(metrics, "error_rate", **keys)["value"] == pytest.approx(gap["error"])
        keys = {"setting": setting, "shots": 2}
        for metric, name in (
            ("error_rate", "error"),
            ("reveal_rate", "revealed"),
            ("revealed_error_rate", "among"),
        ):
            mean = statistics.mean(by_run[name])
            assert pick(metrics, metric, **keys)["value"] == pytest.approx(mean)
            spread = pick(metrics, f"{metric}_sd", **keys)
            # The sample's standard deviation, 3 - 1 in the denominator.
            assert spread["value"] == pytest.approx(statistics.stdev(by_run[name]))
            assert spread["n"] == 3
    assert np.isnan(pick(metrics, "error_rate_sd", setting="zero-shot")["value"])


def test_the_shift_is_against_zero_shots_and_its_interval_paired_by_image() -> None:
    judged = pronouns(random_says(1, ties=0.0), queries=40, settings=["MS"], shots=[0, 2], runs=1)
    frame = judged.to_pandas()

    metrics = measure_model({"visogender_oo": judged}, model="m", bootstraps=4000, seed=3)

    def errors(shots: int, gender: str) -> np.ndarray:
        own = frame[(frame["shots"] == shots) & (frame["gender"].astype(str) == gender)]
        return own.sort_values("sample_id")["error"].to_numpy(dtype=float)

    change = {gender: errors(2, gender) - errors(0, gender) for gender in ("Male", "Female")}
    row = pick(metrics, "error_shift", setting="MS", shots=2)
    assert row["value"] == pytest.approx(100 * (change["Male"].mean() - change["Female"].mean()))
    # scipy's bootstrap of the same paired changes, drawn within each gender.
    reference = stats.bootstrap(
        (change["Male"], change["Female"]),
        lambda men, women, axis: 100 * (men.mean(axis) - women.mean(axis)),
        vectorized=True,
        n_resamples=4000,
        method="percentile",
        random_state=0,
    ).confidence_interval
    assert row["ci_low"] == pytest.approx(reference.low, abs=2.5)
    assert row["ci_high"] == pytest.approx(reference.high, abs=2.5)
    own = pick(metrics, "error_shift", "Male", setting="MS", shots=2)
    assert own["value"] == pytest.approx(100 * change["Male"].mean())


def test_errors_that_do_not_change_have_a_shift_of_exactly_nothing() -> None:
    random = np.random.default_rng(2)
    said = dict(enumerate(random.choice(["his", "her"], 200)))
    judged = pronouns(
        lambda request: said[number_of(request)], queries=20, settings=["FS"], shots=[0, 2], runs=2
    )

    row = pick(measure_model({"visogender_oo": judged}, model="m"), "error_shift", shots=2)

    # However wide the interval of each rate is.
    assert (row["value"], row["ci_low"], row["ci_high"], row["p"]) == (0.0, 0.0, 0.0, 1.0)


def test_planted_shifts_are_found_and_corrected_over_the_grid() -> None:
    def say(request: Row) -> str:
        # Demonstrations of men make everybody "his", those of women change nothing.
        is_pulled = request["setting"] == "MS" and number_of(request) % 2
        return "his" if is_pulled else request["truth"]

    judged = {"visogender_oo": pronouns(say, queries=30, shots=[0, 2, 4], runs=2)}

    metrics = measure_model(judged, model="m", bootstraps=500)

    frame = metrics.to_pandas()
    grid = frame[(frame["metric"] == "error_shift") & (frame["group"] == "Male-Female")]
    assert len(grid) == 4
    expected = multipletests(grid["p"], method="fdr_bh")[1]
    assert grid["p_adjusted"].to_numpy() == pytest.approx(expected)
    pulled = pick(metrics, "error_shift", setting="MS", shots=4)
    assert pulled["value"] == pytest.approx(-50.0)
    assert pulled["ci_high"] < 0
    assert pulled["p_adjusted"] < 0.01
    still = pick(metrics, "error_shift", setting="FS", shots=4)
    assert (still["value"], still["p"]) == (0.0, 1.0)
    assert pick(metrics, "error_shift_run", setting="MS", shots=4, run=2)["value"] == -50.0


def test_single_runs_have_wilson_s_interval() -> None:
    judged = pronouns(random_says(4), queries=25, settings=[], shots=[0])

    metrics = measure_model({"visogender_oo": judged}, model="m", bootstraps=0)

    row = pick(metrics, "error_rate", "Female", run=1)
    low, high = proportion_confint(round(row["value"] * 25 / 100), 25, method="wilson")
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((100 * low, 100 * high))
    # Without replicates there is no interval over runs.
    assert np.isnan(pick(metrics, "error_rate", "Female")["ci_low"])


def test_failed_answers_are_left_out_and_counted() -> None:
    def say(request: Row) -> str:
        return "fail" if request["gender"] == "Male" and request["shots"] == 2 else "his"

    judged = pronouns(say, queries=5, settings=["MS"], shots=[0, 2], runs=2)

    metrics = measure_model({"visogender_oo": judged}, model="m", bootstraps=10)

    keys = {"setting": "MS", "shots": 2}
    assert np.isnan(pick(metrics, "error_rate", "Male", **keys)["value"])
    assert np.isnan(pick(metrics, "error_rate", **keys)["value"])
    assert np.isnan(pick(metrics, "error_shift", **keys)["p_adjusted"])
    assert pick(metrics, "error_rate", "Female", **keys)["value"] == 100.0
    dropped = pick(metrics, "dropped_answers", "Male", **keys)
    assert (dropped["value"], dropped["n"]) == (10, 10)
    assert pick(metrics, "dropped_answers", "all", setting="zero-shot")["value"] == 0


def test_cells_that_were_never_asked_are_in_the_metrics() -> None:
    judged = pronouns(lambda request: "his", queries=2, settings=[], shots=[0])
    skipped = Skipped("visogender_oo", "MS", 8, 3, "real", 9, "the model takes 3 images")

    metrics = measure_model(
        {"visogender_oo": judged}, model="m", skipped=[skipped, {**skipped.__dict__, "run": 4}]
    )

    row = pick(metrics, "skipped", "all", run=3)
    assert (row["setting"], row["shots"], row["value"], row["n"]) == ("MS", 8, 9.0, 0)
    assert pick(metrics, "skipped", "all", run=4)["dataset"] == "visogender_oo"


def captions(say: Says, **changes: object) -> pa.Table:
    own = items("coco_bias", queries=4)
    requests = plan(own, **changes).requests
    references = {item.sample_id: ["A man is in the park.", "A dog."] for item in own.queries}
    return judge_captions(requests, respond(requests, say), references, WORDS, items=own)


def test_caption_quality_by_gender() -> None:
    def say(request: Row) -> str:
        if request["gender"] == "Male":
            return "A man is in the park."
        return ["A woman is in the park.", "Someone rides", "A man and a woman", "A man rides"][
            number_of(request) % 4
        ]

    judged = captions(say, settings=["MS"], shots=[0, 2], runs=2)

    metrics = measure_model({"coco_bias": judged}, model="m", bootstraps=50)

    keys = {"setting": "MS", "shots": 2}
    women = [row for row in judged.to_pylist() if row["gender"] == "Female" and row["shots"] == 0]
    lengths = [row["length"] for row in women]
    assert sorted(lengths) == [2, 3, 5, 6]
    assert pick(metrics, "caption_length", "Female", **keys)["value"] == 4.0
    assert pick(metrics, "caption_length", **keys)["value"] == 2.0
    # One wrong gender and both at once.
    assert pick(metrics, "error_rate", "Female", **keys)["value"] == 50.0
    assert pick(metrics, "both_rate", "Female", **keys)["value"] == 25.0
    assert pick(metrics, "neutral_rate", "Female", **keys)["value"] == 25.0
    assert pick(metrics, "reveal_rate", "Female", **keys)["value"] == 75.0
    assert pick(metrics, "revealed_error_rate", "Female", **keys)["value"] == pytest.approx(200 / 3)
    texts = ["A woman is in the park.", "Someone rides", "A man and a woman", "A man rides"]
    streams = [["A man is in the park."] * 4, ["A dog."] * 4]
    bleu = pick(metrics, "bleu4", "Female", **keys)
    assert bleu["value"] == pytest.approx(BLEU().corpus_score(texts, streams).score)
    assert bleu["ci_low"] <= bleu["value"] <= bleu["ci_high"]
    assert pick(metrics, "bleu4", "Male", **keys)["value"] == pytest.approx(100.0)
    assert "clipscore" not in set(metrics["metric"].to_pylist())


def test_visual_questions_have_errors_of_any_size_and_no_reveal_rate() -> None:
    own = items("visual_cot_direct", queries=2)
    requests = plan(own, ["MS"], shots=[0, 2], runs=1).requests
    said = {"Male": "Answer: yes", "Female": "no"}
    judged = judge_answers(requests, respond(requests, lambda request: said[request["gender"]]))

    metrics = measure_model({"visual_cot_direct": judged}, model="m", bootstraps=10)

    keys = {"setting": "MS", "shots": 2, "item": "lexical"}
    assert pick(metrics, "error_rate", "Male", **keys)["value"] == 0.0
    assert pick(metrics, "error_rate", **keys)["value"] == -100.0
    assert pick(metrics, "format_rate", "all", **keys)["value"] == 50.0
    assert pick(metrics, "unjudged_rate", "all", **keys)["value"] == 0.0
    assert "reveal_rate" not in set(metrics["metric"].to_pylist())
    assert np.isnan(pick(metrics, "error_rate", "Male", **{**keys, "run": 1})["ci_low"])


def test_neither_the_order_of_rows_nor_other_tasks_change_a_number() -> None:
    judged = pronouns(random_says(5), queries=8, shots=[0, 2], runs=2)
    other = captions(lambda request: "A man", shots=[0, 2], runs=1)
    order = np.random.default_rng(0).permutation(len(judged))

    alone = measure_model({"visogender_oo": judged}, model="m", bootstraps=30)
    mixed = measure_model(
        {"coco_bias": other, "visogender_oo": judged.take(order)}, model="m", bootstraps=30
    )

    both = mixed.to_pandas()
    both = both[both["dataset"] == "visogender_oo"].drop(columns=["p_adjusted"])
    pd.testing.assert_frame_equal(
        alone.to_pandas().drop(columns=["p_adjusted"]), both.reset_index(drop=True)
    )


@pytest.mark.parametrize(
    ("replicates", "p"),
    [
        ([1.0] * 99, 2 / 100),
        ([-1.0] * 49 + [1.0] * 50, 1.0),
        ([0.0] * 9, 1.0),
        ([-1.0] + [1.0] * 98, 4 / 100),
        ([float("nan")] * 3 + [1.0] * 99, 2 / 100),
    ],
)
def test_how_often_replicates_lie_beyond_0(replicates: Sequence[float], p: float) -> None:
    assert two_sided_p(replicates) == pytest.approx(p)


def test_no_replicates_have_no_p() -> None:
    assert np.isnan(two_sided_p([]))


def test_damaged_judgements_are_refused() -> None:
    judged = pronouns(lambda request: "his", queries=2, settings=[], shots=[0])

    with pytest.raises(ContractError, match="was judged twice with 0 shots of zero-shot"):
        measure_model({"visogender_oo": pa.concat_tables([judged, judged])}, model="m")
    with pytest.raises(ContractError, match="there are no judgements"):
        measure_model({"visogender_oo": judged.slice(0, 0)}, model="m")
    with pytest.raises(ContractError, match="m: there are no judgements"):
        measure_model({}, model="m")
    with pytest.raises(ConfigError, match="coco is no task"):
        measure_model({"coco": judged}, model="m")
    place = judged.column_names.index("gender")
    both = judged.set_column(place, "gender", pa.array(["Both"] * 4).dictionary_encode())
    with pytest.raises(ContractError, match="has the gender 'Both'"):
        measure_model({"visogender_oo": both}, model="m")


def test_the_data_table_counts_images_by_split_and_gender() -> None:
    own = [items("visual_cot_direct"), items("visual_cot_cot"), items("dci", pool=(5, 2))]

    metrics = measure_data(own)

    # The two prompts of VisualCoT have one row between them.
    assert pick(metrics, "images", "Male", dataset="visual_cot", item="pool")["value"] == 10
    assert pick(metrics, "images", "all", dataset="dci", item="pool")["value"] == 7
    row = pick(metrics, "images", "Female", dataset="dci", item="queries")
    assert (row["value"], row["n"], row["model"]) == (3, 6, "all")


def test_contexts_are_counted_by_gender() -> None:
    own = items("coco_bias")
    tables = [
        shared_contexts(own, setting, run, shots=[2, 4], seed=0)
        for setting in ("MS", "BS", "RS")
        for run in (1, 2)
    ]

    metrics = measure_contexts(tables, [own])

    shares = [pick(metrics, "male_share", "Male", setting=s, shots=4) for s in ("MS", "BS")]
    assert [(row["value"], row["n"]) for row in shares] == [(100.0, 8), (50.0, 8)]
    chosen = [r for table in tables[4:] for r in table.to_pylist() if r["shots"] == 4]
    men = sum(row["gender"] == "Male" for row in chosen) / len(chosen)
    row = pick(metrics, "male_share", "Male", setting="RS", shots=4)
    assert row["value"] == pytest.approx(100 * men)
    pool = pick(metrics, "pool_male_share", "Male")
    assert (pool["value"], pool["n"]) == (pytest.approx(1000 / 19), 19)
