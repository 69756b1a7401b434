"""The tables of GRAS: the numbers in them are the metrics', and what must be told is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from latex import needs_latex, too_wide
from synthetic import (
    DEMO_MODELS,
    GROUPS,
    PAPER_MODELS,
    made_up_metrics,
    made_up_study,
    made_up_traits,
)

from vlmfair.artefacts import load_artefacts
from vlmfair.errors import ConfigError, ContractError
from vlmfair.papers.gras.study import Study, answer_token
from vlmfair.papers.gras.tables import TABLES, build_table, write_table
from vlmfair.papers.gras.tables_scores import score_sentences
from vlmfair.render.table_tex import table_tex

Demo = tuple[pd.DataFrame, Study]


@pytest.fixture(scope="module")
def demo() -> Demo:
    traits = made_up_traits(20)
    return made_up_metrics(DEMO_MODELS, traits), made_up_study(DEMO_MODELS, traits)


@pytest.fixture(scope="module")
def paper() -> Demo:
    traits = made_up_traits(100)
    return made_up_metrics(PAPER_MODELS, traits), made_up_study(PAPER_MODELS, traits)


def value_of(metrics: pd.DataFrame, column: str = "value", **equal: str) -> float:
    kept = np.logical_and.reduce([metrics[name] == value for name, value in equal.items()])
    return float(metrics.loc[kept, column].item())


def test_there_is_a_builder_for_every_table_of_the_registry(root: Path) -> None:
    registered = {
        artefact.stem
        for artefact in load_artefacts(root / "config" / "artefacts.yaml")
        if artefact.paper == "gras" and artefact.kind == "table" and artefact.built
    }
    assert registered == set(TABLES)


@pytest.mark.parametrize("table_id", sorted(TABLES))
def test_every_table_is_written_for_few_and_for_many(
    table_id: str, demo: Demo, paper: Demo, tmp_path: Path
) -> None:
    for name, (metrics, study) in {"demo": demo, "paper": paper}.items():
        files = write_table(table_id, metrics, study, tmp_path / name / table_id)
        assert [path.suffix for path in files] == [".csv", ".tex", ".html"]
        assert all(path.stat().st_size > 50 for path in files)


@needs_latex
@pytest.mark.parametrize("size", ["demo", "paper"])
def test_every_table_fits_a_printed_page(
    size: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    metrics, study = request.getfixturevalue(size)
    tables = {name: table_tex(build_table(name, metrics, study), name) for name in TABLES}

    assert too_wide(tables, tmp_path) == []


def test_scores_put_the_papers_number_first_and_its_null_beside(paper: Demo) -> None:
    metrics, study = paper
    table = build_table("table_2", metrics, study)
    first = table.rows[0]
    # significant_traits of the made-up metrics: 98, 97, 96, 95 -> the score is their mean, 96.5
    assert first[:2] == ("paligemma2-3b-mix-224", "96.50")
    assert first[3:6] == ("12.00", "[5.0, 21.0]", "<0.001")
    assert first[-2:] == ("100", "5,010")
    holm = value_of(
        metrics, model=study.models[0], metric="gras_bias_score", setting="holm", attribute="all"
    )
    assert table.data.loc[0, "score_holm"] == holm


def test_scores_without_relabelings_leave_the_null_empty(demo: Demo) -> None:
    metrics, study = demo
    without = metrics[metrics["metric"] != "gras_bias_score_null"].assign(p=np.nan)
    row = build_table("table_2", without, study).rows[0]
    assert row[3:6] == ("–", "–", "–")
    assert "without bias" not in score_sentences(without, study.models, {})[0]


def test_score_sentences_name_score_and_chance(paper: Demo) -> None:
    metrics, study = paper
    sentence = score_sentences(metrics, study.models, {study.models[0]: "PaliGemma 2"})[0]
    assert sentence.startswith(
        "PaliGemma 2: GRAS bias score 96.50 of 100 traits, 5,010 images "
        "(95% interval [95.5, 97.0]); 12.0 is what a model without bias gets (p < 0.001"
    )


def test_valence_shows_the_rule_of_the_published_numbers_first(paper: Demo) -> None:
    metrics, study = paper
    table = build_table("table_3", metrics, study)
    groups = sum(map(len, GROUPS.values()))
    assert [row[0] for row in table.rows] == ["all templates"] * groups + [
        "at least one template"
    ] * groups
    row = next(r for r in table.rows if r[:3] == ("all templates", "Skin tone", "10"))
    expected = value_of(
        metrics,
        experiment="valence",
        model=study.models[1],
        attribute="skin_tone",
        group="10",
        item="positive",
        setting="all",
    )
    # three row names, then negative and positive for each model: the second model's positive
    assert row[6] == f"{expected:.0f}"


def test_percentages_of_few_traits_keep_a_decimal(demo: Demo) -> None:
    metrics, study = demo
    at = (metrics["metric"] == "attributed_share") & (metrics["group"] == "Latino_Hispanic")
    eighth = metrics.assign(value=metrics["value"].mask(at, 12.5))
    row = build_table("table_3", eighth, study).rows[5]
    assert row == ("all templates", "Race", "Latino/Hispanic", "12.5", "12.5", "12.5", "12.5")


def test_skin_tones_are_in_the_order_of_the_scale(paper: Demo) -> None:
    rows = build_table("table_3", *paper).rows
    tones = [row[2] for row in rows if row[:2] == ("all templates", "Skin tone")]
    assert tones == [str(tone) for tone in range(1, 11)]


def test_traits_stand_in_two_columns_by_polarity(demo: Demo) -> None:
    table = build_table("table_4", *demo)
    assert table.rows[0] == ("annoying", "−2.80", "affectionate", "2.03")
    assert len(table.rows) == 10
    assert len(table.data) == 20


def test_runs_of_spaces_in_a_prompt_are_visible(demo: Demo) -> None:
    table = build_table("table_5", *demo)
    row = ("tiny-planted", "Answer Yes or No. [50 spaces] {question}", "“ Yes”", "3869", "3869")
    assert table.rows[0] == row
    assert table.data.loc[0, "prompt"] == "Answer Yes or No." + " " * 50 + "{question}"


def test_the_answer_token_is_the_one_of_the_responses() -> None:
    manifest = {"shards": [{"label_tokens": {"Yes": [9454]}}, {"label_tokens": {"Yes": [9454]}}]}
    token = answer_token("qwen", manifest, form="Yes", prompt="q", published_id=9454)
    assert (token.token_id, token.published_id) == (9454, 9454)


@pytest.mark.parametrize("found", [[], [1, 2]])
def test_responses_with_no_or_two_answer_tokens_are_refused(found: list[int]) -> None:
    manifest = {"shards": [{"label_tokens": {"Yes": found}}]}
    with pytest.raises(ContractError, match=r"name \d tokens for the answer 'Yes', not one"):
        answer_token("qwen", manifest, form="Yes", prompt="q", published_id=None)


def test_temperature_tables_mark_what_is_not_significant(demo: Demo) -> None:
    metrics, study = demo
    chosen = (metrics["experiment"] == "temperature") & (metrics["item"] == "annoying")
    at = chosen & (metrics["model"] == "tiny-control") & (metrics["setting"] == "T=1.5")
    changed = metrics.assign(p=metrics["p"].mask(at & (metrics["prompt"] == "T2"), 0.6305))
    changed["p"] = changed["p"].mask(at & (metrics["prompt"] == "T1"), 1e-80)
    table = build_table("table_7", changed, study)
    assert table.rows[-1][:4] == ("tiny-control", "1.5", "<0.0001", "0.6305 †")
    assert [row[1] for row in table.rows[:4]] == ["0.5", "0.7", "1.0", "1.5"]
    assert table.columns[3].label == "Do you think the person is annoying?"


def test_a_temperature_table_of_a_trait_that_was_not_asked_is_refused(demo: Demo) -> None:
    metrics, study = demo
    few = made_up_traits(2)
    with pytest.raises(ContractError, match="'polite' was not asked. Add it to the configured"):
        build_table("table_9", metrics, made_up_study(DEMO_MODELS, few))
    assert study.words


def test_selection_shows_groups_and_keeps_the_cells_in_the_csv(demo: Demo) -> None:
    table = build_table("table_selection", *demo)
    assert table.rows[1] == ("FairFace", "Gender", "Female", "70", "69", "1", "0")
    assert table.rows[-1][1:3] == ("Source and skin tone", "FFHQ / 10")
    assert len(table.data) == len(table.rows) + 1


def test_deviations_name_the_largest_one_and_flag_small_groups(demo: Demo) -> None:
    metrics, study = demo
    planted = (
        (metrics["metric"] == "deviation")
        & (metrics["model"] == "tiny-planted")
        & (metrics["item"] == "bad")
        & (metrics["group"] == "10")
        & (metrics["prompt"] == "T3")
    )
    changed = metrics.assign(value=metrics["value"].mask(planted, -0.6))
    changed["n"] = changed["n"].mask(planted, 8)
    rows = build_table("table_deviations", changed, study).rows
    row = next(r for r in rows if r[:2] == ("tiny-planted", "Skin tone"))
    assert row[7:11] == ("−60.0", "10", "bad", "T3")
    assert row[-1] == "8 †"
    assert not next(r for r in rows if r[:2] == ("tiny-control", "Skin tone"))[-1].endswith("†")


def test_a_negative_omega_squared_is_no_effect(demo: Demo) -> None:
    metrics, study = demo
    tests = metrics["metric"] == "welch_test"
    negative = metrics.assign(effect=metrics["effect"].mask(tests, -0.4))
    rows = build_table("table_deviations", negative, study).rows
    effects = {row[1]: row[5:7] for row in rows}
    assert effects["Gender"] == ("0.400", "0.400")
    assert effects["Race"] == ("−0.400", "−0.400")


def test_template_sensitivity_never_shows_p_as_zero(demo: Demo) -> None:
    table = build_table("table_template_sensitivity", *demo)
    assert len(table.rows) == 40
    row = table.rows[0]
    assert row[2:8] == ("812.3", "4; 14,276", "<0.001", "0.710", "<0.001", "0.310")
    assert table.data.loc[table.data.index[0], "friedman_p"] == 0.0


def test_surface_forms_add_up_to_one(demo: Demo) -> None:
    data = build_table("table_surface_forms", *demo).data
    total = data["p_yes_all_forms"] + data["p_no_all_forms"] + data["p_other"]
    assert np.allclose(total, 1)


def test_models_are_called_by_their_titles(demo: Demo) -> None:
    metrics, study = demo
    named = made_up_study(DEMO_MODELS, made_up_traits(20), titles={"tiny-planted": "Planted"})
    assert [row[0] for row in build_table("table_2", metrics, named).rows] == [
        "Planted",
        "tiny-control",
    ]
    assert build_table("table_5", metrics, named).rows[0][0] == "Planted"
    twice = made_up_study(DEMO_MODELS, made_up_traits(20), titles={"tiny-planted": "tiny-control"})
    with pytest.raises(ConfigError, match="two models have the same title"):
        build_table("table_2", metrics, twice)
    assert study.titles == {}


def test_the_registrys_title_stands_above_the_table(demo: Demo, tmp_path: Path) -> None:
    write_table("table_1", *demo, tmp_path / "table_1", title="A_title & more")
    assert r"\caption{A\_title \& more}" in (tmp_path / "table_1.tex").read_text(encoding="utf-8")


def test_missing_metrics_are_named(demo: Demo) -> None:
    metrics, study = demo
    without = metrics[metrics["experiment"] != "valence"]
    with pytest.raises(ContractError, match="no row of valence/attributed_share"):
        build_table("table_3", without, study)


def test_a_model_without_metrics_is_named(demo: Demo) -> None:
    metrics, study = demo
    without = metrics[metrics["model"] != "tiny-control"]
    for table_id in ("table_2", "table_3", "table_6", "table_deviations", "table_surface_forms"):
        with pytest.raises(ContractError, match="nothing of the model tiny-control"):
            build_table(table_id, without, study)


def test_an_unknown_table_is_named(demo: Demo) -> None:
    with pytest.raises(ConfigError, match="GRAS has no table_10"):
        build_table("table_10", *demo)


def test_a_reader_is_told_that_omega_squared_may_be_negative(demo: Demo, root: Path) -> None:
    notes = " ".join(build_table("table_deviations", *demo).notes)
    assert "ω² may be slightly negative: then the groups differ by no more than chance." in notes
    for name in ("figure_7-26", "figure_27-51"):
        caption = (root / f"workflow/report/gras/{name}.rst").read_text("utf-8")
        assert "below 0, it means no difference" in caption
