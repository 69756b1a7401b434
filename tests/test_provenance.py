"""Whole-or-nothing writing, and a code digest that follows what the code says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from vlmfair import provenance


def test_a_file_appears_whole(tmp_path):
    target = tmp_path / "deep" / "numbers.json"

    provenance.write_json(target, {"b": 1, "a": "é"})

    assert target.read_text(encoding="utf-8") == '{\n  "a": "é",\n  "b": 1\n}\n'
    assert [path.name for path in target.parent.iterdir()] == ["numbers.json"]


def test_a_failing_writer_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "table.csv"
    target.write_text("old")

    with pytest.raises(RuntimeError), provenance.atomic_path(target) as temporary:
        temporary.write_text("half a ta")
        raise RuntimeError

    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_written_files_can_be_read_by_others(tmp_path):
    old = os.umask(0o022)
    try:
        provenance.write_text(tmp_path / "shared.txt", "x")
    finally:
        os.umask(old)
    assert (tmp_path / "shared.txt").stat().st_mode & 0o777 == 0o644


def test_not_a_number_is_not_json(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        provenance.write_json(tmp_path / "x.json", {"p": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_content_ids_know_where_a_text_ends():
    assert provenance.content_id("ab", "c") != provenance.content_id("a", "bc")
    assert len(provenance.content_id("ab", "c")) == 32


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """A small package `vlmfair` beside a script that imports it."""
    package = tmp_path / "vlmfair"
    (package / "papers").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "papers" / "__init__.py").write_text("")
    (package / "means.py").write_text("def mean(x):\n    return sum(x) / len(x)\n")
    (package / "papers" / "figures.py").write_text("from ..means import mean\n\nCOLOUR = 'blue'\n")
    (package / "papers" / "tables.py").write_text("REGISTRY = {'means': 'vlmfair.means'}\n")
    (package / "unused.py").write_text("X = 1\n")
    (tmp_path / "plot.py").write_text("from vlmfair.papers import figures\n")
    (tmp_path / "tabulate.py").write_text("import vlmfair.papers.tables\n")
    monkeypatch.setattr(provenance, "PACKAGE_ROOT", package)
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    # Same length and same second: the digest must not go by modification time or size.
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 1))


def test_a_changed_function_changes_whatever_reaches_it(project):
    plot, tabulate = map(provenance.code_digest, (project / "plot.py", project / "tabulate.py"))

    edit(project / "vlmfair" / "means.py", "sum(x)", "max(x)")

    assert provenance.code_digest(project / "plot.py") != plot, "imported relatively"
    assert provenance.code_digest(project / "tabulate.py") != tabulate, "named by a registry"


def test_a_function_that_only_figures_use_leaves_tables_alone(project):
    plot, tabulate = map(provenance.code_digest, (project / "plot.py", project / "tabulate.py"))

    edit(project / "vlmfair" / "papers" / "figures.py", "blue", "teal")

    assert provenance.code_digest(project / "plot.py") != plot
    assert provenance.code_digest(project / "tabulate.py") == tabulate


def test_comments_docstrings_layout_and_touching_change_nothing(project):
    before = provenance.code_digest(project / "plot.py")

    (project / "vlmfair" / "means.py").write_text(
        '"""Means."""\n\n\ndef mean(x):\n    """Mean."""\n    # plain\n    return sum(x)/len(x)\n'
    )
    (project / "vlmfair" / "unused.py").write_text("X = 2\n")
    os.utime(project / "plot.py")

    assert provenance.code_digest(project / "plot.py") == before


def test_the_digest_is_the_same_for_a_copy_elsewhere(project, tmp_path, monkeypatch):
    before = provenance.code_digest(project / "plot.py")
    copy = tmp_path / "clone"
    shutil.copytree(project / "vlmfair", copy / "vlmfair")
    shutil.copy(project / "plot.py", copy / "plot.py")
    monkeypatch.setattr(provenance, "PACKAGE_ROOT", copy / "vlmfair")

    assert provenance.code_digest(copy / "plot.py") == before


def test_parsing_the_workflow_needs_neither_torch_nor_pandas(root):
    modules = "vlmfair.provenance, vlmfair.config, vlmfair.artefacts, vlmfair.errors"
    modules += ", vlmfair.inference.sharding, vlmfair.papers.gras.artefacts"
    heavy = ("torch", "transformers", "pandas", "pyarrow")
    code = f"import sys, {modules}; print([m for m in {heavy} if m in sys.modules])"

    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )

    assert shown.stdout.strip() == "[]"
