"""The report page: everything built is in it, everything else is counted, all text is escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vlmfair.artefacts import Artefact
from vlmfair.errors import ContractError
from vlmfair.render.panels import draw_heat, place
from vlmfair.render.report import Summary, build_report
from vlmfair.render.style import new_figure, save_figure
from vlmfair.render.tables import Column, Table, write_table_files

TEMPLATE = Path(__file__).resolve().parents[2] / "resources" / "templates" / "report.html.j2"
HOSTILE = "<img src=x onerror=alert(1)>"
NO_PROBLEMS = pd.DataFrame(columns=["dataset", "record", "reason", "detail"])


class Page(HTMLParser):
    """The ids, links and picture sources of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [value for value in [found.get("id")] if value]
        self.links += [value for value in [found.get("href")] if value]
        self.sources += [value for value in [found.get("src")] if value]


def artefact(kind: str, number: str, **more: object) -> Artefact:
    settings = {"built": True, "title": f"{kind} title", **more}
    return Artefact(id=f"gras_{kind}_{number}", paper="gras", kind=kind, number=number, **settings)


def make_results(root: Path) -> list[Path]:
    """One table, one figure, and a family of two files."""
    table = Table(
        title="t",
        data=pd.DataFrame({"a": [1]}),
        columns=(Column("Model", align="left"), Column("Score")),
        rows=((HOSTILE, "98.25"),),
    )
    written = write_table_files(table, root / "gras" / "tables" / "table_2", "tab:2")
    for name in ("figure_3", "figure_7-26_a_model_1", "figure_7-26_a_model_2"):
        figure = new_figure(2, 1)
        draw_heat(place(figure, 1, 0, 1, 1), np.ones((1, 1)), 1.0, ["row"])
        written += save_figure(figure, pd.DataFrame(), root / "gras" / "figures" / name)
    return written


ARTEFACTS = [
    artefact("table", "2"),
    artefact("table", "3"),
    artefact("figure", "2", illustration=True, built=False, reason="An illustration."),
    artefact("figure", "3"),
    artefact("figure", "4", built=False, reason="Needs <more> images."),
    artefact("figure", "7-26", family=True),
]


def build(root: Path, files: list[Path], **more: object) -> str:
    out = root / "report" / "index.html"
    settings = {
        "title": "Report",
        "template": TEMPLATE,
        "captions": {"gras_table_2": "<p>The caption.</p>"},
        "summaries": {"gras": Summary("GRAS bias score", (f"{HOSTILE} has 98.25.",))},
        "problems": NO_PROBLEMS,
        "provenance": {"Versions": {"numpy": "2.4.6", HOSTILE: HOSTILE}},
        "config": f"suite: {HOSTILE}",
        **more,
    }
    artefacts = settings.pop("artefacts", ARTEFACTS)
    build_report(artefacts, files, out, **settings)
    return out.read_text(encoding="utf-8")


def test_what_is_built_is_shown_and_what_is_not_is_counted(tmp_path: Path) -> None:
    text = build(tmp_path, make_results(tmp_path))
    page = Page(text)
    assert {"gras_table_2", "gras_figure_3", "gras_figure_7-26"} <= set(page.ids)
    assert "This report shows 3 tables and figures. 2 others of the papers are not in it;" in text
    assert "Not in this report (2)" in text
    assert "Needs &lt;more&gt; images." in text
    assert "It was not part of this run." in text
    assert "An illustration." not in text


@pytest.mark.parametrize(
    ("rows", "columns", "on_narrow", "on_wide"),
    [
        (3, 2, "", ""),
        (3, 7, "3 rows. Scroll in the frame sideways to see", ""),
        (
            3,
            16,
            "3 rows. Scroll in the frame sideways to see",
            "3 rows. Scroll in the frame sideways",
        ),
        (500, 2, "500 rows. Scroll in the frame down to see", "500 rows. Scroll in the frame down"),
        (
            500,
            7,
            "500 rows. Scroll in the frame sideways and down",
            "500 rows. Scroll in the frame down",
        ),
    ],
)
def test_a_table_that_its_frame_cuts_says_so(
    tmp_path: Path, rows: int, columns: int, on_narrow: str, on_wide: str
) -> None:
    table = Table(
        title="t",
        data=pd.DataFrame(),
        columns=tuple(Column(f"value {i}") for i in range(columns)),
        rows=(("−0.123",) * columns,) * rows,
    )
    files = write_table_files(table, tmp_path / "gras" / "tables" / "table_2", "tab:2")

    text = build(tmp_path, files)

    hint = "".join(re.findall(r'<p class="hint.*?</p>', text))
    seen_on_wide = re.sub(r'<(p|span) class="[^"]*on-narrow">.*?</\1>', "", hint)
    assert without_tags(hint).startswith(on_narrow)
    assert without_tags(seen_on_wide).startswith(on_wide)
    assert bool(hint) == bool(on_narrow)
    assert bool(seen_on_wide) == bool(on_wide)


def without_tags(text: str) -> str:
    return re.sub(r"<[^>]*>", "", text)


def test_every_link_of_the_contents_has_its_target(tmp_path: Path) -> None:
    page = Page(build(tmp_path, make_results(tmp_path)))
    inner = [link.removeprefix("#") for link in page.links if link.startswith("#")]
    assert len(inner) >= 5
    assert set(inner) <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def test_links_to_files_are_relative_and_exist(tmp_path: Path) -> None:
    page = Page(build(tmp_path, make_results(tmp_path)))
    outer = [link for link in page.links if not link.startswith("#")]
    assert "../gras/tables/table_2.csv" in outer
    assert "../gras/figures/figure_3.pdf" in outer
    assert all((tmp_path / "report" / link).is_file() for link in outer)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    problems = pd.DataFrame(
        [("fairface", HOSTILE, HOSTILE, None)], columns=["dataset", "record", "reason", "detail"]
    )
    text = build(tmp_path, make_results(tmp_path), problems=problems)
    assert HOSTILE not in text
    assert "x" not in Page(text).sources
    assert text.count("&lt;img src=x onerror=alert(1)&gt;") >= 6


def test_small_pictures_are_inside_the_page(tmp_path: Path) -> None:
    page = Page(build(tmp_path, make_results(tmp_path)))
    assert len(page.sources) == 3
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)


def test_many_pictures_are_linked_relative_to_the_page(tmp_path: Path) -> None:
    page = Page(build(tmp_path, make_results(tmp_path), largest_embedded=100))
    assert page.sources[0] == "../gras/figures/figure_3.png"
    assert all((tmp_path / "report" / source).is_file() for source in page.sources)


def test_the_page_asks_nothing_from_the_network(tmp_path: Path) -> None:
    text = build(tmp_path, make_results(tmp_path))
    assert not re.search(r"https?://|@import|url\(|<script", text)


def test_each_table_of_a_family_is_shown_with_its_model(tmp_path: Path) -> None:
    table = Table("t", pd.DataFrame(), (Column("Model"),), (("x",),))
    folder = tmp_path / "gras" / "tables"
    files = [
        file
        for model in ("one", "two")
        for file in write_table_files(table, folder / f"table_38-43_{model}", "tab:38")
    ]
    family = artefact("table", "38-43", family=True)

    page = build(tmp_path, files, artefacts=[family])

    assert Page(page).ids.count("gras_table_38-43-one") == 1
    assert "Tables 38–43. table title: one" in page
    assert "Tables 38–43. table title: two" in page


def test_a_family_names_model_and_part(tmp_path: Path) -> None:
    text = build(tmp_path, make_results(tmp_path))
    assert "a_model, part 1" in text
    assert "a_model, part 2" in text
    assert "Figures 7–26. figure title" in text


def test_problems_are_counted_by_reason(tmp_path: Path) -> None:
    problems = pd.DataFrame(
        [("fairface", f"fairface/{i}.jpg", "image_unreadable", "") for i in range(130)]
        + [("ai_face", "ai_face/1.png", "image_missing", "")],
        columns=["dataset", "record", "reason", "detail"],
    )
    text = build(tmp_path, make_results(tmp_path), problems=problems)
    assert "131 records" in text
    assert '<td>image_unreadable</td><td class="number">130</td>' in text
    assert "The first 100 records" in text


def test_a_file_that_is_not_there_stops_the_report(tmp_path: Path) -> None:
    files = [*make_results(tmp_path), tmp_path / "gras" / "tables" / "table_9.csv"]
    with pytest.raises(ContractError, match=r"table_9\.csv: this file of the report is missing"):
        build(tmp_path, files)
    assert not (tmp_path / "report" / "index.html").exists()
