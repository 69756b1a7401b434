"""A bench that misses a bar fails with the name of the bar."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from vlmfair.bench.bars import BARS, BenchError, as_markdown, check_bars
from vlmfair.bench.document import replace_section

MACHINE = {"date": "2026-01-02", "processor": "Z80", "python": "3.11.7", "libraries": "torch 2"}
# On the right side of every bound by a tenth of it.
GOOD = {bar.key: bar.bound * (1.1 if bar.is_least else 0.9) for bar in BARS}


def test_figures_that_meet_every_bar_pass() -> None:
    check_bars(GOOD)


def test_a_figure_at_its_bound_is_enough() -> None:
    check_bars({bar.key: bar.bound for bar in BARS})


@pytest.mark.parametrize("bar", BARS, ids=lambda bar: bar.key)
def test_each_bar_fails_by_itself(bar: object) -> None:
    assert isinstance(bar, type(BARS[0]))
    missed = bar.bound * (0.9 if bar.is_least else 1.1)

    with pytest.raises(BenchError, match=f"1 of {len(BARS)} bars: {bar.key} is {missed:.4g} and"):
        check_bars({**GOOD, bar.key: missed})


@pytest.mark.parametrize("value", [math.nan, None])
def test_a_figure_that_is_no_number_or_missing_fails(value: float | None) -> None:
    figures = {key: found for key, found in GOOD.items() if key != "resume_recomputed"}
    if value is not None:
        figures["resume_recomputed"] = value

    with pytest.raises(BenchError, match="resume_recomputed is nan and has to be <= 0.05"):
        check_bars(figures)


def test_the_table_says_which_bar_is_missed() -> None:
    table = as_markdown({**GOOD, "gras_cpu_ratio": 14.9}, MACHINE)

    (row,) = (line for line in table.splitlines() if "`gras_cpu_ratio`" in line)
    assert row.endswith("| 14.9 | >= 15 | **no** |")
    assert table.count("| yes |") == len(BARS) - 1
    assert table.endswith(
        "\n\nMeasured on 2026-01-02 with one thread of Z80, Python 3.11.7, torch 2.\n"
    )


def test_a_figure_without_a_bar_is_shown_where_it_was_measured() -> None:
    released = {**GOOD, "gras_released_flops_ratio": 33.38}

    assert "| `gras_released_flops_ratio` |" not in as_markdown(GOOD, MACHINE)
    assert "| 33.4 | | |" in as_markdown(released, MACHINE)


def test_the_documentation_has_a_table_with_every_bar(root: Path, tmp_path: Path) -> None:
    document = tmp_path / "performance.md"
    document.write_text((root / "docs/performance.md").read_text(encoding="utf-8"))
    written = document.read_text()
    section = re.search(r"<!-- bench: begin -->\n(.*)<!-- bench: end -->", written, re.DOTALL)
    assert section

    for bar in BARS:
        (row,) = (line for line in section[1].splitlines() if line.startswith(f"| `{bar.key}` |"))
        _, _, meaning, measured, bound, met, _ = (cell.strip() for cell in row.split("|"))
        assert (meaning, bound, met) == (bar.meaning, bar.written(), "yes")
        assert bar.is_met({bar.key: float(measured.replace(",", ""))})
    replace_section(document, "bench", as_markdown(GOOD, MACHINE))
    assert "GRAS at full size" in document.read_text()
