"""The plan of a run as one table: csv for numbers, HTML to look at, Markdown to print."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from vlmfair.cost.estimate import Card, Estimate
from vlmfair.render.files import write_together
from vlmfair.render.numbers import MISSING, format_count
from vlmfair.render.table_html import table_page
from vlmfair.render.tables import Column, Table

ALL = "all"
PETA, MILLION = 1e15, 1e6
_COLUMNS = (
    Column("Paper", align="left"),
    Column("Model", align="left"),
    Column("Requests"),
    Column("asked", "Million tokens"),
    Column("computed", "Million tokens"),
    Column("answered", "Million tokens"),
    Column("plain", "PFLOPs"),
    Column("ours", "PFLOPs"),
    Column("plain", "GPU hours"),
    Column("ours", "GPU hours"),
    Column("API cost"),
    Column("Disk, GB"),
    Column("Inference jobs"),
    Column("Estimated", align="left"),
)


def as_frame(estimates: Sequence[Estimate]) -> pd.DataFrame:
    """Return a row for each paper and model, in that order, and one for all of each paper.

    Numbers are whole: tokens, operations, hours, money, GB. Weights of a model that several papers
    ask count in each of its rows, and once in the row of all papers.
    """
    rows = [_row(one) for one in estimates]
    papers = list(dict.fromkeys(one.paper for one in estimates))
    sums = [
        _sum(paper, ALL, [row for row in rows if row["paper"] == paper])
        for paper in papers
        if sum(row["paper"] == paper for row in rows) > 1
    ]
    ordered = []
    for paper in papers:
        ordered += [row for row in rows if row["paper"] == paper]
        ordered += [row for row in sums if row["paper"] == paper]
    if len(papers) > 1:
        once: dict[object, float] = {row["model"]: _number(row["weights_gb"]) for row in rows}
        ordered.append({**_sum(ALL, ALL, rows), "weights_gb": sum(once.values())})
    return pd.DataFrame(ordered)


def _row(one: Estimate) -> dict[str, Any]:
    own = one.amounts
    return {
        "paper": one.paper,
        "model": one.model,
        "requests": round(own.requests),
        "tokens_asked": round(own.asked),
        "tokens_computed": round(own.computed),
        "tokens_answered": round(own.answered),
        "flops_plain": one.plain.flops,
        "flops": one.ours.flops,
        "gpu_hours_plain": one.plain.hours,
        "gpu_hours": one.ours.hours,
        "api_cost": one.money,
        "weights_gb": one.weights_gb,
        "answers_gb": one.answers_gb,
        "inference_jobs": one.jobs,
        "estimated": ", ".join(one.estimated),
    }


def _sum(paper: str, model: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    added = {}
    for name in rows[0]:
        known = [row[name] for row in rows if row[name] is not None]
        if name not in ("paper", "model", "estimated"):
            added[name] = sum(map(_number, known)) if known else None
    named = [part for row in rows for part in str(row["estimated"]).split(", ") if part]
    return {
        "paper": paper,
        "model": model,
        **added,
        "estimated": ", ".join(dict.fromkeys(named)),
    }


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def as_table(frame: pd.DataFrame, card: Card, notes: Sequence[str]) -> Table:
    """Return the plan as a table to show, with what it rests on below it."""
    return Table(
        title=f"What the run will cost, on one {card.name}",
        data=frame,
        columns=_COLUMNS,
        rows=tuple(_shown(dict(row)) for _, row in frame.iterrows()),
        notes=tuple(notes),
        stubs=2,
    )


def _shown(row: Mapping[Any, Any]) -> tuple[str, ...]:
    def scaled(name: str, unit: float = 1.0) -> str:
        value = row[name]
        return MISSING if value is None or pd.isna(value) else _three_digits(_number(value) / unit)

    disk = _number(row["weights_gb"]) + _number(row["answers_gb"])
    return (
        str(row["paper"]),
        str(row["model"]),
        format_count(_number(row["requests"])),
        scaled("tokens_asked", MILLION),
        scaled("tokens_computed", MILLION),
        scaled("tokens_answered", MILLION),
        scaled("flops_plain", PETA),
        scaled("flops", PETA),
        scaled("gpu_hours_plain"),
        scaled("gpu_hours"),
        scaled("api_cost"),
        _three_digits(disk),
        format_count(_number(row["inference_jobs"])),
        str(row["estimated"]) or "nothing",
    )


def _three_digits(value: float) -> str:
    """Return a number with about three digits that count, and thousands apart."""
    if value == 0:
        return "0"
    if value < 0.0005:
        return "< 0.001"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{digits}f}"


def as_markdown(table: Table) -> str:
    """Return a table that is also aligned on a screen, and its notes."""
    labels = [f"{c.spanner}, {c.label}" if c.spanner else c.label for c in table.columns]
    lines = [labels, *map(list, table.rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(labels))]
    left = [column.align == "left" for column in table.columns]
    lines.insert(1, ["-" * width for width in widths])
    shown = [
        "| "
        + " | ".join(
            cell.ljust(width) if is_left else cell.rjust(width)
            for cell, width, is_left in zip(line, widths, left)
        )
        + " |"
        for line in lines
    ]
    return "\n".join([*shown, "", *(f"- {note}" for note in table.notes)]) + "\n"


def write_plan(table: Table, stem: str | os.PathLike[str]) -> None:
    """Write `<stem>.csv`, `.html` and `.md`; all three appear, or none."""
    base = os.fspath(stem)
    write_together(
        {
            f"{base}.csv": table.data.to_csv(index=False, lineterminator="\n").encode(),
            f"{base}.html": table_page(table).encode(),
            f"{base}.md": as_markdown(table).encode(),
        }
    )
