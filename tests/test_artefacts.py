"""The registry of tables and figures: complete for the three papers, and checked when read."""

from __future__ import annotations

from pathlib import Path

import pytest

from vlmfair.artefacts import (
    Artefact,
    built_artefacts,
    load_artefacts,
    missing_artefacts,
)
from vlmfair.errors import ConfigError
from vlmfair.papers.gras.artefacts import FAMILIES
from vlmfair.papers.gras.figures import FIGURES as FIGURE_DRAWERS
from vlmfair.papers.gras.tables import TABLES as TABLE_BUILDERS
from vlmfair.papers.lvlm_fairness.figures import FIGURES as LVLM_FIGURES
from vlmfair.papers.lvlm_fairness.tables import TABLES as LVLM_TABLES
from vlmfair.papers.vl_bicle.tables import MODEL_TABLES as BICLE_MODEL_TABLES
from vlmfair.papers.vl_bicle.tables import TABLES as BICLE_TABLES

# Highest table and figure numbers of the papers; VL-BICLE's tables 6 to 37 and 50 onwards belong to
# appendices whose numbering its text does not give: they have speaking names.
TABLES = {
    "gras": {*range(1, 10)},
    "lvlm_fairness": {*range(1, 14)},
    "vl_bicle": {*range(1, 6), *range(38, 50)},
}
FIGURES = {
    "gras": {*range(1, 53)},
    "lvlm_fairness": {*range(1, 7)},
    "vl_bicle": {*range(1, 7)},
}


@pytest.fixture(scope="module")
def artefacts(root: Path) -> tuple[Artefact, ...]:
    return load_artefacts(root / "config/artefacts.yaml")


@pytest.mark.parametrize("paper", TABLES)
@pytest.mark.parametrize(("kind", "expected"), [("table", TABLES), ("figure", FIGURES)])
def test_every_number_of_a_paper_is_listed(
    artefacts: tuple[Artefact, ...], paper: str, kind: str, expected: dict[str, set[int]]
) -> None:
    listed = [
        number
        for entry in artefacts
        if entry.paper == paper and entry.kind == kind
        for number in entry.numbers
    ]

    assert set(listed) == expected[paper]
    assert listed == sorted(listed)


def test_parts_of_a_table_or_figure_are_listed_apart(artefacts: tuple[Artefact, ...]) -> None:
    parts = [entry.number for entry in artefacts if entry.number[-1:].isalpha() and entry.numbers]

    # Fairness of LVLMs: Tables 2, 9, 10, 11, 13 and Figure 3 have lettered panels.
    assert parts == [
        *("2a", "2b", "2c", "9a", "9b", "10a", "10b", "11a", "11b", "13a", "13b", "13c"),
        *("3a", "3b", "3c", "3d", "3e"),
    ]


def test_appendices_without_a_number_have_a_speaking_name(artefacts: tuple[Artefact, ...]) -> None:
    named = [entry.id for entry in artefacts if not entry.numbers]

    assert named == [
        "gras_table_selection",
        "gras_table_deviations",
        "gras_table_template_sensitivity",
        "gras_table_surface_forms",
        "lvlm_fairness_table_unparsed",
        "lvlm_fairness_table_unparsed_utkface",
        "lvlm_fairness_table_deviations",
        "vl_bicle_table_coco_bias",
        "vl_bicle_table_balanced_pool",
        "vl_bicle_table_dci",
        "vl_bicle_table_visual_cot",
        "vl_bicle_table_synthetic",
        "vl_bicle_table_drawn_images",
        "vl_bicle_table_claims",
        "vl_bicle_table_scorecard",
        "vl_bicle_table_unrevealed",
        "vl_bicle_table_funnel",
        "vl_bicle_table_deviations",
        "vl_bicle_figure_synthetic",
    ]


def test_all_of_gras_is_built_but_its_illustration(artefacts: tuple[Artefact, ...]) -> None:
    assert missing_artefacts(artefacts, "gras") == []
    assert [entry.id for entry in artefacts if entry.illustration and entry.paper == "gras"] == [
        "gras_figure_2"
    ]
    assert len(built_artefacts(artefacts, "gras")) == 21


def test_all_of_lvlm_fairness_is_built_but_its_illustration(
    artefacts: tuple[Artefact, ...],
) -> None:
    own = built_artefacts(artefacts, "lvlm_fairness")

    assert missing_artefacts(artefacts, "lvlm_fairness") == []
    assert {entry.stem for entry in own if entry.kind == "table"} == set(LVLM_TABLES)
    assert {entry.stem for entry in own if entry.kind == "figure"} == set(LVLM_FIGURES)
    assert not any(entry.family for entry in own)


def test_every_built_table_of_vl_bicle_has_a_builder(artefacts: tuple[Artefact, ...]) -> None:
    tables = [entry for entry in built_artefacts(artefacts, "vl_bicle") if entry.kind == "table"]

    assert {entry.stem for entry in tables if not entry.family} == set(BICLE_TABLES)
    assert {entry.stem for entry in tables if entry.family} == set(BICLE_MODEL_TABLES)


def test_what_is_built_has_a_builder(artefacts: tuple[Artefact, ...]) -> None:
    tables = [entry.stem for entry in built_artefacts(artefacts, "gras") if entry.kind == "table"]
    figures = [entry for entry in built_artefacts(artefacts, "gras") if entry.kind == "figure"]

    assert set(tables) == set(TABLE_BUILDERS)
    assert {entry.stem for entry in figures} == {*FIGURE_DRAWERS, *FAMILIES}
    assert {entry.stem for entry in figures if entry.family} == set(FAMILIES)


def test_what_is_built_has_its_caption(artefacts: tuple[Artefact, ...], root: Path) -> None:
    without = [entry.id for entry in built_artefacts(artefacts) if not _has_text(root, entry)]

    assert without == []


def _has_text(root: Path, artefact: Artefact) -> bool:
    path = root / artefact.caption
    return path.is_file() and bool(path.read_text(encoding="utf-8").strip())


def test_what_is_not_built_says_why(artefacts: tuple[Artefact, ...]) -> None:
    assert all(entry.reason.endswith(".") for entry in artefacts if not entry.built)


def test_names_for_readers() -> None:
    def entry(kind: str, number: str) -> Artefact:
        return Artefact("", "gras", kind, number, "", built=True)

    assert entry("table", "2").label == "Table 2"
    assert entry("figure", "7-26").label == "Figures 7-26"
    assert entry("table", "surface_forms").label == "Table: surface forms"
    assert entry("figure", "3a").stem == "figure_3a"
    assert entry("figure", "3a").folder == "gras/figures"
    assert entry("figure", "3a").suffixes == ("pdf", "png", "csv")


GOOD = """\
- id: gras_table_2
  paper: gras
  kind: table
  number: "2"
  title: Scores
  metric: score/gras_bias_score
  caption: workflow/report/gras/table_2.rst
  built: true
"""


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('number: "2"', "number: 2", "in quotes if a number"),
        ("built: true", "built: yes please", "Write true or false"),
        ("built: true", "built: false", "Write the reason"),
        ("built: true", "built: true\n  reason: Because.", "no reason"),
        ("paper: gras", "paper: glas", "Write one of gras"),
        ("kind: table", "kind: tabel", "Write one of table"),
        ("id: gras_table_2", "id: gras_table_3", "Write gras_table_2"),
        ("metric: score/gras_bias_score", "metric: score", "<experiment>/<metric>"),
        ("title: Scores", "titel: Scores", "'titel' is unknown"),
        ("  title: Scores\n", "", "a key is missing"),
        ("table_2.rst", "../../secret.rst", "Write caption: workflow/report/gras/table_2.rst"),
        ('number: "2"', 'number: "../2"', "Write it like 2, 2a, 7-26"),
        ("- id", "  id", "Write one `- id: ...` entry"),
        ("- id", "- {\n- id", "not valid YAML in line 2"),
        (GOOD, GOOD + GOOD, "listed twice"),
    ],
)
def test_a_damaged_registry_is_refused(tmp_path: Path, before: str, after: str, says: str) -> None:
    assert before in GOOD
    path = tmp_path / "artefacts.yaml"
    path.write_text(GOOD.replace(before, after, 1), encoding="utf-8")

    with pytest.raises(ConfigError) as caught:
        load_artefacts(path)

    assert says in str(caught.value)
