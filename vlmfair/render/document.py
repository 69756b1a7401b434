"""All tables of a paper as one PDF, typeset by LaTeX."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from vlmfair.errors import TypesettingError
from vlmfair.provenance import write_bytes
from vlmfair.render.table_tex import escape_tex

# The packages that any table needs; each says in its first line which.
PREAMBLE = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage{array,booktabs,graphicx,longtable,pdflscape,rotating}
\pdfminorversion=4 \pdftrailerid{}
"""
# A longtable knows the widths of its columns in the second run.
RUNS = 2
TIMEOUT_SECONDS = 600


def write_tables_pdf(
    tables: Iterable[Path], title: str, path: Path, latex: str = "pdflatex"
) -> None:
    """Typeset the tex files of tables, in their order and each on pages of its own, into one PDF.

    The same tables give the same bytes. Raises TypesettingError when `latex` is missing or stops.
    """
    pages = "\n".join(map(_page, tables))
    source = f"{PREAMBLE}\\title{{{escape_tex(title)}}}\\date{{}}\\begin{{document}}\\maketitle\n"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "tables.tex")
        file.write_text(f"{source}{pages}\n\\end{{document}}\n", encoding="utf-8")
        for _ in range(RUNS):
            _typeset(file, latex)
        write_bytes(path, file.with_suffix(".pdf").read_bytes())


def _page(table: Path) -> str:
    # The paper's own number, or the name of what it has no table of: LaTeX would count.
    number = escape_tex(table.stem.removeprefix("table_").replace("_", " "))
    body = table.read_text(encoding="utf-8")
    # Floats that wait for a page of their own are all written before the next table.
    return f"\\renewcommand{{\\thetable}}{{{number}}}\n{body}\n\\clearpage"


def _typeset(file: Path, latex: str) -> None:
    # Without shell escape a table cannot start a program; paths outside the folder stay closed.
    command = [latex, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", file.name]
    settings = {"SOURCE_DATE_EPOCH": "0", "openin_any": "p", "openout_any": "p"}
    try:
        done = subprocess.run(
            command,
            cwd=file.parent,
            env={**os.environ, **settings},
            capture_output=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
    except FileNotFoundError:
        raise TypesettingError(
            f"{latex} is not installed, and tables cannot become a PDF. Install TeX Live "
            f"(Debian: texlive-latex-recommended) or load your cluster's module of it; the html "
            f"and tex files of all tables are there without it."
        ) from None
    if done.returncode != 0:
        shown = done.stdout.decode(errors="replace")
        complaint = re.search(r"^! ?(.+)$", shown, flags=re.MULTILINE)
        raise TypesettingError(
            f"{latex} stopped at a table: {complaint[1] if complaint else shown[-300:]}. Install "
            f"the package that it lacks, if it names one, and run again."
        )
