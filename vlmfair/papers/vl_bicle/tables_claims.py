"""The table of findings: each sentence of the paper, its rule, and whether the run supports it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from vlmfair.errors import ContractError
from vlmfair.papers.vl_bicle.claims import COLUMNS, NOT_SUPPORTED, NOT_TESTED, SUPPORTED
from vlmfair.papers.vl_bicle.study import Study
from vlmfair.papers.vl_bicle.tasks import VQA
from vlmfair.render.numbers import MISSING, format_p
from vlmfair.render.tables import Column, Table

_VQA_SIGN = "vqa_"


def build_claims(metrics: pd.DataFrame, study: Study) -> Table:
    """Every finding with the number of models for which its rule holds, p and verdict."""
    claims = study.claims
    missing = [name for name in COLUMNS if name not in claims.columns]
    if claims.empty or missing:
        raise ContractError(
            "the study has no findings, or a column of them is missing. Run the step that tests "
            "the findings of vl_bicle again."
        )
    verdicts = Counter(claims["verdict"])
    judged = any(task.experiment == VQA for task in study.shown_tasks)
    return Table(
        title="Findings of the paper, and whether the regenerated numbers support them",
        data=claims,
        columns=(
            Column("Place", align="left", width=0.85),
            Column("Finding", align="left", width=1.9),
            Column("Rule", align="left", width=1.9),
            Column("Paper", align="left", width=0.65),
            Column("Holds for"),
            Column("p"),
            Column("p (BH)"),
            Column("Verdict", align="left", width=1.25),
        ),
        rows=tuple(_row(row, study) for row in claims.to_dict("records")),
        notes=(
            f"{verdicts[SUPPORTED]} findings are supported, {verdicts[NOT_SUPPORTED]} are not, "
            f"{verdicts[NOT_TESTED]} cannot be tested on the models of this run.",
            "Paper: the models for which the finding is stated. Holds for: models for which the "
            "rule holds, of those that have its numbers. A finding is supported when that share is "
            "at least the paper’s, or the named models are among them.",
            "p: sign test over models, one-sided, for rules that hold by chance for every second "
            f"model; BH: Benjamini and Hochberg’s correction over these findings. {MISSING}: the "
            "rule is no direction.",
            *([f"Answers to visual questions are judged by {study.judge_text}."] * judged),
            "The csv file has the numbers by which each model decided.",
        ),
        stubs=2,
    )


def _row(row: Mapping[Hashable, Any], study: Study) -> tuple[str, ...]:
    place = str(row["location"])
    if str(row["id"]).startswith(_VQA_SIGN):
        place += f" ({study.judge_sign})"
    tested = int(row["models_tested"])
    holding = int(row["models_holding"])
    reason = "" if pd.isna(row["reason"]) else str(row["reason"])
    verdict = str(row["verdict"])
    return (
        place,
        str(row["sentence"]),
        str(row["rule"]),
        str(row["stated"]),
        f"{holding} of {tested}" if tested else MISSING,
        format_p(row["p"]),
        format_p(row["p_adjusted"]),
        f"{verdict}: {reason}" if reason else verdict,
    )
