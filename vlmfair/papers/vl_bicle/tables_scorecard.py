"""The scorecard: every number of the paper's text beside the regenerated one."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from vlmfair.audit.published import Published
from vlmfair.errors import ContractError
from vlmfair.papers.vl_bicle.cells import Cells, interval_text
from vlmfair.papers.vl_bicle.notes import judge_note
from vlmfair.papers.vl_bicle.scorecard import Compared, compare
from vlmfair.papers.vl_bicle.study import DATASET_NAMES, ERROR_SIGNS, Study
from vlmfair.render.numbers import MISSING, format_count, format_number
from vlmfair.render.tables import Column, Table

_QUANTITIES = {
    "error_rate_sd": "deviation of {sign} over runs",
    "error_rate_difference": "difference of {sign}",
    "error_rate_range": "range of {sign} over settings, largest",
    "clipscore_range": "range of CLIPScore over settings with demonstrations, largest",
    "clipscore_lowest": "lowest CLIPScore with demonstrations",
    "clipscore_highest": "highest CLIPScore with demonstrations",
    "clipscore_difference": "change of CLIPScore by drawn images at 4 and 8 shots, median",
    "images": "images",
    "images_pool": "images of the pool",
}


def build_scorecard(metrics: pd.DataFrame, study: Study) -> Table:
    """Each number of the text, what this run has, its interval and n, and a verdict."""
    if not study.published:
        raise ContractError(
            "the study has no published numbers. Give the rule resources/published/vl_bicle.csv."
        )
    compared = compare(study.published, Cells(metrics, study), metrics)
    verdicts = Counter(one.verdict for one in compared)
    shown = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    return Table(
        title="Numbers of the paper’s text beside the regenerated ones",
        data=pd.DataFrame(map(_record, compared)),
        columns=(
            Column("Place", align="left", width=1.0),
            Column("Number", align="left", width=1.6),
            Column("Paper"),
            Column("Here"),
            Column("95% interval"),
            Column("n"),
            Column("Verdict", align="left", width=0.85),
        ),
        rows=tuple(_row(one) for one in compared),
        notes=(
            f"Of {len(compared)} numbers: {shown}.",
            "as printed: equal at the printed decimals; within the interval: the printed number "
            "lies in the interval of the regenerated one; holds: the bound of the text is kept; "
            "open: this run has no such number, mostly because it measures other models.",
            "The paper’s tables are not in the text that was available; their numbers are here as "
            "far as sentences give them. Sentences about all models are compared with those that "
            f"count for its findings: {', '.join(map(study.title, study.counted))}. n: queries of "
            "the gender with fewer, runs for a deviation.",
            judge_note(study),
        ),
        stubs=2,
    )


def _quantity(entry: Published) -> str:
    """Return what a number is: `Phi35V, COCOBias, zero-shot, k = 0: ER_m−f`."""
    sign = ERROR_SIGNS.get(entry.group, "ER")
    names = ", ".join(DATASET_NAMES.get(name, name) for name in entry.item.split(", "))
    parts = [entry.model, names.replace("visogender", "VisoGender"), entry.setting]
    start = ", ".join(part.replace(" k=", ", k = ") for part in parts if part)
    return f"{start}: {_QUANTITIES.get(entry.metric, '{sign}').format(sign=sign)}"


def _row(one: Compared) -> tuple[str, ...]:
    entry, found = one.published, one.found
    digits = max(entry.decimals, 0 if entry.metric.startswith("images") else 2)
    verdict = f"{one.verdict}: {one.reason}" if one.reason else one.verdict
    number = _quantity(entry) + (f" ({one.where})" if one.where else "")
    return (
        entry.location,
        number,
        _printed(entry),
        format_number(found.value, digits),
        interval_text(found) if found.known else MISSING,
        format_count(found.n),
        verdict,
    )


def _printed(entry: Published) -> str:
    signs = {">=": "≥ ", "<=": "≤ ", ">": "> ", "<": "< ", "=": ""}
    return signs[entry.relation] + format_number(entry.number, entry.decimals)


def _record(one: Compared) -> dict[str, object]:
    entry, found = one.published, one.found
    return {
        **{"location": entry.location, "model": entry.model, "dataset": entry.item},
        **{"setting": entry.setting, "prompt": entry.prompt, "group": entry.group},
        **{"metric": entry.metric, "relation": entry.relation, "published": entry.value},
        **{"regenerated": found.value, "ci_low": found.ci_low, "ci_high": found.ci_high},
        **{"n": found.n, "verdict": one.verdict, "where": one.where, "reason": one.reason},
        "note": entry.note,
    }
