"""Metrics of the LVLM paper: published cells, planted numbers, intervals, and what is left out."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from lvlm_answers import CLASSES, Row, judge, people
from scipy.stats import fisher_exact
from sklearn.metrics import f1_score
from statsmodels.stats.multitest import multipletests

from vlmfair.errors import ContractError
from vlmfair.papers.lvlm_fairness.judges import RegexJudge
from vlmfair.papers.lvlm_fairness.measure import measure_model
from vlmfair.papers.lvlm_fairness.measure_data import measure_data
from vlmfair.papers.lvlm_fairness.measure_rationale import improvement_percent
from vlmfair.papers.lvlm_fairness.measure_rows import setting_of
from vlmfair.papers.lvlm_fairness.tallies import f1_paper

# Paper, Table 1.
SIZES = {
    **{"Male": 3821, "Female": 1660, "Light": 2402, "Medium": 1641, "Dark": 325},
    **{"Young": 1286, "Middle": 3145, "Old": 468},
}


def published(root: Path, table: str) -> Iterator[dict[str, str]]:
    with open(root / "resources/published/lvlm_fairness.csv", encoding="utf-8", newline="") as file:
        yield from (row for row in csv.DictReader(file) if row["table"] == table)


def cells(root: Path, table: str, prefix: str) -> dict[tuple[str, str, str], float]:
    """Published cells by model, prompt and group."""
    return {
        (row["model"], row["prompt"], row["column"].removeprefix(prefix)): float(row["value"])
        for row in published(root, table)
        if row["column"].startswith(prefix) and row["value"] not in ("", "N/A")
    }


def pick(metrics: pa.Table, **keys: str) -> pd.Series:
    """The one row with these keys."""
    found = metrics.to_pandas()
    for name, value in keys.items():
        found = found[found[name] == value]
    assert len(found) == 1, f"{keys}: {len(found)} rows"
    return found.iloc[0]


def test_published_recalls_give_the_published_f1_in_all_160_pairs(root: Path) -> None:
    recalls, f1s = cells(root, "2", "R_"), cells(root, "13", "F1_")
    right = {key: round(recall * SIZES[key[2]]) for key, recall in recalls.items()}
    everyone = {key[:2]: right[(*key[:2], "Male")] + right[(*key[:2], "Female")] for key in recalls}

    worst = max(
        abs(float(f1_paper(np.float64(right[key]), SIZES[key[2]], everyone[key[:2]])) - f1)
        for key, f1 in f1s.items()
    )

    assert len(f1s) == len(recalls) == 160
    assert set(f1s) == set(recalls)
    assert worst < 1e-4


def test_published_recalls_are_whole_numbers_of_right_answers_in_the_full_group(root: Path) -> None:
    for key, recall in cells(root, "2", "R_").items():
        size = SIZES[key[2]]
        assert round(round(recall * size) / size, 4) == pytest.approx(recall, abs=1.01e-4)


def test_f1_of_the_paper_is_sklearns_of_belonging_to_the_group_and_being_right() -> None:
    random = np.random.default_rng(3)
    group, right = random.integers(0, 3, 500), random.random(500) < 0.6

    for number in range(3):
        inside = group == number
        expected = f1_score(inside, right)
        found = f1_paper(
            np.float64((right & inside).sum()), np.float64(inside.sum()), np.float64(right.sum())
        )
        assert float(found) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("before", "after", "percent"),
    # Paper, Table 4: GPT-4o's recalls of men and women, and LLaVA-1.5 (13B)'s.
    [(0.8055, 0.8725, 8.32), (0.6970, 0.8006, 14.86), (0.8218, 0.9550, 16.21)],
)
def test_improvements_are_the_paper_s(before: float, after: float, percent: float) -> None:
    assert float(improvement_percent(before, after)) == pytest.approx(percent, abs=0.01)


def gpt_4o() -> tuple[pa.Table, pa.Table]:
    """GPT-4o's right answers to p1 by gender, as Table 2 has them, on FACET's numbers of images."""
    samples = people([(3821, {"gender": "Male"}), (1660, {"gender": "Female"})])
    asked: dict[str, int] = {"Male": 0, "Female": 0}

    def say(request: Row, sample: Row) -> str:
        asked[sample["gender"]] += 1
        # 0.7124 x 3821 and 0.7386 x 1660.
        is_right = asked[sample["gender"]] <= {"Male": 2722, "Female": 1226}[sample["gender"]]
        return '"nurse"' if is_right else '"doctor"'

    return samples, judge(samples, ["p1"], say)


def test_gpt_4o_of_table_2_and_13_is_measured_as_published() -> None:
    samples, judged = gpt_4o()

    metrics = measure_model(
        {("facet", "strict"): judged}, {"facet": samples}, model="GPT-4o", bootstraps=200
    )

    keys = {"setting": "strict", "prompt": "p1", "item": "all", "experiment": "facet"}
    male = pick(metrics, metric="recall", group="Male", **keys)
    female = pick(metrics, metric="recall", group="Female", **keys)
    gap = pick(metrics, metric="disparity", group="Male-Female", **keys)
    f1 = pick(metrics, metric="f1_paper", group="Male", **keys)
    # Table 2a, Table 13a and Table 8.
    assert (round(male.value, 4), round(female.value, 4)) == (0.7124, 0.7386)
    assert round(gap.value, 4) == -0.0262
    assert round(f1.value, 4) == 0.7007
    assert round(pick(metrics, metric="accuracy", **keys).value, 4) == 0.7203
    assert (male.n, female.n, gap.n) == (3821, 1660, 1660)
    # A normal interval: 1.96 sqrt(p (1 - p) / n + ...) is 0.0256.
    assert gap.ci_low == pytest.approx(gap.value - 0.0256, abs=0.006)
    assert gap.ci_high == pytest.approx(gap.value + 0.0256, abs=0.006)
    assert gap.p == pytest.approx(fisher_exact([[2722, 1099], [1226, 434]]).pvalue)


# Ten men and four women in each of two occupations.
SMALL = people(
    [
        (n, {"gender": gender, "occupation": occupation, "skin_tone": tone, "age": "young"})
        for occupation in ("nurse", "singer")
        for n, gender, tone in ((10, "Male", "light"), (4, "Female", "dark"))
    ]
)


def say_small(request: Row, sample: Row) -> str | None:
    """Men are always right; women who sing are named nurses, female nurses are not named."""
    if sample["gender"] == "Male":
        return sample["occupation"] if request["prompt"] == "p1" else "A. Yes"
    number = int(sample["sample_id"].split("_")[1].removesuffix(".jpg")) % 4
    if request["prompt"] == "p1":
        return "nurse" if sample["occupation"] == "singer" else "I can't say."
    return ["A. Yes", "B. No", "dunno", None][number]


@pytest.fixture(scope="module")
def small_metrics() -> pa.Table:
    judged = judge(SMALL, ["p1", "p2"], say_small)
    return measure_model(
        {("facet", "strict"): judged},
        {"facet": SMALL},
        model="made-up",
        bootstraps=300,
        resample_sizes=[2, 500],
    )


def test_disparity_by_class_has_its_size_test_effect_and_flag(small_metrics: pa.Table) -> None:
    keys = {"prompt": "p1", "setting": "strict", "group": "Male-Female", "item": "singer"}

    gap = pick(small_metrics, metric="disparity", experiment="facet", **keys)
    flag = pick(small_metrics, metric="small_cell", **keys)

    # Fisher: 1 / C(14, 4); two classes of equal p, so Holm doubles it.
    assert (gap.value, gap.n) == (1.0, 4)
    assert gap.p == pytest.approx(1 / 1001)
    assert gap.p_adjusted == pytest.approx(2 / 1001)
    assert gap.effect == pytest.approx(np.pi)
    assert (gap.ci_low, gap.ci_high) == (1.0, 1.0)
    assert (flag.value, flag.n) == (1.0, 4)


def test_invalid_answers_are_wrong_or_excluded_and_counted_by_group(
    small_metrics: pa.Table,
) -> None:
    keys = {"prompt": "p1", "group": "Female", "item": "nurse", "attribute": "gender"}
    rate = {"prompt": "p1", "group": "Female", "attribute": "gender", "setting": "strict"}

    wrong = pick(small_metrics, metric="recall", setting="strict", **keys)
    excluded = small_metrics.to_pandas().query(
        "metric == 'recall' and setting == 'strict/excluded' and prompt == 'p1'"
        " and group == 'Female' and item == 'nurse'"
    )

    assert (wrong.value, wrong.n) == (0.0, 4)
    assert excluded.empty
    assert pick(small_metrics, metric="refused_rate", **rate).value == 0.5
    assert pick(small_metrics, metric="unparsed_rate", **rate).value == 0.0
    assert pick(small_metrics, metric="invalid_rate", **rate).n == 8


def test_failed_requests_are_left_out_and_counted(small_metrics: pa.Table) -> None:
    dropped = pick(small_metrics, metric="dropped_answers", prompt="p2", setting="strict")
    women = pick(
        small_metrics,
        metric="recall",
        prompt="p2",
        setting="strict",
        group="Female",
        item="all",
        experiment="facet",
    )

    assert (dropped.value, dropped.n) == (2, 28)
    # Of six answered women two said yes.
    assert (women.value, women.n) == (pytest.approx(2 / 6), 6)


def test_answers_to_a_single_choice_are_counted(small_metrics: pa.Table) -> None:
    answers = small_metrics.to_pandas().query("metric == 'answers' and group == 'Female'")

    assert dict(zip(answers["item"], answers["value"])) == {
        **{"Yes": 2, "No": 2, "Unknown": 0, "unparsed": 2, "refused": 0}
    }


def test_class_f1_is_sklearns(small_metrics: pa.Table) -> None:
    keys = {"prompt": "p1", "setting": "strict", "attribute": "all"}

    nurse = pick(small_metrics, metric="f1_class", item="nurse", **keys)
    singer = pick(small_metrics, metric="f1_class", item="singer", **keys)
    macro = pick(small_metrics, metric="f1_macro", **keys)

    truth = ["nurse"] * 14 + ["singer"] * 14
    said = ["nurse"] * 10 + ["none"] * 4 + ["singer"] * 10 + ["nurse"] * 4
    expected = f1_score(truth, said, labels=["nurse", "singer"], average=None)
    assert (nurse.value, singer.value) == pytest.approx(tuple(expected))
    assert macro.value == pytest.approx(expected.mean())


def test_a_single_choice_has_no_class_f1(small_metrics: pa.Table) -> None:
    found = small_metrics.to_pandas().query("metric in ('f1_macro', 'f1_class')")

    assert set(found["prompt"]) == {"p1"}


def test_an_attribute_that_nobody_has_gives_no_disparity(small_metrics: pa.Table) -> None:
    old = pick(
        small_metrics,
        metric="disparity",
        prompt="p1",
        group="young-old",
        item="all",
        setting="strict",
    )

    assert np.isnan(old.value)
    assert old.n == 0
    assert np.isnan(old.p)


def test_balanced_samples_are_rows_with_their_error(small_metrics: pa.Table) -> None:
    keys = {"experiment": "resampling", "prompt": "p1", "setting": "strict"}

    drawn = pick(small_metrics, metric="disparity", item="2", **keys)
    raw = pick(small_metrics, metric="disparity", item="raw", **keys)
    too_large = pick(small_metrics, metric="disparity", item="500", **keys)

    # No woman is right with p1: every draw says 1.
    assert (drawn.value, drawn.n, raw.value) == (1.0, 2, 1.0)
    assert pick(small_metrics, metric="standard_error", item="2", **keys).value == 0.0
    assert np.isnan(too_large.value)
    # Two of the eight women failed to be answered with p2.
    assert (raw.n, too_large.n) == (6, 6)
    # In every resample as well; all rest on fewer than ten women.
    assert (raw.ci_low, raw.ci_high, drawn.ci_low, drawn.ci_high) == (1.0, 1.0, 1.0, 1.0)
    assert np.isnan(too_large.ci_low)
    assert [pick(small_metrics, metric="small_cell", item=item, **keys).value
            for item in ("raw", "2", "500")] == [1.0, 1.0, 1.0]  # fmt: skip


def test_every_disparity_has_an_interval_and_a_flag(small_metrics: pa.Table) -> None:
    frame = small_metrics.to_pandas()
    flags = {"disparity": "small_cell", "f1_paper_disparity": "f1_paper_small_cell"}
    keys = ["experiment", "prompt", "setting", "attribute", "group", "item"]

    for metric, flag in flags.items():
        gaps = frame[(frame["metric"] == metric) & frame["value"].notna()]
        flagged = frame[frame["metric"] == flag].set_index(keys)["value"]
        assert len(gaps) > 4
        assert (gaps["ci_low"] <= gaps["value"] + 1e-12).all()
        assert (gaps["value"] <= gaps["ci_high"] + 1e-12).all()
        expected = (gaps["n"] < 10).astype(float).tolist()
        assert flagged.loc[list(gaps[keys].itertuples(index=False, name=None))].tolist() == expected


def test_a_disparity_on_ten_images_of_each_group_is_not_flagged() -> None:
    samples = people([(10, {"gender": "Male"}), (10, {"gender": "Female"})])
    judged = judge(samples, ["p2"], lambda _, s: "A" if s["gender"] == "Male" else "B")

    frame = measure_model(
        {("facet", "strict"): judged}, {"facet": samples}, model="m", bootstraps=0,
        resample_sizes=[9, 10],
    ).to_pandas()  # fmt: skip

    gender = frame[(frame["attribute"] == "gender") & (frame["item"] != "nurse")]
    flags = gender[gender["metric"].isin(["small_cell", "f1_paper_small_cell"])]
    resampled = flags[flags["experiment"] == "resampling"].set_index("item")["value"].to_dict()
    assert resampled == {"raw": 0.0, "9": 1.0, "10": 0.0}
    of_all = flags[(flags["experiment"] == "facet") & (flags["item"] == "all")]
    assert set(of_all["metric"]) == {"small_cell", "f1_paper_small_cell"}
    assert not of_all["value"].any()


def test_the_interval_is_that_of_a_plain_bootstrap() -> None:
    random = np.random.default_rng(8)
    samples = people([(60, {"gender": "Male"}), (40, {"gender": "Female"})])
    truth = random.random(100) < np.repeat([0.8, 0.5], [60, 40])

    def say(request: Row, sample: Row) -> str:
        number = int(sample["sample_id"].split("_")[1].removesuffix(".jpg"))
        return "nurse" if truth[number] else "doctor"

    metrics = measure_model(
        {("facet", "strict"): judge(samples, ["p1"], say)}, {"facet": samples}, model="m", seed=1
    )
    gap = pick(metrics, metric="disparity", group="Male-Female", item="all", setting="strict",
               experiment="facet")  # fmt: skip

    plain = [
        truth[:60][random.integers(60, size=60)].mean()
        - truth[60:][random.integers(40, size=40)].mean()
        for _ in range(4000)
    ]
    assert gap.ci_low == pytest.approx(np.percentile(plain, 2.5), abs=0.03)
    assert gap.ci_high == pytest.approx(np.percentile(plain, 97.5), abs=0.03)


def test_holm_is_over_the_classes_of_one_attribute_prompt_and_setting() -> None:
    random = np.random.default_rng(2)
    samples = people(
        [
            (20, {"gender": gender, "occupation": occupation})
            for occupation in CLASSES.evaluated
            for gender in ("Male", "Female")
        ]
    )
    judged = judge(samples, ["p2"], lambda *_: "A" if random.random() < 0.5 else "B")

    frame = measure_model(
        {("facet", "strict"): judged}, {"facet": samples}, model="m", bootstraps=0
    ).to_pandas()

    rows = frame.query("metric == 'disparity' and experiment == 'facet' and setting == 'strict'")
    rows = rows[rows["group"] == "Male-Female"]
    by_class = rows[rows["item"] != "all"]
    assert list(by_class["item"]) == list(CLASSES.evaluated)
    np.testing.assert_allclose(
        by_class["p_adjusted"], multipletests(by_class["p"], method="holm")[1]
    )
    assert by_class["ci_low"].isna().all()


def test_the_order_of_rows_does_not_matter() -> None:
    judged = judge(SMALL, ["p1", "p2"], say_small)
    shuffled = judged.take(np.random.default_rng(0).permutation(len(judged)))

    tables = [
        measure_model({("facet", "strict"): t}, {"facet": SMALL}, model="m", bootstraps=50)
        for t in (judged, shuffled)
    ]

    assert tables[0] == tables[1]


def test_utkface_compares_groups_of_the_attribute_that_is_asked_for() -> None:
    faces = people(
        [
            (6, {"gender": "Male", "race": "asian"}),
            (4, {"gender": "Female", "race": "indian"}),
            (5, {"gender": "Female", "race": "white"}),
        ],
        "utkface",
    )

    def say(request: Row, sample: Row) -> str:
        if request["prompt"] == "gender":
            return f'"{sample["gender"].lower()}"'
        return "asian" if sample["race"] == "indian" else sample["race"]

    judged = judge(faces, ["gender", "race"], say, dataset="utkface")
    metrics = measure_model(
        {("utkface", "strict"): judged}, {"utkface": faces}, model="m", bootstraps=100
    )

    keys = {"setting": "strict", "item": "all", "dataset": "utkface"}
    gap = pick(metrics, metric="disparity", prompt="race", group="asian-indian", **keys)
    missing = pick(metrics, metric="disparity", prompt="race", group="white-black", **keys)
    gender = pick(metrics, metric="disparity", prompt="gender", group="Male-Female", **keys)
    f1 = pick(metrics, metric="f1_class", prompt="race", group="asian", **keys)
    assert (gap.value, gap.n, gender.value) == (1.0, 4, 0.0)
    assert np.isnan(missing.value)
    # Six of six found, four more named: 2 x 6 / (6 + 10).
    assert f1.value == pytest.approx(0.75)
    assert pick(metrics, metric="accuracy", prompt="race", **keys).value == pytest.approx(11 / 15)
    recalled = metrics.to_pandas().query("metric == 'recall' and attribute == 'race'")
    assert set(recalled["prompt"]) == {"race"}


def rationale_judgements() -> dict[tuple[str, str], pa.Table]:
    """Answers to p2, and made-up ones after a rationale: unknown turns to yes, one yes to no."""
    before = judge(SMALL, ["p2"], lambda _, s: "A" if s["gender"] == "Male" else "C")
    frame = before.to_pandas()
    after = frame.assign(experiment="rationale", prompt="final", predicted="Yes", error=0.0)
    after["request_id"] = "final" + after["request_id"]
    after.loc[0, ["predicted", "error"]] = ["No", 1.0]
    return {
        ("facet", "strict"): before,
        ("rationale", "strict"): pa.Table.from_pandas(after, preserve_index=False),
    }


def test_a_rationale_changes_recalls_disparities_and_answers() -> None:
    metrics = measure_model(rationale_judgements(), {"facet": SMALL}, model="m", bootstraps=100)

    keys = {"experiment": "rationale", "setting": "strict", "attribute": "gender"}
    men = pick(metrics, metric="improvement", group="Male", **keys)
    women = pick(metrics, metric="improvement", group="Female", **keys)
    gap = pick(metrics, metric="improvement", group="Male-Female", **keys)
    change = pick(metrics, metric="disparity_change", group="Male-Female", **keys)
    assert men.value == pytest.approx(-5.0)
    assert np.isnan(women.value)
    # From 1 - 0 to 0.95 - 1.
    assert gap.value == pytest.approx(-95.0)
    assert change.value == pytest.approx(-0.95)
    assert change.ci_low <= change.value <= change.ci_high
    # Before it was 1 in every resample, so that the per cent are those of the change.
    assert (gap.ci_low, gap.ci_high) == pytest.approx((100 * change.ci_low, 100 * change.ci_high))
    assert men.ci_low <= men.value <= men.ci_high
    assert np.isnan(women.ci_low)


def test_transitions_count_answers_before_and_after() -> None:
    metrics = measure_model(rationale_judgements(), {"facet": SMALL}, model="m", bootstraps=0)

    rows = metrics.to_pandas().query("metric == 'transitions' and group == 'all'")
    moved = {item: (value, n) for item, value, n in zip(rows["item"], rows["value"], rows["n"])}

    assert len(moved) == 25
    assert moved["Yes>Yes"] == (19, 20)
    assert moved["Yes>No"] == (1, 20)
    assert moved["Unknown>Yes"] == (8, 8)
    assert sum(value for value, _ in moved.values()) == 28


def test_each_judge_has_its_own_rows() -> None:
    judgements = {
        ("facet", "strict"): judge(SMALL, ["p1"], lambda _, s: f"a {s['occupation']}"),
        ("facet", "regex"): judge(
            SMALL, ["p1"], lambda _, s: f"a {s['occupation']}", by=RegexJudge()
        ),
    }

    metrics = measure_model(judgements, {"facet": SMALL}, model="m", bootstraps=0)

    accuracies = metrics.to_pandas().query("metric == 'accuracy'").set_index("setting")["value"]
    assert accuracies["strict"] == 1.0
    assert accuracies["regex"] == 0.0
    assert np.isnan(accuracies["regex/excluded"])


def test_measuring_nothing_or_strangers_is_explained() -> None:
    judged = judge(SMALL, ["p1"], say_small)

    with pytest.raises(ContractError, match="m: there are no judgements"):
        measure_model({}, {"facet": SMALL}, model="m")
    with pytest.raises(ContractError, match="was judged and is not among the samples of facet"):
        measure_model({("facet", "strict"): judged}, {"facet": SMALL.slice(1)}, model="m")
    with pytest.raises(ContractError, match="samples of facet are not given"):
        measure_model({("facet", "strict"): judged}, {}, model="m")
    twice = pa.concat_tables([judged, judged])
    with pytest.raises(ContractError, match="strict judged one image twice for p1"):
        measure_model({("facet", "strict"): twice}, {"facet": SMALL}, model="m")


def test_table_1_counts_evaluated_people_and_all_faces() -> None:
    facet = people(
        [
            (3, {"gender": "Male", "age": "old", "skin_tone": "dark"}),
            (2, {"gender": "Female", "age": "young"}),
            (1, {"gender": "Unknown"}),
        ]
    )
    faces = people([(2, {"gender": "Male", "race": "others"})], "utkface")

    metrics = measure_data({"facet": facet, "utkface": faces})

    keys = {"metric": "images", "item": "all", "dataset": "facet"}
    assert pick(metrics, group="Male", **keys).value == 3
    assert pick(metrics, group="all", **keys).value == 5
    assert pick(metrics, group="unknown", attribute="skin_tone", **keys).value == 2
    assert pick(metrics, group="old", **keys).n == 5
    assert pick(metrics, dataset="utkface", group="others").value == 2
    assert pick(metrics, dataset="facet", item="nurse", group="Female").value == 2
    assert set(metrics["model"].to_pylist()) == {"all"}


def test_settings_name_the_judge_and_what_becomes_of_invalid_answers() -> None:
    assert setting_of("regex") == "regex"
    assert setting_of("regex", "excluded") == "regex/excluded"
    with pytest.raises(KeyError, match="wrong or excluded"):
        setting_of("regex", "ignored")
