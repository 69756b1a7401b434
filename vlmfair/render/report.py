"""The report: one page with every table and figure, what is missing, and where it comes from."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
import pandas as pd
from markupsafe import Markup

from vlmfair.artefacts import Artefact
from vlmfair.errors import ContractError
from vlmfair.provenance import write_text
from vlmfair.render.numbers import format_count
from vlmfair.render.table_html import TABLE_STYLE

LARGEST_EMBEDDED = 8_000_000  # bytes of pictures that still make a page one can send by mail
PROBLEMS_SHOWN = 100
# What the frame of a table shows: rows; pixels beside the contents; pixels on a telephone.
_FRAME_ROWS, _FRAME_WIDTH, _NARROW_WIDTH = 25, 940, 370
_DOWNLOADS = ("csv", "tex", "pdf", "png", "html")


@dataclass(frozen=True)
class Summary:
    """What a paper's part of the report starts with: a title and a few sentences."""

    title: str
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Picture:
    """One file of a figure: where the page finds it, its size in pixels, its alternative text."""

    source: str
    width: int
    height: int
    alternative: str
    name: str
    links: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Hint:
    """That the frame of a table cuts it: below, sideways, or sideways on a narrow screen only."""

    rows: int
    down: bool
    sideways: bool
    sideways_on_narrow: bool


@dataclass(frozen=True)
class Item:
    """One table or figure of the report."""

    anchor: str
    heading: str
    caption: Markup
    table: Markup | None = None
    hint: Hint | None = None
    pictures: tuple[Picture, ...] = ()
    links: tuple[tuple[str, str], ...] = ()


@dataclass
class Paper:
    """One paper's part of the report."""

    key: str
    summary: Summary
    items: list[Item] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)


def build_report(
    artefacts: Sequence[Artefact],
    files: Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    title: str,
    template: str | os.PathLike[str],
    captions: Mapping[str, str],
    summaries: Mapping[str, Summary],
    problems: pd.DataFrame,
    provenance: Mapping[str, Mapping[str, str]],
    config: str = "",
    largest_embedded: int = LARGEST_EMBEDDED,
) -> None:
    """Write the report page, whole or not at all.

    `artefacts` are the registry's entries in the order to show; `files` the built
    csv, tex, html, pdf and png files, named `<paper>/tables|figures/<name>.<ending>`; `captions`
    gives an HTML fragment by artefact id; `problems` has a row per image left out (dataset,
    record, reason, detail); `provenance` a small table per heading. Figures are embedded while all
    of them together have at most `largest_embedded` bytes, and linked relative to `out` otherwise.
    Raises ContractError when a stated file does not exist.
    """
    out = Path(out)
    built = _by_name(files)
    pictures = [path for endings in built.values() for path in [endings.get("png")] if path]
    embed = sum(path.stat().st_size for path in pictures) <= largest_embedded
    papers: dict[str, Paper] = {}
    for artefact in artefacts:
        if artefact.illustration:
            continue
        key = artefact.paper
        paper = papers.setdefault(key, Paper(key, summaries.get(key, Summary(key))))
        items = _items(artefact, built, out, Markup(captions.get(artefact.id, "")), embed)
        if not items:
            reason = artefact.reason or "It was not part of this run."
            paper.missing.append((_heading(artefact), reason))
        paper.items += items
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["count"] = format_count
    page = environment.from_string(Path(template).read_text(encoding="utf-8")).render(
        title=title,
        papers=list(papers.values()),
        shown=sum(len(paper.items) for paper in papers.values()),
        missing=sum(len(paper.missing) for paper in papers.values()),
        problems=_problem_counts(problems),
        problem_rows=problems.head(PROBLEMS_SHOWN).fillna("").to_dict("records"),
        problem_total=len(problems),
        provenance=provenance,
        config=config,
        table_style=Markup(TABLE_STYLE),
    )
    write_text(out, page)


def _by_name(files: Iterable[str | os.PathLike[str]]) -> dict[tuple[str, str], dict[str, Path]]:
    """Return the files by (paper, name without ending) and ending."""
    built: dict[tuple[str, str], dict[str, Path]] = {}
    for file in files:
        path = Path(file)
        if not path.is_file():
            raise ContractError(
                f"{path}: this file of the report is missing. Run the step that makes it again."
            )
        name, _, ending = path.name.rpartition(".")
        built.setdefault((path.parent.parent.name, name), {})[ending] = path
    return built


def _items(
    artefact: Artefact,
    built: Mapping[tuple[str, str], Mapping[str, Path]],
    out: Path,
    caption: Markup,
    embed: bool,
) -> list[Item]:
    """Return what the page shows of an artefact: a figure of all files, or each table by itself."""
    if not artefact.built:
        return []
    key, stem = artefact.paper, artefact.stem
    members = [name for name in built if name == (key, stem)]
    if artefact.family:
        members = [name for name in built if name[0] == key and name[1].startswith(f"{stem}_")]
    heading = _heading(artefact)
    if artefact.kind == "table":
        return [
            _table_item(artefact, built[name], out, caption, name[1].removeprefix(stem).lstrip("_"))
            for name in members
        ]
    pictures = tuple(
        _picture(built[name], out, heading, _member(name[1], stem), embed)
        for name in members
        if "png" in built[name]
    )
    return [Item(artefact.id, heading, caption, pictures=pictures)] if pictures else []


def _table_item(
    artefact: Artefact, endings: Mapping[str, Path], out: Path, caption: Markup, model: str
) -> Item:
    """Return a table; one of a family has its model in anchor and heading."""
    table, heading, anchor = _table_of(endings["html"]), _heading(artefact), artefact.id
    if model:
        heading, anchor = f"{heading}: {model}", f"{anchor}-{model}"
    return Item(anchor, heading, caption, table, _hint(table), links=_links(endings, out))


def _heading(artefact: Artefact) -> str:
    if not artefact.number[0].isdigit():
        return artefact.title
    return f"{artefact.label.replace('-', '–')}. {artefact.title}"


def _member(name: str, family: str) -> str:
    """Return what a file of a family shows: `figure_7-26_llava_2` is llava, part 2."""
    rest = name.removeprefix(family).lstrip("_")
    model, _, page = rest.rpartition("_")
    return f"{model}, part {page}" if model else rest


def _table_of(path: Path) -> Markup:
    """Return the table inside a page that `table_page` wrote; it is escaped there."""
    page = path.read_text(encoding="utf-8")
    # Our own page: what is in it was escaped when it was written.
    return Markup(page.partition("<body>")[2].partition("</body>")[0].strip())


def _hint(table: str) -> Hint | None:
    """Return what to tell where the frame, as high and wide as the page allows, cuts a table."""
    found = re.search(r'<table [^>]*data-rows="(\d+)" data-width="(\d+)"', table)
    if found is None:
        return None
    rows, width = int(found[1]), int(found[2])
    hint = Hint(rows, rows > _FRAME_ROWS, width > _FRAME_WIDTH, width > _NARROW_WIDTH)
    return hint if hint.down or hint.sideways_on_narrow else None


def _picture(
    endings: Mapping[str, Path], out: Path, heading: str, name: str, embed: bool
) -> Picture:
    path = endings["png"]
    content = path.read_bytes()
    if embed:
        source = f"data:image/png;base64,{base64.b64encode(content).decode('ascii')}"
    else:
        source = _relative(path, out)
    # A PNG's first chunk holds its width and height as big-endian integers.
    width, height = (int.from_bytes(content[i : i + 4], "big") for i in (16, 20))
    alternative = f"{heading} ({name})" if name else heading
    return Picture(source, width, height, alternative, name, _links(endings, out))


def _links(endings: Mapping[str, Path], out: Path) -> tuple[tuple[str, str], ...]:
    return tuple(
        (ending, _relative(endings[ending], out)) for ending in _DOWNLOADS if ending in endings
    )


def _relative(path: Path, out: Path) -> str:
    return quote(Path(os.path.relpath(path, out.parent)).as_posix())


def _problem_counts(problems: pd.DataFrame) -> list[dict[str, Any]]:
    if problems.empty:
        return []
    counts = problems.groupby(["dataset", "reason"]).size().reset_index(name="count")
    return [{str(name): value for name, value in row.items()} for row in counts.to_dict("records")]
