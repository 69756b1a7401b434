"""The tables of the LVLM paper: printed cells come back as printed, and what must be told is."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from latex import needs_latex, too_wide
from lvlm_answers import PROMPTS, Row, judge, people
from lvlm_published import (
    MODELS,
    as_metrics,
    printed_rows,
    published_metrics,
    published_study,
)

from vlmfair.errors import ConfigError, ContractError
from vlmfair.papers.lvlm_fairness.measure import measure_model
from vlmfair.papers.lvlm_fairness.measure_data import measure_data
from vlmfair.papers.lvlm_fairness.study import Study
from vlmfair.papers.lvlm_fairness.study_files import study_of_run
from vlmfair.papers.lvlm_fairness.tables import TABLES, build_table, write_table
from vlmfair.render.table_tex import table_tex

NUMBERS = ["value", "n", "ci_low", "ci_high", "p", "p_adjusted", "effect"]


@pytest.fixture(scope="module")
def printed() -> pd.DataFrame:
    return published_metrics()


def say(request: Row, sample: Row) -> str | None:
    """Men are always recognised; women are refused by p1, and mostly by p2."""
    number = int("".join(filter(str.isdigit, sample["sample_id"])))
    if request["prompt"] == "p1" and number == 0:
        return None
    if sample["gender"] == "Male":
        return f'"{sample["occupation"]}"' if request["prompt"] == "p1" else "A. Yes"
    if request["prompt"] == "p1":
        return "I'm sorry, but I can't assist with that."
    return "C. Unknown" if number % 2 else "B. No"


def final(request: Row, sample: Row) -> str:
    return "Rationale: there is one.\nAnswer: Yes" if sample["gender"] == "Male" else "Hm."


def face(request: Row, sample: Row) -> str:
    return "male" if request["prompt"] == "gender" else sample["race"]


@pytest.fixture(scope="module")
def measured() -> pd.DataFrame:
    """Two models' measured answers: 24 nurses and 8 gymnasts, and faces."""
    facet = people(
        [
            (12, {"gender": "Male", "occupation": "nurse", "skin_tone": "light", "age": "old"}),
            (12, {"gender": "Female", "occupation": "nurse", "skin_tone": "dark", "age": "young"}),
            (3, {"gender": "Male", "occupation": "gymnast", "age": "middle"}),
            (5, {"gender": "Female", "occupation": "gymnast", "skin_tone": "medium"}),
        ]
    )
    races = ("white", "black", "asian", "indian", "others")
    faces = people([(4, {"gender": "Male", "race": race}) for race in races], "utkface")
    samples = {"facet": facet, "utkface": faces}
    judged = judge(facet, ["p1", "p2"], say)
    # The final prompt is judged as the single choice is; only its name differs.
    after = judge(facet, ["p2"], final)
    after = after.set_column(
        after.column_names.index("prompt"), "prompt", [["final"] * len(after)]
    ).set_column(after.column_names.index("experiment"), "experiment", [["rationale"] * len(after)])
    tables = {
        ("facet", "strict"): judged,
        ("rationale", "strict"): after,
        ("utkface", "strict"): judge(faces, ["gender", "race"], face, dataset="utkface"),
    }
    found = [
        measure_model(tables, samples, model=model, resample_sizes=(10, 500), bootstraps=50)
        for model in ("one", "two")
    ]
    return pd.concat([table.to_pandas() for table in (measure_data(samples), *found)])


@pytest.fixture(scope="module")
def study() -> Study:
    return Study(
        models=("one", "two"),
        prompts=PROMPTS,
        table_judge="strict",
        judges=("regex", "strict"),
        titles={"one": "Model_1 & co"},
    )


@pytest.mark.parametrize(
    ("table_id", "printed_table", "panel"),
    [
        *((f"table_2{panel}", "2", panel) for panel in "abc"),
        ("table_3", "3", ""),
        ("table_12", "12", ""),
    ],
)
def test_printed_cells_give_the_printed_table(
    table_id: str, printed_table: str, panel: str, printed: pd.DataFrame
) -> None:
    table = build_table(table_id, printed, published_study())

    assert list(table.rows) == printed_rows(printed_table, panel)


@pytest.mark.parametrize("panel", ["a", "b", "c"])
def test_table_13_is_the_printed_one_with_macro_f1_beside(
    panel: str, printed: pd.DataFrame
) -> None:
    rows = build_table(f"table_13{panel}", printed, published_study()).rows
    expected = printed_rows("13", panel)

    assert [row[: len(expected[0])] for row in rows] == expected
    # The paper has none; a cell without a number is a dash.
    assert {cell for row in rows for cell in row[len(expected[0]) :]} == {"–"}


def test_table_4_has_the_printed_percentages_and_counts_what_improved(
    printed: pd.DataFrame,
) -> None:
    table = build_table("table_4", printed, published_study())

    expected = [
        (model, *(f"{cell}%" if place % 3 == 2 else cell for place, cell in enumerate(cells)))
        for model, *cells in printed_rows("4")
    ]
    assert list(table.rows) == expected
    # Caption of the paper's Table 4: "21 out of 27 metrics".
    assert "21 of 27 numbers improve" in " ".join(table.notes)


def test_table_5_has_the_printed_counts(printed: pd.DataFrame) -> None:
    models = ("Gemini 1.5 Pro", "LLaVA-1.5 (7B)", "LLaVA-1.6 (34B)")
    table = build_table("table_5", printed, published_study(asked={"rationale": models}))

    assert [column.label for column in table.columns] == ["Model", "Raw", "Yes", "No", "Unknown"]
    assert table.rows[:3] == (
        ("Gemini 1.5 Pro", "Yes (4,443)", "4,158", "192", "93"),
        ("Gemini 1.5 Pro", "No (240)", "51", "179", "10"),
        ("Gemini 1.5 Pro", "Unknown (798)", "326", "252", "220"),
    )
    assert table.rows[-1] == ("LLaVA-1.6 (34B)", "Unknown (831)", "503", "288", "40")


def test_table_8_has_the_printed_accuracies_and_our_reader_beside(printed: pd.DataFrame) -> None:
    table = build_table("table_8", printed, published_study())

    # Our reader's column is the fourth of each prompt; it was not part of the paper.
    assert [row[:4] + row[5:8] for row in table.rows] == printed_rows("8")
    assert {row[4] for row in table.rows} == {"–"}
    assert "not part of this run: strict reader" in table.notes[-1]


@pytest.mark.parametrize("number", ["9", "10", "11"])
@pytest.mark.parametrize("panel", ["a", "b"])
def test_tables_by_class_have_the_printed_disparities(
    number: str, panel: str, printed: pd.DataFrame
) -> None:
    # The paper leaves out Llama-3.2-V here.
    table = build_table(f"table_{number}{panel}", printed, published_study(MODELS[:-1]))

    assert list(table.rows[:-2]) == printed_rows(number, panel)
    assert [row[0].partition(",")[0] for row in table.rows[-2:]] == ["Images", "Images"]


@pytest.mark.parametrize("table_id", sorted(TABLES))
def test_every_table_is_written_from_measured_answers(
    table_id: str, measured: pd.DataFrame, study: Study, tmp_path: Path
) -> None:
    files = write_table(table_id, measured, study, tmp_path / table_id, title="A <title>")

    assert [path.suffix for path in files] == [".csv", ".tex", ".html"]
    page = (tmp_path / f"{table_id}.html").read_text("utf-8")
    assert "A &lt;title&gt;" in page
    assert len(pd.read_csv(files[0])) > 0


@needs_latex
def test_every_table_fits_a_printed_page(
    measured: pd.DataFrame, printed: pd.DataFrame, study: Study, tmp_path: Path
) -> None:
    of_run = {name: table_tex(build_table(name, measured, study), name) for name in TABLES}
    of_paper = {
        f"paper {name}": table_tex(build_table(name, printed, published_study()), name)
        for name in TABLES
        if not name.startswith(("table_1", "table_5", "table_unparsed")) or name == "table_12"
    }

    assert too_wide(of_run | of_paper, tmp_path) == []


def test_groups_stand_in_the_order_of_the_paper(printed: pd.DataFrame) -> None:
    labels = [
        column.label for column in build_table("table_2c", printed, published_study()).columns
    ]

    assert labels[1:5] == ["R Young", "R Middle", "R Old", "GD Young-Old"]
    third = build_table("table_3", printed, published_study())
    assert [column.label for column in third.columns[4:]] == [
        *("R White", "R Black", "GD White-Black"),
        *("R Asian", "R Indian", "GD Asian-Indian"),
    ]


def test_the_csv_has_intervals_and_numbers_of_images_of_every_cell(
    measured: pd.DataFrame, study: Study
) -> None:
    data = build_table("table_2a", measured, study).data
    gap = data[(data["metric"] == "disparity") & (data["prompt"] == "p2")].iloc[0]

    assert (gap["model"], gap["value"], gap["n"]) == ("Model_1 & co", 1.0, 15)
    assert gap["ci_low"] <= 1.0 <= gap["ci_high"]
    assert gap["p"] < 1e-6
    assert data["setting"].unique().tolist() == ["strict"]


def test_numbers_of_images_stand_below_the_table(measured: pd.DataFrame, study: Study) -> None:
    notes = build_table("table_2a", measured, study).notes

    # One man's p1 failed: 14 of 15 men answered it, and all of them p2.
    assert "Images: Male 14–15, Female 17." in notes


def test_a_note_says_what_the_other_handling_of_invalid_answers_would_change(
    measured: pd.DataFrame, study: Study
) -> None:
    # All women's answers to p1 are refusals: 0 of 17 right, or no valid answer; men do not change.
    notes = " ".join(build_table("table_2a", measured, study).notes)
    assert "no recall here changes" in notes
    # Without them there is no woman to compute a recall of.
    out = Study(("one",), PROMPTS, "strict", ("strict",), invalid="excluded")
    table = build_table("table_2a", measured, out)
    assert table.rows[0][1:4] == ("1.0000", "–", "–")
    assert "counted as wrong (lvlm_fairness.invalid in the config)" in " ".join(table.notes)


def test_small_cells_and_significant_ones_have_a_sign_and_a_note(
    measured: pd.DataFrame, study: Study
) -> None:
    table = build_table("table_9b", measured, study)
    names = [column.label for column in table.columns]
    row = dict(zip(names, table.rows[0], strict=True))

    # 12 men and 12 women are nurses, 3 men and 5 women gymnasts; there are no others.
    assert (row["nurse"], row["gymnast"], row["singer"]) == ("1.0000*", "1.0000* †", "–")
    assert dict(zip(names, table.rows[-2], strict=True))["gymnast"] == "3"
    assert dict(zip(names, table.rows[-1], strict=True))["gymnast"] == "5"
    notes = " ".join(table.notes)
    assert "* p ≤ 0.05 by Fisher’s exact test with Holm’s correction over the classes." in notes
    assert "† the smaller group has fewer than 10 images" in notes
    assert "–: one of the groups has no image of the class" in notes


def test_a_table_without_signs_does_not_explain_them(printed: pd.DataFrame) -> None:
    notes = " ".join(build_table("table_2a", printed, published_study()).notes)

    assert "†" not in notes
    assert "*" not in notes


def test_unparsed_and_refused_answers_are_counted_by_group(
    measured: pd.DataFrame, study: Study
) -> None:
    table = build_table("table_unparsed", measured, study)
    names = [column.label for column in table.columns]
    rows = {row[:3]: dict(zip(names, row, strict=True)) for row in table.rows}
    refused = rows["Model_1 & co", "Direct question", "refused"]
    unparsed = rows["Model_1 & co", "After the rationale", "unparsed"]

    assert (refused["Male"], refused["Female"], refused["All"]) == ("0.0", "100.0", "54.8")
    # Five women have a medium skin tone, which is a small group; one question to a man failed.
    assert refused["Medium"] == "100.0 †"
    assert refused["Failed"] == "1"
    assert (unparsed["Male"], unparsed["Female"]) == ("0.0", "100.0")
    assert rows["two", "Single choice", "unparsed"]["All"] == "0.0"


def test_answers_without_a_choice_get_rows_and_columns_only_where_there_are_any(
    measured: pd.DataFrame, study: Study
) -> None:
    table = build_table("table_5", measured, study)

    # 15 men: Yes twice. 17 women: No or Unknown before, unparsed after.
    assert [column.label for column in table.columns][2:] == ["Yes", "No", "Unknown", "unparsed"]
    assert table.rows[0][1:] == ("Yes (15)", "15", "0", "0", "0")
    assert sum(int(row[5]) for row in table.rows[:4]) == 17
    assert table.rows[3][1] == "unparsed (0)"


def test_balanced_samples_larger_than_a_group_are_left_empty(
    measured: pd.DataFrame, study: Study
) -> None:
    table = build_table("table_12", measured, study)

    assert [column.spanner for column in table.columns][2::2] == ["Sample 10", "Sample 500"]
    assert table.rows[0][4:] == ("–", "–")
    assert "the smaller gender, which has 14 images" in " ".join(table.notes)


def test_table_1_counts_groups_in_the_order_of_the_paper(
    measured: pd.DataFrame, study: Study
) -> None:
    rows = build_table("table_1", measured, study).rows

    assert rows[0] == (
        *("FACET", "32 / 32", "Male (15), Female (17)"),
        "Young (12), Old (12), Middle (3), Unknown (5)",
        "Light (12), Dark (12), Medium (5), Unknown (3)",
        *("–", "Occupation"),
    )
    assert rows[1][5] == "White (4), Black (4), Asian (4), Indian (4), Others (4)"


def test_macro_f1_stands_beside_the_paper_s(measured: pd.DataFrame, study: Study) -> None:
    table = build_table("table_13a", measured, study)

    # Men: always right, P = 14/14 of all right answers, so that both are 1; women: never.
    assert table.columns[7].spanner == "Macro F1, direct question prompt"
    assert table.rows[0][1:3] == ("1.0000", "0.0000")
    assert table.rows[0][7:] == ("1.0000", "0.0000")


def test_prompts_are_shown_with_placeholders_and_are_exact_in_the_csv(
    measured: pd.DataFrame, study: Study
) -> None:
    facet, utkface = (build_table(name, measured, study) for name in ("table_6", "table_7"))

    assert facet.rows[0][2].endswith("in this image from this list: [FACET classes]")
    assert facet.rows[1][2] == (
        "In the image provided, Is there a [FACET class] in the image? "
        "Please choose one of the following: A. Yes, B. No, C. Unknown."
    )
    assert "backpacker, ballplayer" in str(facet.data.loc[0, "text"])
    assert [row[1] for row in utkface.rows] == ["p1", "p2"]
    assert utkface.rows[1][3] == "Race classes: [white, black, asian, indian, others]"


def test_the_released_frames_are_in_the_csv() -> None:
    released = published_study(style="released")
    table = build_table("table_7", published_metrics(), released)
    sent = table.data.set_index(["prompt", "family"])["text"]

    assert sent["gender", "llava"].startswith("<image>\nUSER: Give me")
    assert "[['white', 'black'" in str(sent["race", "llava"])
    assert "frames of the authors’ scripts" in " ".join(table.notes)


def test_deviations_name_the_swap_of_table_1_and_the_settings_of_the_run(
    root: Path, tmp_path: Path
) -> None:
    sub_questions = tmp_path / "sub_questions.json"
    sub_questions.write_text("{}", encoding="utf-8")
    files = SimpleNamespace(
        prompts=root / "resources/prompts/lvlm_fairness.yaml",
        classes=root / "resources/words/facet_classes.csv",
        examples=[],
        sub_questions=sub_questions,
        datasets=root / "config/datasets.yaml",
    )
    settings = SimpleNamespace(
        **{"models": ["a"], "baselines": [], "titles": (("a", "A"),), "judges": ["strict"]},
        **{"utkface_models": ["a"], "rationale_models": [], "table_judge": "strict"},
        **{"invalid": "excluded", "style": "paper", "direct": "p1", "choice": "p2"},
        **{"alpha": 0.05, "small_cell": 7, "resample_draws": 20},
    )
    run = study_of_run(files, settings)

    rows = build_table("table_deviations", pd.DataFrame(), run).rows

    assert rows[0][0] == "Table 1"
    assert "3,586 Asian and 4,027 Indian" in rows[0][1]
    assert any(row[2].startswith("Left out, as in the text") for row in rows)
    assert any("fewer than 7 images" in row[2] for row in rows)
    assert run.title("a") == "A"
    assert run.models_of("rationale") == ()


@pytest.mark.parametrize(
    ("table_id", "experiment", "metric"),
    [
        ("table_2a", "facet", "recall"),
        ("table_3", "utkface", "recall"),
        ("table_4", "rationale", "recall"),
        ("table_8", "facet", "accuracy"),
        ("table_9a", "facet", "disparity"),
        ("table_12", "resampling", "disparity"),
        ("table_unparsed", "facet", "unparsed_rate"),
    ],
)
def test_a_model_without_metrics_is_named(
    table_id: str, experiment: str, metric: str, measured: pd.DataFrame, study: Study
) -> None:
    own = (measured["experiment"] == experiment) & (measured["metric"] == metric)
    without = measured[~(own & (measured["model"] == "two"))]

    with pytest.raises(ContractError, match=f"no {experiment}/{metric} of the model two"):
        build_table(table_id, without, study)


def test_metrics_of_another_paper_only_are_refused(study: Study) -> None:
    other = as_metrics([{"paper": "gras", "experiment": "facet", "metric": "recall"}])

    with pytest.raises(ContractError, match="no row of lvlm_fairness"):
        build_table("table_2a", other, study)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"titles": {"a": "b"}}, "two models have the same title"),
        ({"invalid": "ignored"}, "Write one of wrong, excluded"),
        ({"table_judge": "sentence_t5"}, "not among the judges of the run"),
    ],
)
def test_a_study_that_contradicts_itself_is_refused(change: dict[str, object], says: str) -> None:
    facts: dict[str, object] = {"table_judge": "strict", "judges": ("strict",), **change}

    with pytest.raises(ConfigError, match=says):
        Study(models=("a", "b"), prompts=PROMPTS, **facts)  # type: ignore[arg-type]


def test_an_unknown_table_is_named(measured: pd.DataFrame, study: Study) -> None:
    with pytest.raises(ConfigError, match="lvlm_fairness has no table_2. Use one of table_1, "):
        build_table("table_2", measured, study)


def test_a_missing_number_is_a_dash_and_never_nan(measured: pd.DataFrame, study: Study) -> None:
    unknown = measured.assign(**dict.fromkeys(NUMBERS, np.nan))
    for table_id in ("table_2a", "table_4", "table_9a", "table_13b", "table_unparsed"):
        rows = build_table(table_id, unknown, study).rows
        assert not any("nan" in cell.lower() for row in rows for cell in row)
