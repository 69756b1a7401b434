"""Tables between steps: each fault of a table is refused with a sentence, and none is written."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from vlmfair import contracts
from vlmfair.errors import ContractError

PROBLEM = {"dataset": "fairface", "record": "train/1.jpg", "reason": "unreadable_image"}


def problems(*rows: dict[str, str]) -> pa.Table:
    return pa.Table.from_pylist(list(rows) or [PROBLEM])


def test_a_table_and_its_manifest_come_back(tmp_path):
    path = tmp_path / "problems.parquet"

    contracts.write_table(path, problems(), contracts.PROBLEMS, manifest={"raw": "data"})

    table = contracts.read_table(path, contracts.PROBLEMS)
    assert table.column_names == ["dataset", "record", "reason", "detail", "raw"]
    assert table["reason"].to_pylist() == ["unreadable_image"]
    manifest = json.loads((tmp_path / "problems.manifest.json").read_text())
    assert (manifest["rows"], manifest["contract"], manifest["raw"]) == (1, "problems", "data")


def test_columns_beyond_the_contract_are_kept(tmp_path):
    table = contracts.conform(problems({**PROBLEM, "source": "FFHQ"}), contracts.PROBLEMS)
    assert table.column_names[-1] == "source"


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (problems().drop_columns(["reason"]), "column reason is missing"),
        (problems({**PROBLEM, "reason": None}), "column reason has 1 empty values"),  # type: ignore[dict-item]
    ],
)
def test_a_broken_table_is_refused_and_not_written(tmp_path, table, sentence):
    with pytest.raises(ContractError, match=sentence):
        contracts.write_table(tmp_path / "x.parquet", table, contracts.PROBLEMS)
    assert list(tmp_path.iterdir()) == []


def test_a_value_that_does_not_fit_the_type_is_refused():
    rows = {name: ["x"] for name in ("paper", "experiment", "model", "metric")}
    with pytest.raises(ContractError, match="column value does not fit double"):
        contracts.conform(pa.table({**rows, "value": ["many"]}), contracts.METRICS)


def test_a_repeated_key_is_refused():
    rows = {name: ["x", "x"] for name in ("paper", "experiment", "model", "metric")}
    with pytest.raises(ContractError, match="appears 2 times"):
        contracts.conform(pa.table(rows), contracts.METRICS)


def test_reading_says_what_to_do(tmp_path):
    with pytest.raises(ContractError, match="is missing. Run the step that writes it"):
        contracts.read_table(tmp_path / "none.parquet", contracts.PROBLEMS)
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 half a file")
    with pytest.raises(ContractError, match="Delete it and run again"):
        contracts.read_table(tmp_path / "cut.parquet", contracts.PROBLEMS)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (["a", "b"], "1 of 3 ids are missing, 0 are unknown and 0 are repeated"),
        (["a", "b", "c", "d"], "0 of 3 ids are missing, 1 are unknown"),
        (["a", "b", "c", "c"], "0 are unknown and 1 are repeated"),
    ],
)
def test_gathering_wants_the_exact_set_of_ids(found, sentence):
    contracts.assert_same_ids(["a", "b", "c"], ["c", "b", "a"], "responses")
    with pytest.raises(ContractError, match=sentence):
        contracts.assert_same_ids(["a", "b", "c"], found, "responses")


def test_a_table_that_cannot_be_written_leaves_no_manifest(tmp_path, monkeypatch):
    def full(*_arguments, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(contracts.pq, "write_table", full)
    with pytest.raises(OSError, match="No space left"):
        contracts.write_table(tmp_path / "x.parquet", problems(), contracts.PROBLEMS)
    assert list(tmp_path.iterdir()) == []
