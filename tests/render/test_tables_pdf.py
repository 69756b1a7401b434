"""All tables of a paper in one PDF."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from latex import needs_latex

from vlmfair.errors import TypesettingError
from vlmfair.render.document import write_tables_pdf

TABLE = r"""\begin{table}[tbp]
\caption{A table}
\begin{tabular}{lr}\toprule Model & Score \tabularnewline\midrule
TEXT & 1 \tabularnewline\bottomrule\end{tabular}
\end{table}
"""


@pytest.fixture
def tables(tmp_path):
    paths = [tmp_path / f"table_{number}.tex" for number in (1, 2, 10)]
    for path in paths:
        path.write_text(TABLE.replace("TEXT", path.stem.replace("_", " ")))
    return paths


@needs_latex
def test_each_table_has_a_page_and_the_same_tables_give_the_same_bytes(tables, tmp_path):
    first, second = tmp_path / "first.pdf", tmp_path / "second.pdf"

    write_tables_pdf(tables, "GRAS: 100 % & more", first)
    write_tables_pdf(tables, "GRAS: 100 % & more", second)

    content = first.read_bytes()
    assert content.startswith(b"%PDF")
    # The title stands above the first table.
    assert len(re.findall(rb"/Type ?/Page\b", content)) == 3
    assert content == second.read_bytes()


@needs_latex
def test_tables_have_the_papers_numbers(tmp_path):
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not installed")
    paths = [tmp_path / f"table_{name}.tex" for name in ("2a", "surface_forms")]
    for path in paths:
        path.write_text(TABLE)

    write_tables_pdf(paths, "GRAS", tmp_path / "tables.pdf")

    command = ["pdftotext", str(tmp_path / "tables.pdf"), "-"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"Table .*: A table", shown) == [
        "Table 2a: A table",
        "Table surface forms: A table",
    ]


@needs_latex
def test_a_table_that_latex_does_not_take_leaves_no_pdf(tables, tmp_path):
    tables[1].write_text(TABLE.replace("TEXT", r"\undefined"))

    with pytest.raises(TypesettingError, match="pdflatex stopped at a table: Undefined control"):
        write_tables_pdf(tables, "GRAS", tmp_path / "tables.pdf")

    assert not (tmp_path / "tables.pdf").exists()


def test_without_latex_it_says_what_to_install(tables, tmp_path):
    with pytest.raises(TypesettingError, match="no-such-latex is not installed.*TeX Live"):
        write_tables_pdf(tables, "GRAS", tmp_path / "tables.pdf", latex="no-such-latex")
