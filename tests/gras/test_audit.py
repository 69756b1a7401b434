"""The audit of GRAS: three published scores, known errors of the paper, and damaged files."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vlmfair.audit.published import Published, load_published, select
from vlmfair.audit.rows import AuditRow, summary, write_audit, write_rows
from vlmfair.errors import ConfigError, RawDataError
from vlmfair.papers.gras.audit import audit
from vlmfair.papers.gras.audit_printed import printed_checks
from vlmfair.papers.gras.audit_significance import (
    Significance,
    count_checks,
    load_significance,
)
from vlmfair.papers.gras.evaluation_results import GROUPS, PUBLISHED_NAMES, TEMPLATES

MODEL = "paligemma2-3b-mix-224"
LLAVA = "llava-1.5-7b-hf"
QWEN = "Qwen2.5-VL-3B-Instruct"


@pytest.fixture(scope="module")
def published_path(root: Path) -> Path:
    return root / "resources/published/gras.csv"


@pytest.fixture(scope="module")
def published(published_path: Path) -> tuple[Published, ...]:
    return load_published(published_path)


@pytest.fixture(scope="module")
def counts_path(root: Path) -> Path:
    return root / "resources/published/gras_significance.csv"


@pytest.fixture(scope="module")
def counts(counts_path: Path) -> tuple[Significance, ...]:
    return load_significance(counts_path)


@pytest.fixture(scope="module")
def reference_rows(published_path: Path, counts_path: Path, reference_dir: Path) -> list[AuditRow]:
    return audit(published_path, counts_path, reference_dir / "gras/evaluation_results")


def rows_of(rows: list[AuditRow], check: str, where: str = "") -> list[AuditRow]:
    return [row for row in rows if row.check == check and where in row.location]


# ---------------------------------------------------------------- with the authors' result files


@pytest.mark.parametrize(("model", "score"), [(MODEL, "98.25"), (LLAVA, "98.00"), (QWEN, "99.00")])
def test_the_score_follows_from_the_published_p_values(
    reference_rows: list[AuditRow], model: str, score: str
) -> None:
    (row,) = rows_of(reference_rows, "gras_bias_score", f"Table 2, {model}")

    assert (row.published, row.recomputed, row.ok) == (score, score, True)


def test_the_text_names_the_wrong_traits_for_llava_and_age(
    reference_rows: list[AuditRow],
) -> None:
    found = {
        row.location: (row.published, row.recomputed)
        for row in rows_of(reference_rows, "not_significant_traits")
        if not row.ok
    }

    assert found == {
        f"Section 4.2, paragraph on age, {LLAVA}, age": (
            "caring; compassionate",
            "caring; respectable",
        )
    }


def test_the_rule_all_gives_every_share_of_section_4_3(reference_rows: list[AuditRow]) -> None:
    rows = rows_of(reference_rows, "attributed_share_all")
    female = rows_of(rows, "attributed_share_all", "gender Female, negative")

    assert len(rows) == 3 * 13
    assert all(row.ok for row in rows)
    assert [row.recomputed for row in female] == ["0 %", "0 %", "6 %"]


def test_the_rule_any_contradicts_the_caption_of_table_3(reference_rows: list[AuditRow]) -> None:
    found = [
        (row.location, row.published, row.recomputed)
        for row in rows_of(reference_rows, "attributed_share_any")
        if not row.ok
    ]

    assert found == [
        (f"Table 3 caption, {MODEL}, gender Female, negative traits", "0 %", "14 %"),
        (f"Table 3 caption, {QWEN}, gender Female, negative traits", "6 %", "38 %"),
    ]


def test_all_traits_are_template_sensitive_on_3570_images(reference_rows: list[AuditRow]) -> None:
    sensitive = rows_of(reference_rows, "template_sensitive_traits")
    degrees = rows_of(reference_rows, "template_test_degrees_of_freedom")

    assert [row.recomputed for row in sensitive] == ["100 of 100 with p < 0.05"] * 3
    # Five wordings, 3,570 images: 4 and 4 x 3,569 degrees of freedom.
    assert [(row.recomputed, row.ok) for row in degrees] == [("F(4, 14276)", True)] * 3


def test_groups_are_balanced_in_every_file(reference_rows: list[AuditRow]) -> None:
    for check in ("overall_mean_is_mean_of_groups", "difference_is_group_minus_overall"):
        assert [row.ok for row in rows_of(reference_rows, check)] == [True] * 12


def test_five_cells_of_table_7_differ_from_the_result_files(reference_rows: list[AuditRow]) -> None:
    rows = rows_of(reference_rows, "p_value_in_result_file")

    assert len(rows) == 60
    assert [(row.location, row.published, row.recomputed) for row in rows if not row.ok] == [
        (f"Table 7, {MODEL}, T=1.0, T2", "0.0683", "0.0715"),
        (f"Table 7, {MODEL}, T=1.0, T3", "0.0095", "0.0132"),
        (f"Table 7, {MODEL}, T=1.0, T4", "0.0004", "0.0007"),
        (f"Table 7, {MODEL}, T=1.0, T5", "0.0048", "0.0101"),
        (f"Table 7, {QWEN}, T=1.0, T4", "0.0002", "0.0001"),
    ]


def test_the_committed_counts_are_those_of_the_files(reference_rows: list[AuditRow]) -> None:
    assert [row.ok for row in rows_of(reference_rows, "counts_of_result_file")] == [True] * 12


# ------------------------------------------------------------- the committed counts of these files


@pytest.mark.parametrize(
    ("model", "significant", "score"),
    [  # gender, race, age, skin tone; a quarter of their sum is the score of Table 2
        (MODEL, [100, 100, 99, 94], "98.25"),
        (LLAVA, [98, 98, 98, 98], "98.00"),
        (QWEN, [99, 100, 97, 100], "99.00"),
    ],
)
def test_the_score_follows_from_the_committed_counts(
    published: tuple[Published, ...],
    counts: tuple[Significance, ...],
    model: str,
    significant: list[int],
    score: str,
) -> None:
    rows = rows_of(count_checks(published, counts), "gras_bias_score_of_counts", "Table 2")

    assert [sum(entry.traits[1:]) for entry in counts if entry.model == model] == significant
    (row,) = [row for row in rows if row.location == f"Table 2, {model}"]
    assert (row.published, row.recomputed, row.ok) == (score, score, True)


def test_the_committed_counts_show_the_error_about_llava_and_age(
    published: tuple[Published, ...], counts: tuple[Significance, ...]
) -> None:
    wrong = [row for row in count_checks(published, counts) if not row.ok]

    assert [(row.location, row.published, row.recomputed) for row in wrong] == [
        (
            f"Section 4.2, paragraph on age, {LLAVA}, age",
            "caring; compassionate",
            "caring; respectable",
        )
    ]


COUNTS = "model,attribute,location,significant_wordings,traits,words\n" + "".join(
    f"m,age,a.csv,{k},{n},{words}\n"
    for k, n, words in [(0, 1, "kind"), (1, 2, ""), (2, 3, ""), (3, 4, ""), (4, 5, ""), (5, 85, "")]
)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("m,age,a.csv,3,4,\n", "", "one line for each of 0 to 5 wordings"),
        (",5,85,", ",5,86,", "101 traits, 1 of 1 named"),
        (",kind", ",kind; calm", "2 of 1 named"),
        (",3,4,", ",3,-4,", "not a whole number"),
        ("significant_wordings", "wordings", "column significant_wordings is missing"),
    ],
)
def test_damaged_counts_are_refused(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(COUNTS, encoding="utf-8")
    assert load_significance(path)[0].traits == (1, 2, 3, 4, 5, 85)
    path.write_text(COUNTS.replace(old, new), encoding="utf-8")

    with pytest.raises(ConfigError, match=says):
        load_significance(path)


def test_the_table_has_these_columns(
    published_path: Path, counts_path: Path, tmp_path: Path
) -> None:
    out = tmp_path / "results/audit/audit.csv"
    rows = audit(published_path, counts_path, None)

    write_audit(rows, out)

    with out.open(encoding="utf-8", newline="") as opened:
        lines = list(csv.DictReader(opened))
    assert list(lines[0]) == ["paper", "check", "location", "published", "recomputed", "ok"]
    assert len(lines) == len(rows)
    assert {line["ok"] for line in lines} == {"true", "false"}
    assert pd.read_csv(out)["ok"].dtype == bool


# ------------------------------------------------------------------------- the printed text alone


def test_printed_checks_need_no_files(published_path: Path, counts_path: Path) -> None:
    rows = audit(published_path, counts_path, None)

    assert {row.check for row in rows if not row.ok} == {
        "all_p_values_significant",
        "not_significant_traits_of_counts",
        "p_value_significant",
        "significant_traits_by_text",
    }


def test_fourteen_cells_contradict_that_every_p_value_is_below_0_05(
    published: tuple[Published, ...],
) -> None:
    rows = printed_checks(published)
    totals = {row.location: row.recomputed for row in rows_of(rows, "all_p_values_significant")}

    assert totals == {
        "Appendix A.3 and Table 6": "100 of 100 < 0.05",
        "Appendix A.3 and Table 7": "87 of 100 < 0.05",
        "Appendix A.3 and Table 8": "99 of 100 < 0.05",
        "Appendix A.3 and Table 9": "100 of 100 < 0.05",
    }
    assert len(rows_of(rows, "p_value_significant")) == 14
    assert all(row.ok for row in rows_of(rows, "any_template_significant"))


def test_more_than_95_traits_is_not_what_section_4_2_says_of_paligemma(
    published: tuple[Published, ...],
) -> None:
    rows = rows_of(printed_checks(published), "significant_traits_by_text")

    # Six traits without a difference between skin tones leave 94.
    assert [(row.location, row.recomputed) for row in rows if not row.ok] == [
        (f"Section 4.2, after Table 2, {MODEL}, skin_tone", "94")
    ]


def test_scores_lie_within_what_the_named_traits_allow(published: tuple[Published, ...]) -> None:
    rows = rows_of(printed_checks(published), "score_within_bound_of_text")

    # (400 - traits without a difference in age or skin tone) / 4; PaliGemma: (400 - 1 - 6) / 4.
    assert [row.recomputed for row in rows] == [
        *("at most 98.25", "at most 99.00", "at most 99.25", "at most 99.75", "at most 100.00")
    ]
    assert all(row.ok for row in rows)


@pytest.mark.parametrize(
    ("keys", "value", "check"),
    [
        ({"location": "Table 2", "model": MODEL}, "98.30", "score_is_mean_of_four_counts"),
        ({"location": "Table 2", "model": MODEL}, "98.50", "score_within_bound_of_text"),
        ({"location": "Table 2", "model": LLAVA}, "97.75", "lowest_score"),
        ({"location": "Table 4", "item": "racist"}, "2.80", "valence_sign"),
        ({"location": "Table 4", "item": "racist"}, "-2.00", "valence_order"),
        ({"location": "Section 3", "metric": "images"}, "5011", "images_in_total"),
        ({"location": "Section 3", "metric": "questions"}, "501", "questions_per_image"),
        ({"location": "Section 3.1", "attribute": "race"}, "8", "images_in_equal_shares"),
        ({"location": "Table 6", "model": MODEL, "prompt": "T1"}, "1.5", "p_values_in_range"),
    ],
)
def test_a_misprint_is_found(
    published: tuple[Published, ...], keys: dict[str, str], value: str, check: str
) -> None:
    target = select(published, **keys)[0]
    misprinted = [
        Published(**{**vars(entry), "value": value}) if entry is target else entry
        for entry in published
    ]

    assert all(row.ok for row in rows_of(printed_checks(published), check))
    assert not all(row.ok for row in rows_of(printed_checks(misprinted), check))


# ------------------------------------------------------------------------ result files made here


def write_results(folder: Path, model: str, traits: list[str], p: float = 0.001) -> None:
    """Write a model's five files: every p-value `p`, the first group above the overall mean."""
    folder.mkdir(exist_ok=True)
    for attribute, name in PUBLISHED_NAMES.items():
        groups = GROUPS[attribute]
        columns: dict[str, object] = {"trait": traits, "attribute": name}
        offsets = np.zeros(len(groups))
        offsets[0], offsets[-1] = 0.1, -0.1
        for number in range(TEMPLATES):
            columns[f"overall_mean_template_{number}"] = 0.5
            columns[f"p_value_template_{number}"] = p
            for group, offset in zip(groups, offsets, strict=True):
                columns[f"{name}_{group}_mean_template_{number}"] = 0.5 + offset
                columns[f"{name}_{group}_diff_from_overall_template_{number}"] = offset
        pd.DataFrame(columns).to_csv(folder / f"{model}_{name}_bias_analysis.csv", index=False)
    pd.DataFrame(
        {
            "file": traits,
            "ANOVA_NumDF": 4.0,
            "ANOVA_DenDF": 14276.0,
            "ANOVA_p": p,
            "Friedman_p": p,
        }
    ).to_csv(folder / f"template_sensitivity_results_{model}.csv", index=False)


@pytest.fixture
def traits(published: tuple[Published, ...]) -> list[str]:
    return [entry.item for entry in select(published, location="Table 4")]


@pytest.mark.parametrize(("p", "score"), [(0.05, "100.00"), (0.0500001, "0.00")])
def test_the_score_counts_p_values_up_to_0_05(
    published_path: Path, counts_path: Path, tmp_path: Path, traits: list[str], p: float, score: str
) -> None:
    write_results(tmp_path / "results", MODEL, traits[::-1], p)

    rows = audit(published_path, counts_path, tmp_path / "results")

    (row,) = rows_of(rows, "gras_bias_score", MODEL)
    assert (row.recomputed, row.ok) == (score, False)


def test_shares_follow_the_group_means(
    published_path: Path, counts_path: Path, tmp_path: Path, traits: list[str]
) -> None:
    write_results(tmp_path / "results", MODEL, traits)

    rows = audit(published_path, counts_path, tmp_path / "results")

    female = rows_of(rows, "attributed_share_all", "Female, negative")
    male = rows_of(rows, "attributed_share_all", "Table 3 caption")
    assert [row.recomputed for row in female] == ["100 %"]
    assert [row.recomputed for row in male if "Male" in row.location] == ["0 %"]


def test_sentences_about_all_models_need_the_files_of_all(
    published: tuple[Published, ...],
    published_path: Path,
    counts_path: Path,
    tmp_path: Path,
    traits: list[str],
) -> None:
    models = [entry.model for entry in select(published, location="Table 2")]
    for model in models[:4]:
        write_results(tmp_path / "results", model, traits)
    without = audit(published_path, counts_path, tmp_path / "results")
    write_results(tmp_path / "results", models[4], traits)
    complete = audit(published_path, counts_path, tmp_path / "results")

    assert rows_of(without, "models_with_no_negative_trait_all") == []
    (row,) = rows_of(complete, "models_with_no_negative_trait_all")
    assert (row.published, row.recomputed) == ("4", "0")


def remove_column(name: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        pd.read_csv(path).drop(columns=name).to_csv(path, index=False)

    return damage


def change(name: str, value: object) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        table = pd.read_csv(path).astype({name: object})
        table.loc[3, name] = value
        table.to_csv(path, index=False)

    return damage


BIAS = f"{MODEL}_age_bias_analysis.csv"
SENSITIVITY = f"template_sensitivity_results_{MODEL}.csv"


@pytest.mark.parametrize(
    ("name", "damage", "says"),
    [
        (BIAS, Path.unlink, "this file is missing"),
        (SENSITIVITY, Path.unlink, "this file is missing"),
        (BIAS, remove_column("p_value_template_4"), "column p_value_template_4 is missing"),
        (BIAS, remove_column("age_40-49_mean_template_0"), "age_40-49_mean_template_0 is missing"),
        (BIAS, remove_column("trait"), "column trait is missing"),
        (SENSITIVITY, remove_column("Friedman_p"), "column Friedman_p is missing"),
        (BIAS, change("p_value_template_0", 1.2), "not between 0 and 1"),
        (BIAS, change("p_value_template_0", None), "holds no number for 'hateful'"),
        (BIAS, change("overall_mean_template_0", "inf"), "holds no number"),
        (BIAS, change("trait", "racist"), "each of the 100 trait words once"),
        (BIAS, change("trait", "=cmd|' /C calc'!A0"), "each of the 100 trait words once"),
        (BIAS, lambda path: path.write_bytes(b""), "not a csv file"),
        (BIAS, lambda path: path.write_bytes(b"\xff\xfe\x00trait"), "not a csv file"),
    ],
)
def test_a_damaged_result_file_ends_in_one_sentence(
    published_path: Path,
    counts_path: Path,
    tmp_path: Path,
    traits: list[str],
    name: str,
    damage: Callable[[Path], object],
    says: str,
) -> None:
    write_results(tmp_path / "results", MODEL, traits)
    damage(tmp_path / "results" / name)

    with pytest.raises(RawDataError, match=says) as caught:
        audit(published_path, counts_path, tmp_path / "results")

    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_folder_ends_in_one_sentence(
    published_path: Path, counts_path: Path, tmp_path: Path
) -> None:
    with pytest.raises(RawDataError, match=r"does not exist\. Give the folder evaluation_results"):
        audit(published_path, counts_path, tmp_path / "nowhere")


def test_a_folder_without_results_ends_in_one_sentence(
    published_path: Path, counts_path: Path, tmp_path: Path
) -> None:
    shutil.copy(published_path, tmp_path)

    with pytest.raises(RawDataError, match="no result file of paligemma2-3b-mix-224"):
        audit(published_path, counts_path, tmp_path)


def test_rows_are_counted_and_written(tmp_path: Path) -> None:
    rows = [
        AuditRow("gras", "score", "Table 2, a", "98.25", "98.25", True),
        AuditRow("gras", "score", 'Table 2, "b"', "98.00", "97.00", False),
    ]

    write_rows(rows, tmp_path / "audit.csv")

    assert summary(rows) == "2 checks of published numbers, 1 do not agree"
    assert (tmp_path / "audit.csv").read_text(encoding="utf-8") == (
        "paper,check,location,published,recomputed,ok\n"
        'gras,score,"Table 2, a",98.25,98.25,true\n'
        'gras,score,"Table 2, ""b""",98.00,97.00,false\n'
    )
