"""Compiles tables as a reader of the project would, and reads what LaTeX complains about."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

needs_latex = pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="pdflatex is not installed"
)
PREAMBLE = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage{array,booktabs,graphicx,longtable,pdflscape,rotating}
"""


def too_wide(tables: Mapping[str, str], folder: Path) -> list[str]:
    """Return `name: points` of each table that is wider than the text of a standard article.

    `tables` are LaTeX sources by name. Fails the test when they do not compile.
    """
    body = "".join(
        rf"\typeout{{TABLE {name}}}{source}\clearpage" + "\n" for name, source in tables.items()
    )
    path = folder / "tables.tex"
    path.write_text(PREAMBLE + r"\begin{document}" + "\n" + body + r"\end{document}", "utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", path.name]
    # A longtable knows the widths of its columns in the second run.
    for _ in range(2):
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=120)
        shown = done.stdout.decode(errors="replace")
        assert done.returncode == 0, shown[-1500:]
    found, name = [], ""
    for line in shown.splitlines():
        if line.startswith("TABLE "):
            name = line.removeprefix("TABLE ")
        wide = re.match(r"Overfull \\hbox \(([\d.]+)pt", line)
        if wide:
            found.append(f"{name}: {wide[1]}")
    return found
