"""The funnel: records after each filter, both sides by gender, and printed numbers to compare."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from vlmfair.config import read_yaml
from vlmfair.contracts import SAMPLES, conform
from vlmfair.datasets import DATASETS, coco_bias, dci, funnel_of, visogender, visual_cot
from vlmfair.datasets.acceptance import acceptance_of, compare_funnel
from vlmfair.datasets.base import LEFT_OUT, ParsedDataset, ProblemLog
from vlmfair.datasets.funnel import Step, funnel, write_funnel
from vlmfair.errors import ConfigError, ContractError

STEPS = (Step("with captions", ("no_captions",)), Step("in balance", ("down_sampled",)))
WITH_FUNNEL = (visogender, coco_bias, dci, visual_cot)


@pytest.fixture
def parsed() -> ParsedDataset:
    """Two of the pool, one query, an example; three left out, and notes that cost no record."""
    log = ProblemLog("d")
    for record in ("a", "b"):
        log.add(record, "no_captions")
    log.add("c", "down_sampled")
    log.add("e", "other_case")
    log.add("f", "file_missing")
    samples = [
        ("d/1", "pool", "Male"),
        ("d/2", "pool", "Female"),
        ("d/3", "queries", "Male"),
        ("d/4", "example", None),
    ]
    rows = [
        {"sample_id": name, "dataset": "d", "image": "", "image_sha256": name}
        | {"split": side, "gender": gender}
        for name, side, gender in samples
    ]
    return ParsedDataset(conform(pa.Table.from_pylist(rows), SAMPLES), log.table())


def test_each_step_says_how_many_are_left(parsed: ParsedDataset) -> None:
    rows = funnel("d", STEPS, parsed).to_pylist()
    assert [(row["step"], row["left_out"], row["left"]) for row in rows] == [
        ("all records", 0, 6),
        ("with captions", 2, 4),
        ("in balance", 1, 3),
        ("pool", 0, 2),
        ("queries", 0, 1),
    ]
    assert [(row["male"], row["female"]) for row in rows[-2:]] == [(1, 1), (1, 0)]
    assert rows[1]["reasons"] == "no_captions"
    assert rows[0]["male"] is None


def test_a_reason_without_a_step_is_a_fault(parsed: ParsedDataset) -> None:
    with pytest.raises(ContractError, match="d: no step of the funnel leaves records out as no_c"):
        funnel("d", STEPS[1:], parsed)


def test_it_is_written_as_a_csv(parsed: ParsedDataset, tmp_path: Path) -> None:
    write_funnel(tmp_path / "funnel.csv", funnel("d", STEPS, parsed))
    lines = (tmp_path / "funnel.csv").read_text().splitlines()
    assert lines[0].replace('"', "") == "dataset,step,reasons,left_out,left,male,female"
    assert lines[-1].replace('"', "") == "d,queries,,0,1,1,0"


def test_only_datasets_with_filters_have_a_funnel(parsed: ParsedDataset) -> None:
    assert funnel_of("facet", parsed) is None
    assert {
        name for name in DATASETS if name not in ("fairface", "ai_face", "facet", "utkface")
    } == {module.NAME for module in WITH_FUNNEL}


def test_steps_name_reasons_that_exist_and_each_once() -> None:
    for module in WITH_FUNNEL:
        reasons = [reason for step in module.FUNNEL for reason in step.reasons]
        assert set(reasons) <= set(LEFT_OUT)
        assert len(reasons) == len(set(reasons))


def test_printed_numbers_are_compared_step_by_step(parsed: ParsedDataset, root: Path) -> None:
    table = funnel("d", STEPS, parsed)
    compared = compare_funnel(table, {"funnel": {"all records": 6, "in balance": 5}})
    assert [(c.group, c.expected, c.found, c.agrees) for c in compared] == [
        ("all records", 6, 6, True),
        ("in balance", 5, 3, False),
    ]
    with pytest.raises(ConfigError, match="with hats is no step of the dataset. Write one of all"):
        compare_funnel(table, {"funnel": {"with hats": 5}})


def test_the_sheet_has_the_papers_numbers_under_names_of_steps(root: Path) -> None:
    """VL-BICLE 0.A.1: 690 and 670 images; 3.3 and 0.A.3: 7,805 and 371 of DCI."""
    sheet = read_yaml(root / "config/datasets.yaml")["datasets"]
    for module in (visogender, coco_bias, dci):
        known = {"all records", "pool", "queries", *(step.name for step in module.FUNNEL)}
        assert set(acceptance_of(sheet, module.NAME)["funnel"]) <= known
    assert list(acceptance_of(sheet, "visogender")["funnel"].values()) == [690, 670, 92 + 184]
    assert list(acceptance_of(sheet, "dci")["funnel"].values()) == [7805, 371]
