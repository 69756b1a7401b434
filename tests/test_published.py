"""The published numbers of each paper: every cell is there once, with its location."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from vlmfair.audit.cells import Cell, load_cells
from vlmfair.audit.published import Published, load_published, select
from vlmfair.errors import ConfigError
from vlmfair.papers.gras.questions import load_prompts, load_traits


@pytest.fixture(scope="module")
def gras(root: Path) -> tuple[Published, ...]:
    return load_published(root / "resources/published/gras.csv")


def test_every_cell_of_the_tables_is_there(gras: tuple[Published, ...]) -> None:
    cells = Counter(entry.location for entry in gras if entry.location.startswith("Table"))

    # Table 2: 5 models. Table 4: 100 words. Table 5: 5 ids. Tables 6-9: 5 models x 4 temperatures x
    # 5 wordings. Table 3 is an image in the paper's text; its caption states two claims per model.
    assert cells == {
        "Table 2": 5,
        "Table 3 caption": 10,
        "Table 4": 100,
        "Table 5": 5,
        **{f"Table {number}": 100 for number in (6, 7, 8, 9)},
    }


def test_every_number_has_a_location_and_is_there_once(gras: tuple[Published, ...]) -> None:
    keys = Counter(
        (
            *(entry.location, entry.model, entry.setting, entry.prompt, entry.attribute),
            *(entry.group, entry.item, entry.metric),
        )
        for entry in gras
    )

    assert all(entry.location and entry.paper == "gras" for entry in gras)
    assert max(keys.values()) == 1


def test_p_value_tables_have_every_combination(gras: tuple[Published, ...]) -> None:
    for number, trait in ((6, "affectionate"), (7, "annoying"), (8, "bad"), (9, "polite")):
        cells = select(gras, location=f"Table {number}")
        combinations = {(cell.model, cell.setting, cell.prompt) for cell in cells}
        assert {cell.item for cell in cells} == {trait}
        assert len(combinations) == 5 * 4 * 5
        assert {setting for _, setting, _ in combinations} == {"T=0.5", "T=0.7", "T=1.0", "T=1.5"}


def test_some_cells_as_printed(gras: tuple[Published, ...]) -> None:
    def cell(**keys: str) -> str:
        (found,) = select(gras, **keys)
        return found.value

    assert cell(location="Table 2", model="paligemma2-3b-mix-224") == "98.25"
    assert cell(location="Table 4", item="narrow-minded") == "-1.87"
    phi = "Phi-4-multimodal-instruct"
    assert cell(location="Table 5", model=phi) == "13022"
    blip = {"model": "blip2-opt-2.7b", "location": "Table 8"}
    assert cell(**blip, setting="T=1.5", prompt="T2") == "0.385"
    qwen = {"model": "Qwen2.5-VL-3B-Instruct", "location": "Table 7"}
    assert cell(**qwen, setting="T=0.5", prompt="T4") == "0.0197"


def test_the_error_of_the_text_about_llava_s_age_traits_is_noted(
    gras: tuple[Published, ...],
) -> None:
    llava = select(gras, model="llava-1.5-7b-hf", attribute="age", metric="not_significant")

    assert [entry.item for entry in llava] == ["caring", "compassionate"]
    assert all("error of the text" in entry.note for entry in llava)


def test_table_4_is_the_trait_list(root: Path, gras: tuple[Published, ...]) -> None:
    traits = load_traits(root / "resources/words/gras_traits.csv")

    assert [(trait.word, trait.valence, trait.polarity) for trait in traits] == [
        (entry.item, entry.number, entry.group) for entry in select(gras, location="Table 4")
    ]


def test_table_5_is_in_the_prompts_file(root: Path, gras: tuple[Published, ...]) -> None:
    prompts = load_prompts(root / "resources/prompts/gras.yaml")

    assert {token.model: token.id for token in prompts.yes_ids.values()} == {
        entry.model: int(entry.number) for entry in select(gras, location="Table 5")
    }


@pytest.mark.parametrize(
    ("relation", "value", "recomputed", "agrees"),
    [
        ("=", "98.25", 98.25, True),
        ("=", "98.25", 98.254, True),
        ("=", "98.25", 98.26, False),
        (">", "60", 60.0, False),
        (">", "60", 60.0000001, True),
        (">=", "88", 88.0, True),
        ("<", "26", 26.0, False),
        ("<=", "26", 26.0, True),
        # 100 * 0.07 is 7.000000000000001 in binary; that is not "more than 7 %".
        (">", "7", 100 * 0.07, False),
    ],
)
def test_a_recomputed_number_agrees_or_not(
    relation: str, value: str, recomputed: float, agrees: bool
) -> None:
    entry = Published("p", "l", "", "", "", "", "", "", "m", relation, value, "")

    assert entry.agrees_with(recomputed) is agrees


HEADER = "paper,location,model,setting,prompt,attribute,group,item,metric,relation,value,note\n"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (HEADER.replace(",relation", ""), "the column relation is missing"),
        (HEADER + "gras,,,,,,,,score,=,98,\n", "line 2: location or metric is empty"),
        (HEADER + "gras,Table 2,,,,,,,score,about,98,\n", "Write one of =, >"),
        (HEADER + "gras,Table 2,,,,,,,score,=,high,\n", "Write the printed number"),
        (HEADER + "gras,Table 2,,,,,,,score,=,nan,\n", "Write the printed number"),
        (HEADER + "gras,Table 2\n", "location or metric is empty"),
    ],
)
def test_a_damaged_table_is_refused(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "gras.csv"
    path.write_text(content, encoding="utf-8")

    with pytest.raises(ConfigError, match=says):
        load_published(path)


def test_a_missing_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="are missing"):
        load_published(tmp_path / "gras.csv")


# ------------------------------------------------------------------- fairness of LVLMs, by cells


@pytest.fixture(scope="module")
def lvlm_fairness(root: Path) -> tuple[Cell, ...]:
    return load_cells(root / "resources/published/lvlm_fairness.csv")


def test_every_cell_of_the_lvlm_tables_is_there(lvlm_fairness: tuple[Cell, ...]) -> None:
    cells = Counter(cell.table for cell in lvlm_fairness if cell.table.isdigit())

    assert cells == {
        "1": 12 + 9,
        "2": 11 * (6 + 8 + 8),  # models x columns of the three panels
        "3": 7 * 9,
        "4": 9 * 9,
        "5": 3 * 3 * 4,  # models x answers before x (their number, three answers after)
        "8": 9 * 6,
        **dict.fromkeys(("9", "10", "11"), 2 * 8 * 13),  # prompts x models x occupations
        "12": 9 * 7,
        "13": 11 * (6 + 8 + 8),
    }


def test_the_baselines_have_no_single_choice(lvlm_fairness: tuple[Cell, ...]) -> None:
    absent = {
        (cell.table, cell.model, cell.prompt) for cell in lvlm_fairness if cell.value == "N/A"
    }

    assert absent == {(table, name, "p2") for table in ("2", "13") for name in ("CLIP", "ViT")}


@pytest.mark.parametrize(
    ("location", "value"),
    [
        ("Table 1 UTKFace, Race Asian", "4027"),
        ("Table 2a, ViT, p1, GD_Male-Female", "-0.0206"),
        ("Table 2c, Llama-3.2-V (11B), p2, GD_Young-Old", "-0.0217"),
        ("Table 3, ShareGPT4V (34B), race, R_Black", "0.7622"),
        ("Table 4, ShareGPT4V (7B), p2, GD_Male-Female Imp (%)", "73.98"),
        ("Table 5, Gimini 1.5 Pro, p2, Raw Unknown to Yes", "326"),
        ("Table 8, MiniCPM-V (8B), p1, Acc_RE", "0.4904"),
        ("Table 9b, ShareGPT4V(13B), p2, horseman", "0.1363"),
        ("Table 10a, LLaVA-1.5 (7B), p1, prayer", "-0.3509"),
        ("Table 11b, GPT-4o, p2, skateboarder", "0.9043"),
        ("Table 12, Llama-3.2-V (11B), p2, Sample 1500 Error", "0.0014"),
        ("Table 13b, LLaVA-1.6 (34B), p2, F1_Dark", "0.1092"),
    ],
)
def test_lvlm_cells_as_printed(lvlm_fairness: tuple[Cell, ...], location: str, value: str) -> None:
    assert [cell.value for cell in lvlm_fairness if cell.location == location] == [value]


CELLS = "table,panel,model,prompt,column,value\n2,a,GPT-4o,p1,R_Male,0.7124\n"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (CELLS.replace(",prompt", ""), "the column prompt is missing"),
        (CELLS.replace("2,a", ",a"), "line 2: table or column is empty"),
        (CELLS.replace("R_Male", ""), "line 2: table or column is empty"),
        (CELLS.replace("0.7124", "inf"), "Write the printed number or N/A"),
        (CELLS.replace("0.7124", "8.32%"), "Write the printed number or N/A"),
        (CELLS.replace("0.7124", ""), "Write the printed number or N/A"),
        (CELLS + "2,a,GPT-4o,p1,R_Male,0.7386\n", "line 3: this cell is in line 2 already"),
    ],
)
def test_a_damaged_table_of_cells_is_refused(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "lvlm_fairness.csv"
    path.write_text(content, encoding="utf-8")

    with pytest.raises(ConfigError, match=says):
        load_cells(path)


def test_a_table_of_cells_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lvlm_fairness.csv"
    path.write_bytes(b"\xff\xfet\x00a\x00")

    with pytest.raises(ConfigError, match="not a csv file in UTF-8"):
        load_cells(path)
