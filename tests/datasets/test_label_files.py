"""Label files: columns by name, and no row lost because of another."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vlmfair.datasets.base import ProblemLog
from vlmfair.datasets.label_files import LINE, json_rows, read_label_file
from vlmfair.errors import RawDataError


def read(path: Path, content: bytes) -> tuple[list[dict], list[dict]]:
    path.write_bytes(content)
    log = ProblemLog("some")
    frame = read_label_file(path, ["file", "age"], log, fetch="Fetch it.")
    return frame.to_dict("records"), log.table().to_pylist()


@pytest.mark.parametrize(
    "content",
    [
        b"file,age\na,1\nb,2\n",
        b"file,age\na,1\nb,2",
        b"file,age\r\na,1\r\nb,2\r\n",
        b"file,age\ra,1\rb,2\r",
        b"\xef\xbb\xbffile,age\na,1\nb,2\n",
        b'file,age\n"a","1"\n"b",2\n',
        b" file ,age \na,1\nb,2\n",
    ],
    ids=["lf", "no-final-newline", "crlf", "cr", "bom", "quoted", "spaced-header"],
)
def test_habits_of_other_programs_do_not_matter(tmp_path: Path, content: bytes) -> None:
    rows, problems = read(tmp_path / "x.csv", content)
    assert rows == [{"file": "a", "age": "1", LINE: 2}, {"file": "b", "age": "2", LINE: 3}]
    assert problems == []


def test_line_numbers_count_empty_and_broken_lines(tmp_path: Path) -> None:
    rows, problems = read(tmp_path / "x.csv", b'\nfile,age\na,1\n\nb,2,3\n"c,3\nd\ne,4\n')
    assert [row[LINE] for row in rows] == [3, 8]
    assert {problem["record"] for problem in problems} == {"x.csv:5", "x.csv:6", "x.csv:7"}


@pytest.mark.parametrize("line", ['"b,2', 'b"c,"2', '"b"c,2', '"b""c,2'])
def test_quote_that_never_closes_swallows_no_other_row(tmp_path: Path, line: str) -> None:
    rows, problems = read(tmp_path / "x.csv", f"file,age\na,1\n{line}\nc,3\n".encode())
    assert [row["file"] for row in rows] == ["a", "c"]
    assert [(p["record"], p["reason"], p["raw"]) for p in problems] == [
        ("x.csv:3", "malformed_row", line)
    ]


def test_text_like_numbers_dates_and_missing_values_stays_text(tmp_path: Path) -> None:
    rows, _ = read(tmp_path / "x.csv", b"file,age\n007,NA\nnull,3-9\ntrue,\n")
    assert [row["file"] for row in rows] == ["007", "null", "true"]
    assert [row["age"] for row in rows] == ["NA", "3-9", ""]


def test_bytes_that_are_no_utf_8_are_replaced(tmp_path: Path) -> None:
    rows, _ = read(tmp_path / "x.csv", b"file,age\n\xff\xfe.jpg,3\n")
    assert rows[0]["file"] == "\ufffd\ufffd.jpg"


def test_a_file_with_a_header_alone_has_no_rows(tmp_path: Path) -> None:
    assert read(tmp_path / "x.csv", b"file,age\n") == ([], [])


@pytest.mark.parametrize("cell", [b"a" * (40 << 20), b'"' + b"[" * (1 << 20) + b'"'])
def test_row_longer_than_any_label_row_costs_no_other_row(tmp_path: Path, cell: bytes) -> None:
    rows, problems = read(tmp_path / "x.csv", b"file,age\n" + cell + b",1\nb,2\n")
    assert [row["file"] for row in rows] == ["b"]
    assert [problem["reason"] for problem in problems] == ["malformed_row"]
    assert problems[0]["detail"] == f"the row has {len(cell) + 2} characters"
    assert len(problems[0]["raw"]) == 500


def test_header_longer_than_any_header_ends_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(RawDataError, match=r"too long for a header\. Fetch it\."):
        read(tmp_path / "x.csv", b"a" * 200_000 + b"\n1\n")


def test_folder_in_place_of_the_file_ends_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(RawDataError, match=r"cannot be read .* Fetch it\."):
        read_label_file(tmp_path, ["file"], ProblemLog("some"), fetch="Fetch it.")


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(lines=st.lists(st.text(alphabet='",ab \\', max_size=8), max_size=6))
def test_every_line_ends_as_a_row_or_as_a_problem(tmp_path: Path, lines: list[str]) -> None:
    content = "\n".join(["file,age", *lines])
    rows, problems = read(tmp_path / "x.csv", content.encode())
    read_lines = [row[LINE] for row in rows]
    noted = [int(problem["record"].split(":")[1]) for problem in problems]
    assert sorted(read_lines + noted) == [n for n, line in enumerate(lines, 2) if line.strip()]
    for row in rows:
        expected = next(csv.reader([lines[row[LINE] - 2]], strict=True))
        assert [row["file"], row["age"]] == expected


@settings(max_examples=50, deadline=None)
@given(
    values=st.lists(
        st.tuples(st.text(max_size=9), st.sampled_from(["Male", '"', "\n"])), max_size=5
    )
)
def test_json_rows_are_the_rows(values: list[tuple[str, str]]) -> None:
    frame = pd.DataFrame(values, columns=["file", 'odd "name"'], dtype=object)
    rows = [json.loads(line) for line in json_rows(frame)]
    assert rows == [{"file": file, 'odd "name"': other} for file, other in values]
