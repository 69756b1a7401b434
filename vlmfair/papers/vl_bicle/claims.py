"""Which findings of the paper the measured numbers support: one row per sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import stats

from vlmfair.config import read_yaml
from vlmfair.errors import ConfigError
from vlmfair.papers.vl_bicle.claim_rules import (
    Measured,
    Outcome,
    apply_rule,
    check_rule,
    index_metrics,
)
from vlmfair.papers.vl_bicle.measure_rows import BicleRows, Place
from vlmfair.papers.vl_bicle.tasks import ALL, PAPER
from vlmfair.stats.multiplicity import benjamini_hochberg

SUPPORTED, NOT_SUPPORTED, NOT_TESTED = "supported", "not supported", "cannot be tested"
COLUMNS = (
    *("id", "location", "sentence", "rule", "stated", "measured", "models_holding"),
    *("models_tested", "p", "p_adjusted", "verdict", "reason"),
)


@dataclass(frozen=True)
class Claim:
    """One finding with its place and the rule that tests it on a model.

    `models` are the paper's names of the models that it is about, () for all that are measured.
    It holds when the rule does for the stated share of them, `count` of `of`, and with `only` for
    no other one. `directed` rules have a sign test over models: by chance they hold for every
    second one.
    """

    id: str
    location: str
    sentence: str
    meaning: str
    models: tuple[str, ...]
    count: int
    of: int
    only: bool
    directed: bool
    needs_no_model: bool
    rule: Mapping[str, Any]

    @property
    def stated(self) -> str:
        """For how many models the paper states it."""
        if self.needs_no_model:
            return "data"
        named = ", ".join(self.models)
        return (f"only {named}" if self.only else named) or f"{self.count} of {self.of}"


@dataclass(frozen=True)
class ClaimResult:
    """A claim with the models for which its rule holds, of those that have the numbers for it."""

    claim: Claim
    holding: tuple[str, ...]
    tested: tuple[str, ...]
    shown: Mapping[str, tuple[float, ...]]
    p: float
    p_adjusted: float
    verdict: str
    reason: str


def load_claims(path: str | PathLike[str]) -> tuple[Claim, ...]:
    """Read the claims in the order of the file.

    Raises ConfigError on a missing file or key, an id that stands twice, and a rule with parts that
    are not known.
    """
    content = read_yaml(path)
    listed = content.get("claims") if isinstance(content, dict) else None
    if not isinstance(listed, list) or not listed:
        raise ConfigError(f"{path}: claims are missing. List them below claims.")
    claims = []
    for number, raw in enumerate(listed, start=1):
        try:
            claims.append(_claim(raw))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ConfigError(
                f"{path}: claim {number} lacks the key {error} or has another form. "
                f"Compare with the other claims."
            ) from error
        check_rule(claims[-1].rule, f"{path}: claim {claims[-1].id}")
    repeated = next((c.id for i, c in enumerate(claims) if c.id in {d.id for d in claims[:i]}), "")
    if repeated:
        raise ConfigError(f"{path}: the claim {repeated} stands there twice. Rename one of them.")
    return tuple(claims)


def _claim(raw: Mapping[str, Any]) -> Claim:
    models = raw.get("models", "all")
    count, of = (int(part) for part in str(raw.get("stated", "1/1")).split("/"))
    return Claim(
        id=str(raw["id"]),
        location=str(raw["location"]),
        sentence=" ".join(str(raw["sentence"]).split()),
        meaning=" ".join(str(raw["meaning"]).split()),
        models=tuple(map(str, models)) if isinstance(models, list) else (),
        count=count,
        of=of,
        only=bool(raw.get("only", False)),
        directed=bool(raw.get("directed", False)),
        needs_no_model=models == "none",
        rule=raw["rule"],
    )


def check_claims(
    claims: Sequence[Claim],
    metrics: pd.DataFrame,
    *,
    titles: Mapping[str, str] | None = None,
    models: Sequence[str] | None = None,
) -> list[ClaimResult]:
    """Test each claim on the numbers over runs of METRICS rows.

    `titles` give models the names that the paper has for them; `models` are those that count, left
    out all that are measured (a control without bias is no model of the paper). A model without
    one of the numbers is not tested. Claims about models that are not there, or about numbers that
    nobody has, cannot be tested, with the reason.
    """
    measured = index_metrics(metrics)
    own = metrics[(metrics["paper"] == PAPER) & (metrics["model"] != ALL)]
    found = sorted(own["model"].unique()) if models is None else list(models)
    results = [_test(claim, measured, found, titles or {}) for claim in claims]
    adjusted = benjamini_hochberg(np.array([result.p for result in results], np.float64))
    return [
        ClaimResult(**{**result.__dict__, "p_adjusted": float(p)})
        for result, p in zip(results, adjusted, strict=True)
    ]


def _test(
    claim: Claim, measured: Measured, models: Sequence[str], titles: Mapping[str, str]
) -> ClaimResult:
    names = {model: titles.get(model, model) for model in models}
    if claim.needs_no_model:
        chosen = [ALL]
    else:
        asks_all = claim.only or not claim.models
        chosen = [model for model in models if asks_all or names[model] in claim.models]
    outcomes: dict[str, Outcome] = {
        model: apply_rule(claim.rule, measured, model, models) for model in chosen
    }
    tested = [model for model in chosen if outcomes[model].holds is not None]
    holding = [model for model in tested if outcomes[model].holds]
    shown = {names.get(model, model): outcomes[model].shown for model in tested}
    p = np.nan
    if claim.directed and tested and not claim.needs_no_model:
        p = float(stats.binomtest(len(holding), len(tested), 0.5, "greater").pvalue)
    verdict, reason = _verdict(claim, chosen, tested, holding, names)
    return ClaimResult(
        claim,
        tuple(names.get(model, model) for model in holding),
        tuple(names.get(model, model) for model in tested),
        shown,
        p,
        np.nan,
        verdict,
        reason,
    )


def _verdict(
    claim: Claim,
    chosen: Sequence[str],
    tested: Sequence[str],
    holding: Sequence[str],
    names: Mapping[str, str],
) -> tuple[str, str]:
    absent = [name for name in claim.models if name not in {names[m] for m in names}]
    if absent:
        return NOT_TESTED, f"not measured: {', '.join(absent)}"
    unknown = [names[m] for m in chosen if m not in tested and names.get(m) in claim.models]
    if not tested or unknown:
        return NOT_TESTED, f"without a number: {', '.join(unknown) or 'all models'}"
    untested = len(chosen) - len(tested)
    reason = f"without a number: {untested} of {len(chosen)} models" if untested else ""
    if claim.models:
        found = {names[model] for model in holding}
        holds = found == set(claim.models) if claim.only else found >= set(claim.models)
    else:
        # A share of models, since others may be measured than the paper's six.
        holds = len(holding) >= len(tested) * claim.count / claim.of - 1e-9
    return (SUPPORTED if holds else NOT_SUPPORTED), reason


def claim_table(results: Sequence[ClaimResult]) -> pd.DataFrame:
    """Return one row per claim, with the numbers that decided beside the models' names."""
    rows = []
    for result in results:
        claim = result.claim
        numbers = "; ".join(
            f"{name}: {', '.join(f'{value:.2f}' for value in values)}"
            for name, values in result.shown.items()
        )
        rows.append(
            (
                *(claim.id, claim.location, claim.sentence, claim.meaning, claim.stated, numbers),
                *(len(result.holding), len(result.tested), result.p, result.p_adjusted),
                *(result.verdict, result.reason),
            )
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def claim_metrics(results: Sequence[ClaimResult]) -> pa.Table:
    """Return METRICS rows of the model `all`: how many models, and whether it is supported."""
    rows = BicleRows()
    for result in results:
        place = Place("claims", item=result.claim.id)
        holding, tested = len(result.holding), len(result.tested)
        rows.add(
            place,
            "claim_models",
            ALL,
            holding if tested else None,
            tested,
            p=result.p,
            p_adjusted=result.p_adjusted,
        )
        supported = {SUPPORTED: 1.0, NOT_SUPPORTED: 0.0}.get(result.verdict)
        rows.add(place, "claim_supported", ALL, supported, tested)
    return rows.table()
