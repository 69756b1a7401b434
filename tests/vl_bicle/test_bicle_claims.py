"""The paper's findings as rules: what supports them, what does not, and what cannot be tested."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bicle_samples import ROOT
from scipy import stats

from vlmfair.audit.published import load_published
from vlmfair.contracts import METRICS, conform
from vlmfair.errors import ConfigError
from vlmfair.papers.vl_bicle.claim_rules import apply_rule, index_metrics, number
from vlmfair.papers.vl_bicle.claims import (
    Claim,
    check_claims,
    claim_metrics,
    claim_table,
    load_claims,
)

PATH = ROOT / "resources/published/vl_bicle_claims.yaml"
CLAIMS = {claim.id: claim for claim in load_claims(PATH)}
SIX = ("QwenVL", "Idefics3", "Phi35V", "MiniCPM", "InternVL35", "Qwen3VL")
PLACES = (
    *(("visogender_oo", "pronoun"), ("visogender_op", "pronoun"), ("coco_bias", "caption")),
    *(("dci", "caption"), ("visual_cot", "direct"), ("visual_cot", "cot")),
)
SETTINGS = ("RS", "MS", "FS", "BS", "SIIR", "SITR", "SIIR/balanced", "SITR/balanced")
RATES = ("error_rate", "error_rate_sd", "error_shift", "reveal_rate", "revealed_error_rate")
QUALITY = ("clipscore", "bleu4", "caption_length")
GROUPS = {"Male": "men", "Female": "women", "all": "all", "Male-Female": "gap"}
Value = Callable[[Mapping[str, Any]], float]


def world(value: Value, models: Sequence[str] = SIX) -> pd.DataFrame:
    """METRICS rows over runs of all cells, numbers by their keys."""
    rows = []
    for model, (dataset, prompt), metric, group in itertools.product(
        models, PLACES, (*RATES, *QUALITY), GROUPS
    ):
        cells = [("zero-shot", 0, "real")] if metric != "error_shift" else []
        cells += [(s, k, "real") for s in SETTINGS for k in (2, 4, 6, 8)]
        if dataset == "coco_bias":
            cells += [(s, k, f) for s in ("MS", "FS") for k in (4, 8) for f in ("flux", "sd35l")]
        for setting, shots, source in cells:
            keys = {"model": model, "dataset": dataset, "prompt": prompt, "metric": metric}
            keys |= {"group": group, "setting": setting, "image_source": source}
            rows.append({**keys, "shots": shots})
    for setting, shots in itertools.product(("SIIR", "SITR"), (2, 4, 6, 8)):
        keys = {"model": "all", "dataset": "coco_bias", "prompt": "caption"}
        keys |= {"metric": "male_share", "group": "Male", "image_source": "real"}
        rows.append({**keys, "setting": setting, "shots": shots})
    frame = pd.DataFrame(rows).assign(paper="vl_bicle", run=0, experiment="e", item="all")
    frame["value"] = [float(value(row)) for row in rows]
    return frame.assign(ci_low=frame["value"] - 1, ci_high=frame["value"] + 1)


def verdict(claim: str, metrics: pd.DataFrame) -> tuple[str, int, int]:
    (result,) = check_claims([CLAIMS[claim]], metrics)
    return result.verdict, len(result.holding), len(result.tested)


def shift(metric: str, dataset: str, setting: str, values: Mapping[str, float]) -> Value:
    """A number for each model in one place at 8 shots, and 0 everywhere else."""

    def value(row: Mapping[str, Any]) -> float:
        place = (row["metric"], row["dataset"], row["setting"], row["shots"], row["group"])
        fits = place == (metric, dataset, setting, 8, "Male-Female")
        return values.get(row["model"], 0.0) if fits else 0.0

    return value


def test_five_of_six_models_support_what_the_paper_states_for_five() -> None:
    for positive, expected in ((0, "supported"), (1, "supported"), (2, "not supported")):
        values = {name: 1.0 if place < positive else -1.0 for place, name in enumerate(SIX)}
        metrics = world(shift("error_shift", "coco_bias", "MS", values))

        assert verdict("shift_coco_ms", metrics) == (expected, 6 - positive, 6)


def test_the_sign_test_over_models_is_scipy_s_and_corrected_over_the_claims() -> None:
    values = dict(zip(SIX, (1, 1, 1, 1, 1, -1), strict=True))
    metrics = world(shift("error_shift", "visogender_op", "FS", values))

    results = check_claims(list(CLAIMS.values()), metrics)

    by_id = {result.claim.id: result for result in results}
    expected = stats.binomtest(5, 6, 0.5, alternative="greater").pvalue
    assert by_id["shift_op_fs"].p == pytest.approx(expected)
    assert by_id["shift_op_fs"].verdict == "not supported"
    p = np.array([result.p for result in results])
    known = ~np.isnan(p)
    adjusted = np.array([result.p_adjusted for result in results])
    assert adjusted[known] == pytest.approx(stats.false_discovery_control(p[known]))
    # A bound is no direction: there is no chance of one half.
    assert math.isnan(by_id["quality_clipscore_range"].p)


def test_the_share_counts_when_other_models_are_measured() -> None:
    models = ("one", "two", "three")
    values = {"one": -1.0, "two": -1.0, "three": 1.0}
    metrics = world(shift("error_shift", "coco_bias", "FS", {**values, "one": 1.0}), models)

    # 4 of 6 stated, 2 of 3 found.
    assert verdict("shift_coco_fs", metrics) == ("supported", 2, 3)
    assert verdict("shift_dci_fs", metrics) == ("not supported", 0, 3)


def test_only_means_no_other_model() -> None:
    alone = {"Qwen3VL": 0.5, **dict.fromkeys(SIX[:5], -1.0)}
    two = {**alone, "QwenVL": 0.5}

    for values, expected in ((alone, "supported"), (two, "not supported")):
        metrics = world(shift("error_shift", "coco_bias", "MS", values))
        assert verdict("shift_coco_ms_qwen3", metrics)[0] == expected


def test_models_are_known_by_the_paper_s_names() -> None:
    values = {"phi-3.5": 9.0, "other": 1.0}

    def value(row: Mapping[str, Any]) -> float:
        fits = (row["setting"], row["shots"], row["group"]) == ("MS", 8, "Female")
        return values[row["model"]] if fits and row["metric"] == "error_rate" else 0.0

    metrics = world(value, tuple(values))[lambda frame: frame["model"] != "all"]
    (named,) = check_claims(
        [CLAIMS["cross_gender_coco_largest"]], metrics, titles={"phi-3.5": "Phi35V"}
    )
    (unknown,) = check_claims([CLAIMS["cross_gender_coco_largest"]], metrics)

    assert (named.verdict, named.holding) == ("supported", ("Phi35V",))
    assert (unknown.verdict, unknown.reason) == ("cannot be tested", "not measured: Phi35V")


def test_what_nobody_measured_cannot_be_tested() -> None:
    metrics = world(lambda row: 0.0)
    real = metrics[metrics["image_source"] == "real"]

    (result,) = check_claims([CLAIMS["synthetic_less_biased_ms"]], real)

    assert (result.verdict, result.tested) == ("cannot be tested", ())
    assert result.reason == "without a number: all models"
    assert verdict("synthetic_less_biased_ms", metrics)[2] == 6


def test_a_model_without_a_number_is_not_tested_and_counted() -> None:
    metrics = world(shift("error_shift", "dci", "FS", dict.fromkeys(SIX, 1.0)))
    fewer = metrics[(metrics["model"] != "QwenVL") | (metrics["dataset"] != "dci")]

    (result,) = check_claims([CLAIMS["shift_dci_fs"]], fewer)

    assert (result.verdict, len(result.tested)) == ("supported", 5)
    assert result.reason == "without a number: 1 of 6 models"


def test_a_control_model_can_be_left_out() -> None:
    values = {"planted": 1.0, "control": 0.0}
    metrics = world(shift("error_shift", "dci", "FS", values), tuple(values))

    (both,) = check_claims([CLAIMS["shift_dci_fs"]], metrics)
    (planted,) = check_claims([CLAIMS["shift_dci_fs"]], metrics, models=["planted"])

    assert (both.verdict, planted.verdict) == ("not supported", "supported")


def test_every_claim_speaks_of_numbers_that_exist() -> None:
    random = np.random.default_rng(0)
    metrics = world(lambda row: random.normal())

    results = check_claims(list(CLAIMS.values()), metrics)

    untested = [r.claim.id for r in results if r.verdict == "cannot be tested"]
    assert untested == []
    # Noise supports some and not others: no rule is always true, none always false.
    assert {result.verdict for result in results} == {"supported", "not supported"}


def paper_like(row: Mapping[str, Any]) -> float:
    """Numbers as the paper's text describes them, for its six models."""
    model, dataset, setting = row["model"], row["dataset"], row["setting"]
    strength = {"visogender_oo": 30.0, "visogender_op": 60.0, "coco_bias": 0.6, "dci": 1.2}
    pull = {"MS": -1.0, "FS": 1.0}.get(setting, 0.0) * strength.get(dataset, 0.0)
    quiet = model == "Qwen3VL" and row["prompt"] == "caption"
    if row["metric"] == "male_share":
        return 70.0
    if row["metric"] == "clipscore":
        return 30.0 + 0.1 * row["shots"] / 8
    if row["metric"] in ("bleu4", "caption_length", "reveal_rate"):
        drop = 5.0 if row["image_source"] != "real" else 0.0
        return 0.0 if row["metric"] != "reveal_rate" else 90.0 - drop
    gap = 0.3 * pull if quiet else pull
    return {
        "Male": 40.0 + max(gap, 0.0),
        "Female": 40.0 + max(-gap, 0.0),
        "all": 40.0,
        "Male-Female": gap if row["metric"] != "error_rate_sd" else 0.5,
    }[row["group"]]


def opposite(row: Mapping[str, Any]) -> float:
    """Numbers of which each contradicts the paper's text somewhere."""
    if row["metric"] == "clipscore":
        return 40.0 if row["shots"] == 8 and row["image_source"] == "real" else 20.0
    if row["metric"] == "reveal_rate":
        return -paper_like(row)
    if row["metric"] == "male_share":
        return 30.0
    swapped = {"MS": "FS", "FS": "MS"}.get(row["setting"], row["setting"])
    own = paper_like({**row, "setting": swapped})
    if row["dataset"].startswith("visogender") and row["shots"]:
        own *= 0.001
    if row["dataset"] == "visual_cot":
        own += {"FS": 50.0, "RS": 9.0}.get(row["setting"], 0.0)
    own += 9.0 if row["setting"] == "SIIR" else 0.0
    return own + (7.0 if row["image_source"] == "flux" else 0.0)


def correlated(row: Mapping[str, Any]) -> float:
    """Captions that are longer and closer to their references wherever the bias shifts."""
    if row["metric"] in ("bleu4", "caption_length", "error_shift"):
        turned = {**row, "metric": "error_shift", "group": "Male-Female"}
        return paper_like(turned) + row["shots"]
    return paper_like(row)


@pytest.fixture(scope="module")
def worlds() -> dict[str, pd.DataFrame]:
    return {value.__name__: world(value) for value in (paper_like, opposite, correlated)}


@pytest.mark.parametrize(
    "claim",
    [
        *("shift_op_fs", "shift_op_ms", "shift_dci_fs", "shift_coco_ms", "shift_pronoun_larger"),
        *("cross_gender_pronoun", "cross_gender_captioning", "cross_gender_more_than_own"),
        *("cross_gender_magnitude", "retrieval_male_skewed", "retrieval_methods_alike"),
        *("retrieval_neither_more_biased", "quality_clipscore_range", "quality_clipscore_means"),
        *("quality_bleu_uncorrelated", "vqa_gap_unchanged", "vqa_less_than_gendered_output"),
        *("synthetic_clipscore_stable", "synthetic_reveal_rate_drops"),
        "synthetic_generators_alike",
    ],
)
def test_numbers_as_the_paper_describes_them_support_it_and_their_opposite_does_not(
    claim: str, worlds: dict[str, pd.DataFrame]
) -> None:
    against = worlds["correlated" if "bleu" in claim else "opposite"]

    assert verdict(claim, worlds["paper_like"])[0] == "supported"
    assert verdict(claim, against)[0] == "not supported"


# ----------------------------------------------------------------------------------- single rules

SMALL = world(
    lambda row: {"RS": 1.0, "MS": -4.0, "FS": 3.0}.get(row["setting"], 0.0) * row["shots"]
)
MEASURED = index_metrics(SMALL)
PLACE = {"metric": "error_rate", "dataset": "coco_bias"}


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ({**PLACE, "setting": "MS", "shots": 2}, -8.0),
        ({**PLACE, "setting": "MS", "shots": 2, "abs": True}, 8.0),
        ({**PLACE, "metric": "absolute_gap", "setting": "MS", "shots": 2}, 8.0),
        ({**PLACE, "setting": "MS", "shots": 2, "minus": {"setting": "FS"}}, -14.0),
        ({**PLACE, "setting": "MS", "shots": 2, "minus": {"shots": 0}}, -8.0),
        ({**PLACE, "setting": ["MS", "FS"], "shots": 2}, -1.0),
        ({**PLACE, "setting": ["MS", "FS"], "shots": 2, "abs": True}, 7.0),
        ({**PLACE, "setting": ["MS", "FS", "RS"], "shots": [2, 4], "aggregate": "range"}, 28.0),
        ({**PLACE, "setting": ["MS", "FS"], "shots": 2, "aggregate": "max", "times": 10}, 60.0),
        ({**PLACE, "setting": "MS", "shots": 2, "field": "ci_low"}, -9.0),
        ({**PLACE, "setting": "MS", "shots": 3}, math.nan),
        ({**PLACE, "setting": ["MS", "XS"], "shots": 2}, math.nan),
        (5, 5.0),
    ],
)
def test_numbers_are_named_by_their_keys(cell: Any, expected: float) -> None:
    assert number(cell, {}, MEASURED, "Phi35V") == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("quantifier", "holds"),
    [("all", False), ("any", True), ("none", False), ("not_all", True), ("most", True)],
)
def test_quantifiers_count_combinations(quantifier: str, holds: bool) -> None:
    # The gap is -8 under MS, 2 under RS and 6 under FS.
    rule = {
        "over": {**PLACE, "setting": ["MS", "RS", "FS"], "shots": 2},
        "quantifier": quantifier,
        "tests": [{"left": {"metric": "error_rate"}, "relation": ">", "right": 0}],
    }

    assert apply_rule(rule, MEASURED, "Phi35V", SIX).holds is holds


def test_signs_and_correlations() -> None:
    def holds(test: Mapping[str, Any]) -> bool | None:
        return apply_rule({"tests": [test]}, MEASURED, "Phi35V", SIX).holds

    ms, fs, rs, zero = (
        {**PLACE, "setting": setting, "shots": shots}
        for setting, shots in (("MS", 2), ("FS", 2), ("RS", 2), ("RS", 0))
    )
    assert holds({"signs": "differ", "cells": [ms, fs]}) is True
    assert holds({"signs": "same", "cells": [ms, fs]}) is False
    assert holds({"signs": "same", "cells": [rs, fs]}) is True
    # Nothing has no sign.
    assert holds({"signs": "same", "cells": [zero, fs]}) is False
    assert holds({"signs": "differ", "cells": [zero, fs]}) is False
    assert holds({"signs": "same", "cells": [{**rs, "shots": 3}, fs]}) is None
    points = {"setting": ["MS", "FS"], "shots": [2, 4, 6, 8]}
    itself = [PLACE, {**PLACE, "metric": "error_shift"}]
    assert holds({"uncorrelated": itself, "points": points}) is False
    never = [{**PLACE, "setting": "MS"}, {**PLACE, "setting": "BS"}]
    assert holds({"uncorrelated": never, "points": {"shots": [2, 4, 6, 8]}}) is True


def test_of_two_judges_the_language_model_counts() -> None:
    lexical = SMALL.assign(item="lexical", value=1.0)
    llm = SMALL.assign(item="llm", value=2.0)

    for frames in ([lexical, llm], [llm, lexical]):
        found = index_metrics(pd.concat(frames))
        assert number({**PLACE, "setting": "MS", "shots": 2}, {}, found, "Phi35V") == 2.0


# ------------------------------------------------------------------------------------ the files


def test_results_become_a_table_and_metrics() -> None:
    values = dict.fromkeys(SIX, 1.25)
    metrics = world(shift("error_shift", "dci", "FS", values))
    metrics = metrics[metrics["image_source"] == "real"]
    results = check_claims(
        [
            CLAIMS["shift_dci_fs"],
            CLAIMS["retrieval_male_skewed"],
            CLAIMS["synthetic_less_biased_fs"],
        ],
        metrics,
    )

    table, rows = claim_table(results), claim_metrics(results).to_pandas()

    assert table["verdict"].tolist() == ["supported", "not supported", "cannot be tested"]
    assert table["stated"].tolist() == ["6 of 6", "data", "3 of 4"]
    assert table["measured"][0].startswith("Idefics3: 1.25; InternVL35: 1.25")
    assert table["models_holding"].tolist() == [6, 0, 0]
    supported = rows[rows["metric"] == "claim_supported"]
    assert supported["item"].tolist() == [result.claim.id for result in results]
    assert supported["value"].tolist()[:2] == [1.0, 0.0]
    assert math.isnan(supported["value"].iloc[2])
    counts = rows[rows["metric"] == "claim_models"]
    assert (counts["value"].iloc[0], counts["n"].iloc[0]) == (6.0, 6)
    assert counts["p"].iloc[0] == pytest.approx(1 / 64)
    conform(claim_metrics(results), METRICS)


def test_every_claim_has_a_place_a_sentence_and_a_meaning() -> None:
    assert len(CLAIMS) == 45
    for claim in CLAIMS.values():
        assert claim.location.startswith(("Section 4.1, ", "Section 5, "))
        assert min(len(claim.sentence), len(claim.meaning)) > 20
        assert set(claim.models) <= set(SIX)
        assert 0 < claim.count <= claim.of


def test_printed_numbers_have_their_place() -> None:
    printed = load_published(ROOT / "resources/published/vl_bicle.csv")

    assert len(printed) == 24
    values = {(cell.model, cell.setting, cell.group, cell.item): cell.value for cell in printed}
    assert values["QwenVL", "MS k=8", "Female", "visogender_op"] == "85.5"
    assert values["Phi35V", "SITR k=8", "Male-Female", "coco_bias"] == "-2.35"
    # 2.25 - 0.79, as the text says.
    by_setting = {
        cell.setting: cell.number
        for cell in printed
        if (cell.model, cell.group, cell.item) == ("Phi35V", "Female", "coco_bias")
    }
    assert by_setting["MS k=8"] - by_setting["FS k=8"] == pytest.approx(by_setting["MS-FS k=8"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('relation: "<"', 'relation: "<>"'), "'<>' is no relation"),
        (("dataset: coco_bias", "data: coco_bias"), "'data' is no key of a number"),
        (("signs: same", "signs: equal"), "signs are same or differ"),
        (("group: women", "group: woman"), "'woman' is no group"),
        (("quantifier: none", "quantifier: never"), "'never' is no quantifier"),
        (("aggregate: max", "aggregate: sum"), "'sum' is no aggregate"),
        (('stated: "3/6"', 'stated: "half"'), "lacks the key"),
        (("  - id: baseline_idefics3", "  - name: baseline"), "claim 1 lacks the key 'id'"),
        (("- id: shift_op_ms", "- id: shift_op_fs"), "the claim shift_op_fs stands there twice"),
        (("claims:", "claim:"), "claims are missing"),
    ],
)
def test_a_damaged_list_of_claims_is_refused(
    tmp_path: Path, change: tuple[str, str], says: str
) -> None:
    source = PATH.read_text(encoding="utf-8")
    assert change[0] in source
    path = tmp_path / "claims.yaml"
    path.write_text(source.replace(*change, 1), encoding="utf-8")

    with pytest.raises(ConfigError, match=says):
        load_claims(path)


def test_a_claim_says_for_whom_it_is_stated() -> None:
    claim: Claim = CLAIMS["shift_coco_ms_qwen3"]

    assert claim.stated == "only Qwen3VL"
    assert CLAIMS["shift_flips"].stated == "MiniCPM"
