"""Tables as files: hostile text stays text, and the three files appear together or not at all."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from latex import needs_latex, too_wide

from vlmfair.render import files
from vlmfair.render.table_fit import fit_columns
from vlmfair.render.table_tex import escape_tex, table_tex
from vlmfair.render.tables import Column, Table, write_table_files

HOSTILE = '<script>alert(1)</script> a_b & 50% $x^2$ #1 {~} \\input{/etc/passwd} "q" 🙂\nnext'


def hostile_table() -> Table:
    return Table(
        title=f"Title {HOSTILE}",
        data=pd.DataFrame({"model": [HOSTILE, "b"], "value": [1 / 3, 2e-20]}),
        columns=(
            Column("Model", align="left"),
            Column(HOSTILE, align="left"),
            Column("mean", HOSTILE),
            Column("p", HOSTILE),
        ),
        rows=((HOSTILE, "x", "0.33", "<0.001"), (HOSTILE, "y", "−0.20", "0.050")),
        notes=(HOSTILE,),
        stubs=2,
    )


class TagCollector(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_shows_hostile_text_as_text(tmp_path: Path) -> None:
    write_table_files(hostile_table(), tmp_path / "table_1", "tab:1")
    page = TagCollector()
    page.feed((tmp_path / "table_1.html").read_text(encoding="utf-8"))
    assert "script" not in page.tags
    assert "<script>alert(1)</script> a_b & 50%" in page.text


def test_html_page_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    write_table_files(hostile_table(), tmp_path / "table_1", "tab:1")
    page = (tmp_path / "table_1.html").read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=|@import|url\(", page)


def test_a_repeated_row_name_is_shown_once_over_its_rows(tmp_path: Path) -> None:
    write_table_files(hostile_table(), tmp_path / "table_1", "tab:1")
    page = (tmp_path / "table_1.html").read_text(encoding="utf-8")
    assert page.count('scope="rowgroup" rowspan="2"') == 1


@pytest.mark.parametrize(
    ("text", "tex"),
    [
        ("a_b & 50%", r"a\_b \& 50\%"),
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
        ("<0.001", r"\textless{}0.001"),
        ("−0.2 ≤ η²", r"\ensuremath{-}0.2 \ensuremath{\leq} \ensuremath{\eta}\textsuperscript{2}"),
        ("two\nlines", "two lines"),
        ("naïve", "naïve"),
        ("🙂", "{[}U+1F642{]}"),
        ("\x00", "{[}U+0000{]}"),
        ("[2pt]*", "{[}2pt{]}{*}"),
    ],
)
def test_latex_prints_every_character_as_it_is(text: str, tex: str) -> None:
    assert escape_tex(text) == tex


def test_latex_has_booktabs_rules_and_no_unescaped_character() -> None:
    source = table_tex(hostile_table(), "tab:a b}")
    assert [source.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]
    assert r"\label{tab:a-b-}" in source
    assert r"\input{" not in source
    assert "alert" in source


def test_a_long_table_breaks_over_pages() -> None:
    rows = tuple((f"row {i}", "1") for i in range(100))
    columns = (Column("name", align="left"), Column("value"))
    source = table_tex(Table("t", pd.DataFrame(), columns, rows), "tab:t")
    assert r"\begin{longtable}" in source
    assert r"\endhead" in source


def prose_table(rows: int) -> Table:
    """Rows of text that wraps onto 14 lines of a narrow column."""
    text = "some words of prose, " * 20
    columns = (Column("Name", align="left"), Column("Text", align="left", width=2.0))
    return Table("t", pd.DataFrame(), columns, tuple((f"row {i}", text) for i in range(rows)))


@pytest.mark.parametrize(("rows", "parted"), [(1, False), (8, True)])
def test_a_table_whose_text_is_higher_than_a_page_is_parted(rows: int, parted: bool) -> None:
    assert (r"\begin{longtable}" in table_tex(prose_table(rows), "t")) == parted


@needs_latex
def test_no_float_is_higher_than_its_page(tmp_path: Path) -> None:
    tables = {str(rows): table_tex(prose_table(rows), f"t{rows}") for rows in range(1, 9)}

    assert too_wide(tables, tmp_path) == []
    assert "Float too large" not in (tmp_path / "tables.log").read_text("utf-8", "replace")


@needs_latex
def test_hostile_tables_compile_and_fit_the_page(tmp_path: Path) -> None:
    long_rows = tuple((HOSTILE, f"{i}", "1", "2") for i in range(60))
    tables = [hostile_table(), Table("L", pd.DataFrame(), hostile_table().columns, long_rows)]
    sources = {f"{i}": table_tex(table, f"tab:{i}") for i, table in enumerate(tables)}

    assert too_wide(sources, tmp_path) == []


def wide_table(columns: int, rows: int, *, text: str = "−0.123", name: str = "model-3b") -> Table:
    """A table of numbers, with or without more rows than a page has."""
    named = (Column("Model", align="left"), *(Column(f"value {i}") for i in range(columns)))
    cells = tuple((f"{name}-{row}", *[text] * columns) for row in range(rows))
    return Table("t", pd.DataFrame(), named, cells, notes=("A note on the table. " * 9,))


@needs_latex
def test_tables_of_any_size_fit_the_page(tmp_path: Path) -> None:
    sources = {
        f"{columns} x {rows}": table_tex(wide_table(columns, rows), f"tab:{columns}-{rows}")
        for columns in (3, 8, 11, 15)
        for rows in (2, 60)
    }
    # Too wide for any print: a float is scaled down.
    sources["scaled"] = table_tex(wide_table(40, 3), "tab:scaled")
    long_name = "a-very-long-name-of-a-model-" * 3
    sources["names"] = table_tex(wide_table(9, 3, name=long_name), "tab:names")

    assert too_wide(sources, tmp_path) == []


def test_a_table_is_turned_only_where_smaller_print_does_not_help() -> None:
    small, turned = fit_columns(wide_table(4, 3)), fit_columns(wide_table(13, 3))

    assert (small.size, small.turned) == ("small", False)
    assert turned.turned
    assert r"\begin{sidewaystable}" in table_tex(wide_table(13, 3), "t")
    assert r"\begin{landscape}" in table_tex(wide_table(13, 60), "t")


def test_wrapping_text_loses_width_before_the_print_gets_small() -> None:
    columns = (Column("Model", align="left"), Column("Prompt", align="left", width=4.5))
    table = Table("t", pd.DataFrame(), columns, (("model", "word " * 30),))

    fit = fit_columns(table)

    assert fit.size == "small"
    assert fit.widths[1] == pytest.approx(0.85 * 4.5 * 72.27)


def test_csv_holds_the_raw_numbers(tmp_path: Path) -> None:
    write_table_files(hostile_table(), tmp_path / "table_1", "tab:1")
    read = pd.read_csv(tmp_path / "table_1.csv")
    pd.testing.assert_frame_equal(read, hostile_table().data)


def test_a_row_with_a_missing_cell_is_refused() -> None:
    with pytest.raises(ValueError, match="One cell|one cell"):
        Table("t", pd.DataFrame(), (Column("a"), Column("b")), (("1",),))


def test_no_file_remains_when_one_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = files.write_bytes

    def full_disk(path: str, content: bytes) -> None:
        if str(path).endswith(".html"):
            raise OSError("no space left on device")
        write(path, content)

    monkeypatch.setattr(files, "write_bytes", full_disk)
    with pytest.raises(OSError, match="no space left"):
        write_table_files(hostile_table(), tmp_path / "table_1", "tab:1")
    assert list(tmp_path.iterdir()) == []


def test_the_same_table_gives_the_same_bytes(tmp_path: Path) -> None:
    first = write_table_files(hostile_table(), tmp_path / "a", "tab:1")
    second = write_table_files(hostile_table(), tmp_path / "b", "tab:1")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    assert io.BytesIO(first[0].read_bytes()).read(5) == b"model"
