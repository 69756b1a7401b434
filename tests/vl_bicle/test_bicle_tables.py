"""The tables of VL-BICLE: printed numbers come back as printed, and what must be told is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bicle_metrics import data_metrics, measure, synthesis_metrics
from bicle_samples import ROOT
from latex import needs_latex, too_wide

from vlmfair.audit.published import load_published
from vlmfair.errors import ConfigError, ContractError
from vlmfair.papers.vl_bicle import artefacts
from vlmfair.papers.vl_bicle.claims import check_claims, claim_metrics, claim_table, load_claims
from vlmfair.papers.vl_bicle.measure_rows import BicleRows, Place
from vlmfair.papers.vl_bicle.study import Study, WordList
from vlmfair.papers.vl_bicle.summary import summarise
from vlmfair.papers.vl_bicle.tables import MODEL_TABLES, TABLES, build_table, write_table
from vlmfair.papers.vl_bicle.tasks import TASKS
from vlmfair.render.table import Table
from vlmfair.render.table_tex import table_tex

TITLES = {"one": "Model_1 & co", "phi": "Phi35V"}
NUMBERS = ["value", "n", "ci_low", "ci_high", "p", "p_adjusted"]
SETTINGS = {
    "models": ["one", "phi"],
    "question_models": ["phi"],
    "tasks": list(TASKS),
    "retrieval": ["SIIR", "SITR", "SIIR/balanced", "SITR/balanced"],
    "synthesis": {"models": ["one"], "generators": {"flux": {"steps": 4}, "sd35l": {"steps": 4}}},
}
FUNNEL = pd.DataFrame(
    [("dci", "all records", "", 0, 400, None, None), ("dci", "queries", "", 0, 200, 100, 100)],
    columns=["dataset", "step", "reasons", "left_out", "left", "male", "female"],
)


@pytest.fixture(scope="module")
def measured() -> pd.DataFrame:
    """Two models with 12 queries of each gender, a control among them, and two runs."""
    frames = [
        data_metrics(),
        synthesis_metrics(),
        measure("one", seed=0),
        measure("phi", seed=1, strength=0.0),
    ]
    return pd.concat(frames, ignore_index=True)


@pytest.fixture(scope="module")
def study(measured: pd.DataFrame) -> Study:
    listed = load_claims(ROOT / "resources/published/vl_bicle_claims.yaml")
    claims = claim_table(check_claims(listed, measured, titles=TITLES, models=["one", "phi"]))
    return Study(
        models=("one", "phi"),
        titles=TITLES,
        runs=2,
        vqa_models=("phi",),
        synthetic_models=("one",),
        clip_backbone="ViT-B-32",
        bleu_signature="nrefs:var|tok:13a",
        claims=claims,
        published=load_published(ROOT / "resources/published/vl_bicle.csv"),
        funnels={"dci": FUNNEL},
        word_lists=(
            WordList("Male", {"singular": ("man",), "plural": ("men",), "pronoun": ("he",)}),
            WordList("Female", {"singular": ("woman",), "plural": ("women",), "pronoun": ("she",)}),
        ),
        collective=("people",),
        phrases=("man-made",),
    )


def all_tables(metrics: pd.DataFrame, study: Study) -> dict[str, Table]:
    """Every table of a run; those of one model are built for a model that has them."""
    built = {name: build_table(name, metrics, study) for name in TABLES}
    for name in MODEL_TABLES:
        model = "phi" if name == "table_visual_cot" else "one"
        built[name] = build_table(name, metrics, study, model)
    return built


def named(table: Table, *stubs: str) -> dict[str, str]:
    """One row by the names of its columns; columns below a shared heading are `heading/label`."""
    names = [
        f"{column.spanner}/{column.label}" if column.spanner else column.label
        for column in table.columns
    ]
    found = [row for row in table.rows if row[: len(stubs)] == stubs]
    assert len(found) == 1, stubs
    return dict(zip(names, found[0], strict=True))


def pronoun_metrics(value: float, sd: float, runs: int) -> pd.DataFrame:
    """The metrics of one model on VisoGender-OO after eight women, as the paper's text prints."""
    rows = BicleRows()
    place = Place("pronoun", "visogender_oo", "phi", "FS", 8, 0, "real", "pronoun")
    for group, number in (("Male", value), ("Female", 0.0), ("Male-Female", value)):
        rows.add(place, "error_rate", group, number, 69, ci=(value - 10, value + 10))
        rows.add(place, "error_rate_sd", group, sd, runs)
    rows.add(
        place, "error_shift", "Male-Female", 54.7, 69, ci=(40.0, 60.0), p=0.001, p_adjusted=0.01
    )
    return rows.table().to_pandas()


@pytest.mark.parametrize("table_id", sorted((*TABLES, *MODEL_TABLES)))
def test_every_table_is_written(
    table_id: str, measured: pd.DataFrame, study: Study, tmp_path: Path
) -> None:
    model = {"table_visual_cot": "phi"}.get(table_id, "one") if table_id in MODEL_TABLES else None

    files = write_table(
        table_id, measured, study, tmp_path / table_id, title="A <title>", model=model
    )

    assert [path.suffix for path in files] == [".csv", ".tex", ".html"]
    page = files[2].read_text("utf-8")
    # A table of one model keeps its own title, which names the model.
    expected = "Model_1 &amp; co" if model == "one" else "Phi35V" if model else "A &lt;title&gt;"
    assert f"{expected}</caption>" in page
    assert len(pd.read_csv(files[0])) > 0


@needs_latex
def test_every_table_fits_a_printed_page(
    measured: pd.DataFrame, study: Study, tmp_path: Path
) -> None:
    sources = {name: table_tex(table, name) for name, table in all_tables(measured, study).items()}

    assert too_wide(sources, tmp_path) == []
    assert "Float too large" not in (tmp_path / "tables.log").read_text("utf-8", "replace")


def test_a_printed_cell_comes_back_as_printed() -> None:
    # Section 4.1: MiniCPM has 27.2 on VisoGender-OO under FS at 8 shots, a mean of five runs; the
    # form is that of Phi35V's -1.88 +- 1.03 there.
    study = Study(("phi",), {"phi": "MiniCPM"}, shots=(8,), settings=("FS",), tasks=TASKS)

    table = build_table("table_38-43", pronoun_metrics(27.2, 1.03, 5), study, "phi")

    assert table.title == "Pronoun prediction on VisoGender-OO by MiniCPM"
    row = named(table, "FS", "8")
    assert row["ER_m−f"] == "27.20 ± 1.03"
    assert row["Shift"] == "+54.70*"
    notes = " ".join(table.notes)
    assert "* p ≤ 0.05 by the bootstrap for these demonstrations, after Benjamini and" in notes
    assert "Queries: 69 men, 69 women." in notes
    assert "standard deviation over 5 runs (n − 1 in the denominator)" in notes


def test_one_run_has_no_deviation() -> None:
    study = Study(("phi",), shots=(8,), settings=("FS",), tasks=("visogender_oo",))

    table = build_table("table_38-43", pronoun_metrics(27.2, np.nan, 1), study, "phi")

    assert named(table, "FS", "8")["ER_m"] == "27.20"


def test_rows_are_zero_shots_and_each_setting_with_each_number_of_demonstrations(
    measured: pd.DataFrame, study: Study
) -> None:
    rows = build_table("table_coco_bias", measured, study, "one").rows

    assert rows[0][:2] == ("Zero-shot", "0")
    settings = ("RS", "MS", "FS", "BS", "SIIR", "SITR")
    assert [row[:2] for row in rows[1:]] == [(s, k) for s in settings for k in "2468"]
    # Zero shots are no shift.
    assert rows[0][6:8] == ("–", "–")


def test_numbers_are_those_of_the_metrics(measured: pd.DataFrame, study: Study) -> None:
    row = named(build_table("table_coco_bias", measured, study, "one"), "MS", "8")

    def metric(name: str, group: str) -> pd.Series:
        keys = {"model": "one", "dataset": "coco_bias", "setting": "MS", "shots": 8, "run": 0}
        keys |= {"image_source": "real", "group": group, "metric": name, "experiment": "captioning"}
        found = measured
        for key, value in keys.items():
            found = found[found[key] == value]
        assert len(found) == 1
        return found.iloc[0]

    def shown(name: str, group: str) -> str:
        numbers = [metric(metric_name, group)["value"] for metric_name in (name, f"{name}_sd")]
        return " ± ".join(f"{number:.2f}".replace("-", "−") for number in numbers)

    assert row["ER_f"] == shown("error_rate", "Female")
    assert row["Gender revealed/RR_o"] == shown("reveal_rate", "all")
    assert row["Gender revealed/ER_m−f"] == shown("revealed_error_rate", "Male-Female")
    assert row["BLEU-4/all"] == shown("bleu4", "all")
    assert row["CLIP/m−f"] == shown("clipscore", "Male-Female")
    assert row["AvgL"] == shown("caption_length", "all")


def test_the_balanced_pool_stands_beside_the_pool_and_bs(
    measured: pd.DataFrame, study: Study
) -> None:
    rows = build_table("table_balanced_pool", measured, study, "one").rows

    assert list(dict.fromkeys(row[0] for row in rows)) == [
        *("Zero-shot", "BS", "SIIR", "SIIR, balanced pool", "SITR", "SITR, balanced pool")
    ]


def test_cells_that_were_never_asked_are_named(measured: pd.DataFrame, study: Study) -> None:
    table = build_table("table_dci", measured, study, "one")

    assert named(table, "FS", "8")["ER_m−f"] == "not asked"
    assert named(table, "FS", "6")["ER_m−f"] != "not asked"
    assert any("would hold 9 images" in note for note in table.notes)
    assert not table.data[(table.data["shots"] == 8) & table.data["asked"]].shape[0]
    unrevealed = build_table("table_unrevealed", measured, study)
    row = named(unrevealed, "Model_1 & co", "DCI", "name both")
    assert row["Not asked"] == "RS, MS, FS, BS: k = 8"


@pytest.mark.parametrize("table_id", ["table_scorecard", "table_unrevealed"])
def test_tables_with_some_visual_questions_name_the_judge_below(
    table_id: str, measured: pd.DataFrame, study: Study
) -> None:
    table = build_table(table_id, measured, study)

    assert any(study.judge_text in note for note in table.notes)


@pytest.mark.parametrize("table_id", ["table_2", "table_visual_cot", "table_claims"])
@pytest.mark.parametrize(
    ("judge", "sign"),
    [(("lexical", ""), "lexical judge"), (("llm", "gpt-oss-20b"), "judge gpt-oss-20b")],
)
def test_every_table_of_visual_questions_names_the_judge(
    table_id: str, judge: tuple[str, str], sign: str, measured: pd.DataFrame, study: Study
) -> None:
    judged = measured.assign(item=measured["item"].replace("lexical", judge[0]))
    own = replace(study, judge=judge[0], judge_model=judge[1])
    model = "phi" if table_id in MODEL_TABLES else None

    table = build_table(table_id, judged, own, model)

    headings = [column.spanner for column in table.columns]
    places = [row[0] for row in table.rows]
    assert any(sign in text for text in (*headings, *places))
    assert any(own.judge_text in note for note in table.notes)


def test_table_2_says_which_models_were_not_asked(measured: pd.DataFrame, study: Study) -> None:
    table = build_table("table_2", measured, study)
    row = named(table, "Model_1 & co")

    assert row["VisualCoT, CoT, lexical judge/ER_m−f"] == "not evaluated"
    assert row["COCOBias/ER_m−f"] not in ("–", "not evaluated")
    notes = " ".join(table.notes)
    assert "VisoGender-OO 12 and 12; VisoGender-OP 12 and 12; COCOBias 12 and 12" in notes
    assert "not evaluated: the model is not among those" in notes


def test_table_3_begins_with_the_paper_s_model(measured: pd.DataFrame, study: Study) -> None:
    table = build_table("table_3", measured, study)

    assert list(dict.fromkeys(row[0] for row in table.rows)) == ["Phi35V", "Model_1 & co"]
    assert any("nrefs:var|tok:13a" in note and "ViT-B-32" in note for note in table.notes)


def test_table_4_has_the_gaps_to_photographs(measured: pd.DataFrame, study: Study) -> None:
    table = build_table("table_4", measured, study)

    assert [row[:3] for row in table.rows] == [
        ("Model_1 & co", setting, shots) for setting in ("MS", "FS") for shots in ("4", "8")
    ]
    row = named(table, "Model_1 & co", "MS", "8")
    gap = float(row["FLUX/|ER_m−f|"]) - float(row["COCOBias/|ER_m−f|"])
    shown = float(row["FLUX/Gap"].rstrip("*").replace("−", "-"))
    assert shown == pytest.approx(gap, abs=0.011)
    assert not any(row[6].endswith("*") for row in table.rows)
    falls = sum(named_row.startswith("−") for one in table.rows for named_row in (one[6], one[9]))
    assert f"below 0 in {falls} of 8 cells" in " ".join(table.notes)


def test_gaps_that_differ_from_0_have_a_sign_and_a_note(
    measured: pd.DataFrame, study: Study
) -> None:
    change = measured["metric"] == "revealed_gap_change"
    surely = measured.assign(p_adjusted=measured["p_adjusted"].mask(change, 0.05))

    table = build_table("table_4", surely, study)

    assert all(row[6].endswith("*") and row[9].endswith("*") for row in table.rows)
    assert any("* p ≤ 0.05 by the bootstrap" in note for note in table.notes)


def test_drawn_images_are_counted_and_compared_with_photographs(
    measured: pd.DataFrame, study: Study
) -> None:
    table = build_table("table_drawn_images", measured, study)

    assert table.rows[0][:6] == ("COCOBias, photographs", "–", "–", "–", "–", "31.0")
    assert table.rows[1][:7] == ("FLUX", "17", "1", "1", "3", "30.0", "[29.0, 31.0]")
    notes = " ".join(table.notes)
    assert "17 are shown by every source, 2 are left out of all" in notes
    assert "by clip:ViT-B-32" in notes


def test_table_1_counts_pool_and_queries(measured: pd.DataFrame, study: Study) -> None:
    row = named(build_table("table_1", measured, study), "COCOBias")

    # bicle_samples: 10 men and 9 women in the pool, 3 queries of each.
    assert row["Demonstration pool/Male"] == "10"
    assert row["Demonstration pool/Male (%)"] == "52.6"
    assert (row["Queries/Male"], row["Queries/Female"], row["Queries/All"]) == ("3", "3", "6")


def test_table_5_has_every_word(study: Study) -> None:
    table = build_table("table_5", pd.DataFrame(), study)

    assert ("Feminine", "pronouns", "she", "1") in table.rows
    assert ("Several people", "plural and collective", "people", "1") in table.rows
    assert len(table.data) == 8


def test_findings_have_their_verdict_and_numbers_of_models(
    measured: pd.DataFrame, study: Study
) -> None:
    table = build_table("table_claims", measured, study)
    row = next(row for row in table.rows if "only Qwen3VL shifts positive" in row[1])

    assert len(table.rows) == len(study.claims)
    assert row[3] == "only Qwen3VL"
    assert row[-1] == "cannot be tested: not measured: Qwen3VL"
    tested = study.claims.set_index("id").loc["shift_op_ms"]
    shown = next(row for row in table.rows if row[1].startswith("five of six models show"))
    assert shown[4] == f"{tested['models_holding']} of {tested['models_tested']}"


def test_findings_read_from_their_file_are_the_same(
    measured: pd.DataFrame, study: Study, tmp_path: Path
) -> None:
    path = tmp_path / "claims.csv"
    study.claims.to_csv(path, index=False)
    again = replace(study, claims=pd.read_csv(path))

    assert build_table("table_claims", measured, again).rows == (
        build_table("table_claims", measured, study).rows
    )


def score(metrics: pd.DataFrame, study: Study, number: str) -> dict[str, str]:
    """The row of one number of the scorecard."""
    table = build_table("table_scorecard", metrics, study)
    row = next(row for row in table.rows if row[1].startswith(number))
    return dict(zip([column.label for column in table.columns], row, strict=True))


def test_printed_numbers_stand_beside_the_regenerated_ones(
    measured: pd.DataFrame, study: Study
) -> None:
    open_ = score(measured, study, "MiniCPM, VisoGender-OO, FS, k = 8")
    assert (open_["Paper"], open_["Here"]) == ("27.2", "–")
    assert open_["Verdict"] == "open: MiniCPM is not in this run"

    pool = score(measured, study, "VisoGender-OO: images of the pool")
    assert (pool["Paper"], pool["Here"], pool["Verdict"]) == ("92", "19", "differs")

    bound = score(measured, study, "COCOBias, DCI, all settings: lowest CLIPScore")
    assert (bound["Paper"], bound["Verdict"]) == ("≥ 25", "holds")


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(27.24, "as printed"), (30.0, "within the interval"), (60.0, "differs")],
)
def test_a_number_is_as_printed_within_the_interval_or_differs(value: float, verdict: str) -> None:
    own = load_published(ROOT / "resources/published/vl_bicle.csv")
    printed = tuple(one for one in own if one.value == "27.2")
    study = Study(("phi",), {"phi": "MiniCPM"}, published=printed)

    row = score(pronoun_metrics(value, 1.0, 5), study, "MiniCPM")

    assert row["Verdict"] == verdict
    assert row["n"] == "69"


def test_every_published_number_can_be_regenerated(measured: pd.DataFrame, study: Study) -> None:
    table = build_table("table_scorecard", measured, study)

    assert len(table.rows) == len(study.published)


def test_deviations_tell_the_settings_of_the_run(study: Study) -> None:
    own = replace(study, max_new_tokens={"caption": 64}, word_list="lic")

    rows = build_table("table_deviations", pd.DataFrame(), own).rows

    told = " ".join(row[2] for row in rows)
    for text in ("caption 64", "“lic”", "ViT-B-32", "vl_bicle.synthesis.models: Model_1 & co"):
        assert text in told


def test_the_funnel_counts_what_filters_leave(study: Study) -> None:
    rows = build_table("table_funnel", pd.DataFrame(), study).rows

    assert rows == (
        ("DCI", "all records", "0", "400", "–", "–"),
        ("DCI", "queries", "0", "200", "100", "100"),
    )


def test_the_report_s_sentences_have_the_numbers_of_the_tables(
    measured: pd.DataFrame, study: Study
) -> None:
    listed = load_claims(ROOT / "resources/published/vl_bicle_claims.yaml")
    found = claim_metrics(check_claims(listed, measured, titles=TITLES, models=["one", "phi"]))
    metrics = pd.concat([measured, found.to_pandas()], ignore_index=True)

    summary = summarise(metrics, ["one", "phi"], TITLES, judge="lexical")

    row = named(build_table("table_44-49", measured, study, "one"), "MS", "8")
    shift = f"{float(row['Shift'].rstrip('*').replace('−', '-')):+.1f}".replace("-", "−")
    assert f"8 demonstrations of men only {shift}" in summary.sentences[0]
    assert "VisoGender-OP" in summary.sentences[0]
    assert "(n = 12)" in summary.sentences[0]
    assert summary.sentences[2].startswith(f"Of {len(listed)} findings of the paper")
    assert "not by the paper’s language model" in summary.sentences[3]


def test_files_of_a_run_are_those_of_its_models_and_tasks() -> None:
    assert artefacts.stems("table_2", SETTINGS) == ["table_2"]
    assert artefacts.stems("table_38-43", SETTINGS) == ["table_38-43_one", "table_38-43_phi"]
    assert artefacts.stems("table_visual_cot", SETTINGS) == ["table_visual_cot_phi"]
    assert artefacts.stems("table_synthetic", SETTINGS) == ["table_synthetic_one"]
    bare = {**SETTINGS, "tasks": ["coco_bias"], "retrieval": ["SIIR"]}
    # A generator that is left out is null.
    bare["synthesis"] = {"models": ["one"], "generators": {"flux": None}}
    absent = ("table_dci", "table_balanced_pool", "table_synthetic", "table_4", "figure_6")
    for name in (*absent, "figure_5"):
        assert artefacts.stems(name, bare) == []
    without_captions = {**SETTINGS, "tasks": ["visogender_oo"]}
    for name in ("table_3", "figure_1", "figure_4"):
        assert artefacts.stems(name, without_captions) == []
    assert set(artefacts.MODEL_TABLES) == set(MODEL_TABLES)


def test_a_missing_number_is_a_dash_and_never_nan(measured: pd.DataFrame, study: Study) -> None:
    unknown = measured[measured["metric"] != "skipped"]
    unknown = unknown.assign(**dict.fromkeys(NUMBERS, np.nan))
    for name in ("table_2", "table_3", "table_coco_bias", "table_unrevealed", "table_scorecard"):
        table = build_table(name, unknown, study, "one" if name in MODEL_TABLES else None)
        assert not any("nan" in cell.lower() for row in table.rows for cell in row)


@pytest.mark.parametrize(
    ("table_id", "task"),
    [
        ("table_2", "pronoun/error_rate of visogender_oo"),
        ("table_3", "captioning/error_rate of coco_bias"),
        ("table_unrevealed", "pronoun/error_rate of visogender_oo"),
        ("table_dci", "captioning/error_rate of dci"),
    ],
)
def test_a_model_without_metrics_is_named(
    table_id: str, task: str, measured: pd.DataFrame, study: Study
) -> None:
    without = measured[measured["model"] != "one"]
    model = "one" if table_id in MODEL_TABLES else None

    with pytest.raises(ContractError, match=f"no {task} and the model one"):
        build_table(table_id, without, study, model)


@pytest.mark.parametrize(
    ("table_id", "says"),
    [
        ("table_1", "no numbers of images"),
        ("table_4", "no mitigation/revealed_gap_abs"),
        ("table_drawn_images", "no row of synthesis"),
        ("table_5", "no lists of words"),
        ("table_claims", "no findings"),
        ("table_scorecard", "no published numbers"),
        ("table_funnel", "no funnels"),
    ],
)
def test_what_a_table_lacks_is_told(table_id: str, says: str, measured: pd.DataFrame) -> None:
    bare = measured[~measured["experiment"].isin(["data", "mitigation", "synthesis"])]

    with pytest.raises(ContractError, match=says):
        build_table(table_id, bare, Study(("one", "phi")))


def test_metrics_of_another_paper_only_are_refused(measured: pd.DataFrame, study: Study) -> None:
    with pytest.raises(ContractError, match="no row of vl_bicle"):
        build_table("table_2", measured.assign(paper="gras"), study)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"titles": {"one": "phi"}}, "two models have the same title"),
        ({"judge": "human"}, "Write one of lexical, llm"),
        ({"tasks": ("flickr",)}, "flickr is no task"),
    ],
)
def test_a_study_that_contradicts_itself_is_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Study(models=("one", "phi"), **change)  # type: ignore[arg-type]


def test_an_unknown_table_or_model_is_named(measured: pd.DataFrame, study: Study) -> None:
    with pytest.raises(ConfigError, match="vl_bicle has no table_6. Use one of table_1, "):
        build_table("table_6", measured, study)
    with pytest.raises(ConfigError, match="table_dci is of one model, which is given as None"):
        build_table("table_dci", measured, study)
