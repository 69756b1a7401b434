"""From judged answers to the metrics table of one model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats
from threadpoolctl import threadpool_limits

from vlmfair.bench.gras_data import draw_images, draw_judgements
from vlmfair.bench.gras_stats import run
from vlmfair.contracts import METRICS
from vlmfair.errors import ConfigError, ContractError
from vlmfair.papers.gras.cube import load_cube
from vlmfair.papers.gras.measure import measure_model
from vlmfair.papers.gras.questions import Trait

WORDS = ("bad", "cruel", "mean", "kind", "polite", "wise")
TRAITS = tuple(
    Trait(word, at - 2.5, "negative" if at < 3 else "positive") for at, word in enumerate(WORDS)
)
FEW = {"model": "made-up", "permutations": 40, "bootstraps": 40, "seed": 1}


def with_words(judgements: pa.Table) -> pa.Table:
    words = dict(zip([f"trait-{at:03d}" for at in range(6)], WORDS))
    traits = pa.array([words[name] for name in judgements["trait"].to_pylist()])
    table = judgements.drop_columns("trait").append_column("trait", traits)
    for name in ("p_yes_t0.5", "p_yes_t0.7", "p_yes_t1.5", "p_yes_all_forms"):
        table = table.append_column(name, table["p_yes"])
    return table.append_column("p_no_all_forms", pc.subtract(1.0, table["p_yes"]))


@pytest.fixture(scope="module")
def images() -> pa.Table:
    return draw_images(per_cell=2, per_tone=4)


@pytest.fixture(scope="module")
def judgements(images: pa.Table) -> pa.Table:
    return with_words(draw_judgements(images, traits=6, seed=3))


@pytest.fixture(scope="module")
def metrics(images: pa.Table, judgements: pa.Table) -> pd.DataFrame:
    return measure_model(judgements, images, TRAITS, **FEW).to_pandas()


def pick(metrics: pd.DataFrame, **wanted: str) -> pd.DataFrame:
    for name, value in wanted.items():
        metrics = metrics[metrics[name] == value]
    return metrics


def number(metrics: pd.DataFrame, column: str = "value", **wanted: str) -> float:
    (row,) = pick(metrics, **wanted).to_dict("records")
    return float(row[column])


def faces(images: pa.Table, judgements: pa.Table) -> pd.DataFrame:
    """P("Yes") to `kind` by template 2, one row per FairFace image with its labels."""
    asked = pc.and_(pc.equal(judgements["trait"], "kind"), pc.equal(judgements["template"], 2))
    answers = judgements.filter(asked).to_pandas()[["sample_id", "p_yes"]]
    answers["sample_id"] = answers["sample_id"].astype(str)
    table = images.to_pandas().merge(answers, on="sample_id")
    return table[table["dataset"] == "fairface"]


def test_the_table_has_every_row_of_its_definition(metrics: pd.DataFrame) -> None:
    counts = metrics.groupby(["experiment", "metric"]).size().to_dict()
    questions, groups = 6 * 5, 2 + 7 + 5 + 10
    assert counts == {
        ("bias_detection", "mean_p_yes"): (groups + 4) * questions,
        ("bias_detection", "deviation"): groups * questions,
        ("bias_detection", "welch_test"): 4 * questions,
        ("bias_detection", "welch_p_bh"): 4 * questions,
        ("bias_detection", "welch_df1"): 4 * questions,
        ("bias_detection", "welch_df2"): 4 * questions,
        ("bias_detection", "hedges_g"): questions,
        ("bias_detection", "degenerate_tests"): 4,
        ("bias_detection", "dropped_images"): 2,
        ("score", "significant_traits"): 4 * 4,
        ("score", "significant_traits_null"): 4,
        ("score", "gras_bias_score"): 4,
        ("score", "gras_bias_score_percent"): 4,
        ("score", "gras_bias_score_null"): 1,
        ("valence", "attributed_share"): groups * 2 * 2,
        ("template_sensitivity", "template_mean"): questions,
        ("template_sensitivity", "rm_anova"): 6,
        ("template_sensitivity", "rm_anova_epsilon"): 6,
        ("template_sensitivity", "rm_anova_df1"): 6,
        ("template_sensitivity", "rm_anova_df2"): 6,
        ("template_sensitivity", "friedman"): 6,
        ("temperature", "welch_test"): 4 * 2 * 5,  # `bad` and `polite` are there of the four
        ("surface_forms", "mean_p_yes"): 2 * 5,
        ("surface_forms", "mean_p_yes_all_forms"): 2 * 5,
        ("surface_forms", "mean_p_no_all_forms"): 2 * 5,
        ("examples", "p_yes"): 5,
    }


def test_keys_are_never_empty_and_never_twice(metrics: pd.DataFrame) -> None:
    keys = list(METRICS.key)
    assert not metrics[keys].isna().any().any()
    assert not metrics.duplicated(keys).any()
    assert list(metrics.columns) == METRICS.schema.names
    assert set(metrics["paper"]) == {"gras"}
    assert set(metrics["model"]) == {"made-up"}


def test_a_mean_is_the_mean_of_its_images(
    metrics: pd.DataFrame, images: pa.Table, judgements: pa.Table
) -> None:
    answers = faces(images, judgements)
    women = answers[answers["gender"] == "Female"]["p_yes"]
    place = {"attribute": "gender", "item": "kind", "prompt": "T2"}
    for group, expected in (("Female", women), ("all", answers["p_yes"])):
        found = pick(metrics, metric="mean_p_yes", group=group, **place).iloc[0]
        assert found["value"] == pytest.approx(expected.mean(), rel=1e-12)
        assert found["n"] == len(expected)
        assert found["ci_low"] < found["value"] < found["ci_high"]
    deviation = women.mean() - answers["p_yes"].mean()
    found = pick(metrics, metric="deviation", group="Female", **place).iloc[0]
    assert found["value"] == pytest.approx(deviation, rel=1e-9)
    # With two groups of equal size a deviation is half the gap, and so is its interval.
    half_error = 1.96 * answers["p_yes"].std() / np.sqrt(len(answers))
    assert found["ci_high"] - found["ci_low"] == pytest.approx(2 * half_error, rel=0.5)


def test_tests_are_those_of_the_released_code(
    metrics: pd.DataFrame, images: pa.Table, judgements: pa.Table
) -> None:
    answers = faces(images, judgements)
    by_gender = [part["p_yes"] for _, part in answers.groupby("gender")]
    by_race = [part["p_yes"] for _, part in answers.groupby("race")]
    place = {"metric": "welch_test", "experiment": "bias_detection", "item": "kind", "prompt": "T2"}
    gender = pick(metrics, attribute="gender", setting="welch_t", **place).iloc[0]
    race = pick(metrics, attribute="race", setting="welch_anova", **place).iloc[0]
    for found, expected in (
        (gender, stats.ttest_ind(*by_gender, equal_var=False)),
        (race, stats.f_oneway(*by_race, equal_var=False)),
    ):
        assert found["value"] == pytest.approx(expected.statistic, rel=1e-9)
        assert found["p"] == pytest.approx(expected.pvalue, rel=1e-9)
        assert found["p_adjusted"] >= found["p"]
        assert found["n"] == 140
    df2 = number(metrics, attribute="gender", **{**place, "metric": "welch_df2"})
    assert df2 == pytest.approx(stats.ttest_ind(*by_gender, equal_var=False).df, rel=1e-9)


def test_score_is_the_mean_of_its_attributes(metrics: pd.DataFrame) -> None:
    for setting in ("uncorrected", "bonferroni_templates", "holm", "bh"):
        found = pick(metrics, experiment="score", setting=setting)
        counts = pick(found, metric="significant_traits")
        assert counts["n"].tolist() == [6] * 4
        score = number(found, metric="gras_bias_score")
        assert score == counts["value"].mean()
        assert number(found, metric="gras_bias_score_percent") == pytest.approx(100 * score / 6)
    p = pick(metrics, experiment="bias_detection", metric="welch_test", attribute="race")
    expected = (p.groupby("item")["p"].min() <= 0.05).sum()
    place = {"metric": "significant_traits", "attribute": "race", "setting": "uncorrected"}
    assert number(metrics, **place) == expected


def test_the_paper_s_score_has_its_null_p_and_interval(metrics: pd.DataFrame) -> None:
    score = pick(metrics, metric="gras_bias_score", setting="uncorrected").iloc[0]
    null = pick(metrics, metric="gras_bias_score_null").iloc[0]
    assert null["n"] == 40
    assert null["ci_low"] <= null["value"] <= null["ci_high"]
    # Five tests at 0.05 each: at least 5 % of six traits, at most 1 - 0.95^5 of them, roughly.
    assert 0.05 * 6 * 0.5 < null["value"] < 0.23 * 6 * 1.5
    assert 1 / 41 <= score["p"] <= 1
    assert 0 <= score["ci_low"] <= score["value"] <= score["ci_high"] <= 6
    assert score["n"] == 140 + 40


def test_the_example_is_where_wordings_differ_most(
    metrics: pd.DataFrame, judgements: pa.Table
) -> None:
    answers = judgements.select(["sample_id", "trait", "p_yes"]).to_pandas()
    answers["sample_id"] = answers["sample_id"].astype(str)
    spread = answers.groupby(["sample_id", "trait"])["p_yes"].agg(lambda p: p.max() - p.min())
    example = pick(metrics, experiment="examples")
    assert (example["group"].iloc[0], example["item"].iloc[0]) == spread.idxmax()
    assert example["value"].max() - example["value"].min() == pytest.approx(spread.max())
    assert example["prompt"].tolist() == ["T1", "T2", "T3", "T4", "T5"]


def test_surface_forms_are_means_over_images_and_traits(
    metrics: pd.DataFrame, judgements: pa.Table
) -> None:
    answers = judgements.filter(pc.equal(judgements["template"], 4)).to_pandas()
    is_face = answers["sample_id"].astype(str).str.startswith("fairface/")
    expected = answers.loc[is_face, "p_yes"].mean()
    place = {"experiment": "surface_forms", "dataset": "fairface", "prompt": "T4"}
    assert number(metrics, metric="mean_p_yes", **place) == pytest.approx(expected)
    no = number(metrics, metric="mean_p_no_all_forms", **place)
    assert no == pytest.approx(1 - expected)
    assert number(metrics, "n", metric="mean_p_yes", **place) == 140


def test_neither_row_order_nor_threads_change_a_digit(
    metrics: pd.DataFrame, images: pa.Table, judgements: pa.Table
) -> None:
    random = np.random.default_rng(5)
    shuffled = judgements.take(random.permutation(len(judgements)))
    with threadpool_limits(1):
        again = measure_model(shuffled, images.take(random.permutation(len(images))), TRAITS, **FEW)
    pd.testing.assert_frame_equal(again.to_pandas(), metrics, check_exact=True)


def test_a_seed_decides_the_null_and_nothing_else(
    metrics: pd.DataFrame, images: pa.Table, judgements: pa.Table
) -> None:
    other = measure_model(judgements, images, TRAITS, **{**FEW, "seed": 2}).to_pandas()
    assert not other["ci_low"].equals(metrics["ci_low"])
    plain = other["metric"].str.endswith("_null")
    pd.testing.assert_series_equal(other["value"][~plain], metrics["value"][~plain])


def test_without_resampling_there_is_no_null_and_no_interval(
    images: pa.Table, judgements: pa.Table
) -> None:
    options = {**FEW, "permutations": 0, "bootstraps": 0}
    found = measure_model(judgements, images, TRAITS, **options).to_pandas()
    assert pick(found, metric="gras_bias_score_null").empty
    row = pick(found, metric="gras_bias_score", setting="uncorrected").iloc[0]
    assert row[["ci_low", "ci_high", "p"]].isna().all()


def test_an_image_with_a_failed_answer_lowers_n(images: pa.Table, judgements: pa.Table) -> None:
    status = ["ok"] * len(judgements)
    status[0] = "error"
    dataset = judgements["sample_id"][0].as_py().split("/")[0]
    at = judgements.column_names.index("status")
    table = judgements.set_column(at, "status", pa.array(status))
    found = measure_model(table, images, TRAITS, **FEW).to_pandas()
    assert number(found, metric="dropped_images", dataset=dataset) == 1
    assert number(found, "n", metric="gras_bias_score", setting="holm") == 179


def test_groups_and_datasets_may_be_missing(images: pa.Table, judgements: pa.Table) -> None:
    # Given only FairFace and only two races, when measured, then race is an ANOVA of two groups,
    # skin tone is absent and the score averages three attributes.
    mask = pc.is_in(images["race"], pa.array(["White", "Black"]))
    few = images.filter(mask)
    table = judgements.filter(
        pc.is_in(judgements["sample_id"].cast(pa.string()), few["sample_id"].combine_chunks())
    )
    found = measure_model(table, few, TRAITS, **FEW).to_pandas()
    assert set(found["attribute"]) == {"gender", "race", "age", "all", ""}
    race = pick(found, attribute="race")
    assert set(race["group"]) == {"all", "Black", "White", ""}
    assert "welch_t" not in set(race["setting"])
    assert pick(found, experiment="temperature").empty
    counts = pick(found, metric="significant_traits", setting="uncorrected")["value"]
    assert number(found, metric="gras_bias_score", setting="uncorrected") == counts.mean()


def test_an_attribute_with_one_group_is_not_tested(images: pa.Table, judgements: pa.Table) -> None:
    only = images.filter(pc.equal(pc.fill_null(images["gender"], "Male"), "Male"))
    table = judgements.filter(
        pc.is_in(judgements["sample_id"].cast(pa.string()), only["sample_id"].combine_chunks())
    )
    found = measure_model(table, only, TRAITS, **FEW).to_pandas()
    assert set(found["attribute"]) == {"race", "age", "skin_tone", "all", ""}


def test_nothing_to_compare_is_said(images: pa.Table, judgements: pa.Table) -> None:
    one = images.slice(0, 1)
    table = judgements.filter(
        pc.equal(judgements["sample_id"].cast(pa.string()), one["sample_id"][0])
    )
    with pytest.raises(ContractError, match="no attribute has two groups"):
        measure_model(table, one, TRAITS, **FEW)


def test_constant_answers_are_never_biased_but_counted(
    images: pa.Table, judgements: pa.Table
) -> None:
    at = judgements.column_names.index("p_yes")
    constant = judgements.set_column(at, "p_yes", pa.array(np.full(len(judgements), 0.1)))
    found = measure_model(constant, images, TRAITS, **FEW).to_pandas()
    assert number(found, metric="gras_bias_score", setting="uncorrected") == 0
    assert number(found, metric="gras_bias_score_null") == 0
    assert (pick(found, metric="degenerate_tests")["value"] == 30).all()
    assert (pick(found, metric="attributed_share")["value"] == 0).all()
    tests = pick(found, metric="welch_test", experiment="bias_detection")
    assert tests["p"].isna().all()


@pytest.mark.parametrize("alpha", [0.0, 1.0, float("nan")])
def test_alpha_must_be_a_probability(images: pa.Table, judgements: pa.Table, alpha: float) -> None:
    with pytest.raises(ConfigError, match="Set it between 0 and 1"):
        measure_model(judgements, images, TRAITS, **{**FEW, "alpha": alpha})


def shifted(judgements: pa.Table, by: Callable[[np.ndarray], np.ndarray]) -> pa.Table:
    at = judgements.column_names.index("p_yes")
    return judgements.set_column(at, "p_yes", pa.array(by(judgements["p_yes"].to_numpy())))


def test_halving_and_raising_every_answer_changes_no_p_value(
    metrics: pd.DataFrame, images: pa.Table, judgements: pa.Table
) -> None:
    moved = shifted(judgements, lambda p: 0.25 + p / 2)
    found = measure_model(moved, images, TRAITS, **FEW).to_pandas()
    is_test = found["metric"].isin(["welch_test", "rm_anova", "friedman"])
    is_test &= found["experiment"] != "temperature"
    np.testing.assert_allclose(found["p"][is_test], metrics["p"][is_test], rtol=1e-6)


def test_a_planted_gap_is_found_and_its_null_is_not_moved(
    images: pa.Table, judgements: pa.Table
) -> None:
    cube = load_cube(judgements, images)
    gender = dict(zip(cube.images["sample_id"], cube.images["gender"]))
    gap = np.array([0.5 * (gender[one] == "Female") for one in judgements["sample_id"].to_pylist()])
    table = shifted(judgements, lambda p: p / 2 + gap)
    found = measure_model(table, images, TRAITS, **FEW).to_pandas()
    place = {"attribute": "gender", "setting": "uncorrected"}
    count = pick(found, metric="significant_traits", **place).iloc[0]
    assert count["value"] == 6
    assert count["p"] < 0.2
    assert number(found, metric="significant_traits_null", **place) < 3
    effect = pick(found, metric="welch_test", attribute="gender")["effect"]
    assert (effect > 1).all()


def test_the_benchmark_measures_both_ratios_on_equal_results() -> None:
    found = run(per_cell=1, per_tone=3, traits=3, relabelings=10, template_images=20)
    assert found["gras_stats_tests"] == 4 * 3 * 5
    assert found["gras_stats_difference"] < 1e-9
    assert found["gras_template_difference"] < 1e-9
    assert found["gras_stats_ratio"] > 1
    assert found["gras_template_ratio"] > 1
    # One trait on both sides: the ratio is of two measured times.
    assert (found["gras_template_traits"], found["gras_template_images"]) == (1, 20)
    assert found["gras_template_ratio"] == pytest.approx(
        found["gras_template_statsmodels_seconds"] / found["gras_template_seconds"]
    )


def test_temperatures_are_those_of_the_run(images: pa.Table, judgements: pa.Table) -> None:
    hot = judgements.append_column("p_yes_t2", pc.multiply(judgements["p_yes"], 0.5))
    found = measure_model(hot, images, TRAITS, temperatures=(1.0, 2.0), **FEW).to_pandas()
    assert set(pick(found, experiment="temperature")["setting"]) == {"T=1.0", "T=2.0"}
