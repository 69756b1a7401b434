"""How a sentence of the paper is tested: comparisons of numbers that are named by their keys."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from vlmfair.errors import ConfigError
from vlmfair.papers.vl_bicle.measure_rows import OVER_RUNS
from vlmfair.papers.vl_bicle.tasks import ALL, FEMALE, GAP, MALE, REAL, ZERO_SHOT

RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
QUANTIFIERS: Mapping[str, Callable[[Sequence[bool]], bool]] = {
    "all": all,
    "any": any,
    "none": lambda found: not any(found),
    "not_all": lambda found: not all(found),
    "most": lambda found: 2 * sum(found) > len(found),
}
AGGREGATES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda values: float(np.mean(values)),
    "range": lambda values: max(values) - min(values),
    "max": max,
    "min": min,
}
_GROUPS = {"gap": GAP, "men": MALE, "women": FEMALE, "all": ALL}
_KEYS = ("metric", "group", "dataset", "prompt", "setting", "shots", "source")
_CELL = (*_KEYS, "field", "aggregate", "abs", "minus", "times", "model")
_FIELDS = ("value", "ci_low", "ci_high")
# Distances from 0, which claims compare more often than the numbers themselves.
_DISTANCES = {"absolute_gap": "error_rate", "absolute_revealed_gap": "revealed_error_rate"}
Numbers = Mapping[tuple[str, ...], Mapping[str, float]]


@dataclass(frozen=True)
class Measured:
    """The numbers over runs of all models, by model and keys."""

    numbers: Numbers

    def look(self, model: str, cell: Mapping[str, Any]) -> float:
        """Return one number, NaN where there is none."""
        shots = int(cell.get("shots", 0))
        setting = ZERO_SHOT if shots == 0 else str(cell.get("setting", ""))
        group = str(cell.get("group", "gap"))
        source = REAL if shots == 0 else str(cell.get("source", REAL))
        asked = str(cell.get("metric", ""))
        metric = _DISTANCES.get(asked, asked)
        place = (str(cell.get("dataset", "")), str(cell.get("prompt", "")))
        key = (model, metric, _GROUPS[group], *place, setting, str(shots), source)
        found = self.numbers.get(key)
        value = math.nan if found is None else found[str(cell.get("field", "value"))]
        return abs(value) if asked in _DISTANCES else value


def index_metrics(metrics: pd.DataFrame) -> Measured:
    """Return the numbers over runs of a METRICS frame; a null is NaN.

    Where a dataset has one prompt only, its numbers are found without naming it. Of two judges the
    language model counts.
    """
    own = metrics[(metrics["paper"] == "vl_bicle") & (metrics["run"] == OVER_RUNS)]
    own = own[~own["experiment"].isin(["claims", "data"])].sort_values("item", kind="stable")
    prompts = own.groupby("dataset")["prompt"].nunique()
    numbers: dict[tuple[str, ...], dict[str, float]] = {}
    names = ("model", "metric", "group", "dataset", "prompt", "setting", "shots", "image_source")
    columns = [own[name].astype(str) for name in names]
    values = [own[name].astype(float) for name in _FIELDS]
    for row in zip(*columns, *values, strict=True):
        key, found = row[: len(names)], dict(zip(_FIELDS, row[len(names) :], strict=True))
        key = (*key[:-1], key[-1] or REAL)
        numbers[key] = found
        if prompts[key[3]] == 1:
            numbers[(*key[:4], "", *key[5:])] = found
    return Measured(numbers)


def check_rule(rule: Mapping[str, Any], name: str) -> None:
    """Raise ConfigError on a rule with an unknown key, relation, quantifier, group or field."""
    problem = _unknown(rule, ("over", "tests", "quantifier"), "key of a rule")
    problem = problem or _unknown(rule.get("over") or {}, _KEYS, "key of over")
    if rule.get("quantifier", "all") not in QUANTIFIERS:
        problem = f"{rule['quantifier']!r} is no quantifier"
    if not rule.get("tests"):
        problem = "tests are missing"
    for test in rule.get("tests") or ():
        problem = problem or _test_fault(test)
    if problem:
        raise ConfigError(f"{name}: {problem}. Compare with the other claims of the file.")


def _unknown(given: Mapping[str, Any], known: Sequence[str], what: str) -> str:
    wrong = sorted(set(given) - set(known))
    return f"{wrong[0]!r} is no {what}" if wrong else ""


def _test_fault(test: Mapping[str, Any]) -> str:
    kinds = {
        "relation": ("left", "relation", "right"),
        "signs": ("signs", "cells"),
        "uncorrelated": ("uncorrelated", "points"),
        "largest": ("largest",),
    }
    kind = next((kind for kind in kinds if kind in test), None)
    if kind is None:
        return f"a test needs one of {', '.join(kinds)}"
    problem = _unknown(test, kinds[kind], f"key of a test with {kind}")
    if kind == "relation" and test["relation"] not in RELATIONS:
        problem = f"{test['relation']!r} is no relation"
    if kind == "signs" and test["signs"] not in ("same", "differ"):
        problem = f"signs are same or differ, not {test['signs']!r}"
    cells = [test.get("left"), test.get("right"), test.get("largest")]
    cells += list(test.get("cells") or ()) + list(test.get("uncorrelated") or ())
    for cell in cells:
        problem = problem or _cell_fault(cell)
    return problem


def _cell_fault(cell: Any) -> str:
    if cell is None or isinstance(cell, int | float):
        return ""
    problem = _unknown(cell, _CELL, "key of a number")
    groups = cell.get("group", "gap")
    for group in groups if isinstance(groups, list) else [groups]:
        problem = problem or ("" if group in _GROUPS else f"{group!r} is no group")
    if cell.get("field", "value") not in _FIELDS:
        problem = f"{cell['field']!r} is no field"
    if cell.get("aggregate", "mean") not in AGGREGATES:
        problem = f"{cell['aggregate']!r} is no aggregate"
    return problem or _cell_fault(cell.get("minus"))


@dataclass(frozen=True)
class Outcome:
    """Whether a rule holds for a model; None when a number is missing. `shown` are the numbers."""

    holds: bool | None
    shown: tuple[float, ...]


def apply_rule(
    rule: Mapping[str, Any], measured: Measured, model: str, models: Sequence[str]
) -> Outcome:
    """Test a rule on one model: its tests at each combination of `over`, by its quantifier.

    `models` are all models, which `largest` compares.
    """
    found: list[bool] = []
    shown: list[float] = []
    for at in _combinations(rule.get("over") or {}):
        results = []
        for test in rule["tests"]:
            holds, numbers = _run_test(test, at, measured, model, models)
            shown += numbers
            if holds is None:
                return Outcome(None, tuple(shown))
            results.append(holds)
        found.append(all(results))
    return Outcome(QUANTIFIERS[rule.get("quantifier", "all")](found), tuple(shown))


def _combinations(over: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    lists = [values if isinstance(values, list) else [values] for values in over.values()]
    for chosen in itertools.product(*lists):
        yield dict(zip(over, chosen, strict=True))


def _run_test(
    test: Mapping[str, Any],
    at: Mapping[str, Any],
    measured: Measured,
    model: str,
    models: Sequence[str],
) -> tuple[bool | None, list[float]]:
    if "signs" in test:
        return _signs(test, [number(cell, at, measured, model) for cell in test["cells"]])
    if "uncorrelated" in test:
        return _uncorrelated(test, at, measured, model)
    if "largest" in test:
        own = number(test["largest"], at, measured, model)
        others = [number(test["largest"], at, measured, other) for other in models]
        known = [value for value in others if not math.isnan(value)]
        return (None, []) if math.isnan(own) or len(known) < 2 else (own >= max(known), [own])
    left, right = (number(test[side], at, measured, model) for side in ("left", "right"))
    if math.isnan(left) or math.isnan(right):
        return None, []
    return RELATIONS[test["relation"]](left, right), [left]


def _signs(test: Mapping[str, Any], numbers: list[float]) -> tuple[bool | None, list[float]]:
    if any(math.isnan(value) for value in numbers):
        return None, []
    signs = {int(np.sign(value)) for value in numbers}
    same = len(signs) == 1 and 0 not in signs
    differ = {-1, 1} <= signs
    return (same if test["signs"] == "same" else differ), numbers


def _uncorrelated(
    test: Mapping[str, Any], at: Mapping[str, Any], measured: Measured, model: str
) -> tuple[bool | None, list[float]]:
    """Whether two numbers have no rank correlation over points that differs from 0 at 5 %."""
    places = [{**at, **point} for point in _combinations(test["points"])]
    pairs = [[number(c, p, measured, model) for c in test["uncorrelated"]] for p in places]
    known = np.array([pair for pair in pairs if not any(map(math.isnan, pair))])
    if len(known) < 4:
        return None, []
    if (known == known[0]).all(axis=0).any():
        # What never changes goes along with nothing.
        return True, [0.0]
    result = stats.spearmanr(known[:, 0], known[:, 1])
    return bool(result.pvalue >= 0.05), [float(result.statistic)]


def number(
    cell: float | Mapping[str, Any], at: Mapping[str, Any], measured: Measured, model: str
) -> float:
    """Return the number that a cell names at the keys `at`, NaN when a part of it is missing.

    Keys with several values give their mean, or what `aggregate` says, of single numbers; `abs`
    and `minus` work on each of those, `times` on the result. `model` looks at another model, as
    `all` for what no model answers.
    """
    if isinstance(cell, int | float):
        return float(cell)
    keys = {**at, **{name: cell[name] for name in cell if name in (*_KEYS, "field")}}
    values = [
        _single(cell, point, measured, str(cell.get("model", model)))
        for point in _combinations(keys)
    ]
    if any(math.isnan(value) for value in values):
        return math.nan
    return AGGREGATES[cell.get("aggregate", "mean")](values) * float(cell.get("times", 1))


def _single(
    cell: Mapping[str, Any], point: Mapping[str, Any], measured: Measured, model: str
) -> float:
    value = measured.look(model, point)
    if "minus" in cell:
        value -= measured.look(model, {**point, **cell["minus"]})
    return abs(value) if cell.get("abs") else value
