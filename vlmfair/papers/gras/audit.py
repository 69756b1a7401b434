"""The audit of GRAS: what its printed numbers and its published result files imply.

The result files give the score (section 3.3), the counts behind it, the valence shares by both
rules (section 3.3 states `any`, the numbers of section 4.3 come from `all`) and the template tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vlmfair.audit.published import Published, load_published, select
from vlmfair.audit.rows import AuditRow, in_words
from vlmfair.papers.gras.audit_printed import ALPHA, ATTRIBUTES, TRAITS, printed_checks, row
from vlmfair.papers.gras.audit_significance import (
    count_checks,
    counts_of_files,
    load_significance,
)
from vlmfair.papers.gras.evaluation_results import (
    TEMPLATES,
    ModelResults,
    read_evaluation_results,
)
from vlmfair.papers.gras.score import score_from_p_values, significant
from vlmfair.papers.gras.valence import RULES, Rule, attributed, attributed_share

# Tables 6 to 9 print p-values rounded to four decimals, without trailing zeros.
P_VALUE_DECIMALS = 4
# Group means are float64 means of the same numbers: only the order of summation may differ.
ROUNDING = 1e-9


def audit(
    published_path: Path, significance_path: Path, evaluation_results: Path | None
) -> list[AuditRow]:
    """Return every check of the paper; those of the result files only where a folder is given.

    `significance_path` holds what was counted in the files (`load_significance`). Raises
    ConfigError on a bad table of published numbers and RawDataError on result files that are
    missing or not as published.
    """
    published = load_published(published_path)
    counts = load_significance(significance_path)
    rows = [*printed_checks(published), *count_checks(published, counts)]
    if evaluation_results is None:
        return rows
    words = select(published, location="Table 4", metric="valence")
    models = [cell.model for cell in select(published, location="Table 2")]
    polarity = np.array([word.group for word in words])
    traits = [word.item for word in words]
    results = read_evaluation_results(evaluation_results, models, traits)
    rows += counts_of_files(counts, results, traits)
    for result in results:
        rows += [
            *_score_checks(published, result),
            *_significance_checks(published, result, traits),
            *_temperature_checks(published, result, traits),
            *_valence_checks(published, result, polarity),
            *_template_checks(published, result),
            *_mean_checks(result),
        ]
    return rows + _checks_across_models(published, results, traits, polarity)


def _score_checks(published: Sequence[Published], result: ModelResults) -> list[AuditRow]:
    score = score_from_p_values(
        {name: result.attributes[name].p_values for name in ATTRIBUTES}, alpha=ALPHA
    ).value
    return [
        row(
            "gras_bias_score",
            f"{cell.location}, {cell.model}",
            cell.value,
            in_words(score, cell.decimals),
            ok=cell.agrees_with(score),
        )
        for cell in select(published, metric="gras_bias_score", model=result.model)
    ]


def _unbiased(result: ModelResults, attribute: str, traits: Sequence[str]) -> set[str]:
    found = significant(result.attributes[attribute].p_values, ALPHA)
    return {trait for trait, differs in zip(traits, found, strict=True) if not differs}


def _significance_checks(
    published: Sequence[Published], result: ModelResults, traits: Sequence[str]
) -> list[AuditRow]:
    """Check which traits show no difference, and how many do, against section 4.2."""
    rows = []
    for attribute in ATTRIBUTES:
        keys = {"model": result.model, "attribute": attribute}
        unbiased = _unbiased(result, attribute, traits)
        for entry in select(published, metric="not_significant_traits", **keys):
            named = {item.item for item in select(published, metric="not_significant", **keys)}
            rows.append(
                row(
                    "not_significant_traits",
                    f"{entry.location}, {result.model}, {attribute}",
                    "; ".join(sorted(named)) or "none",
                    "; ".join(sorted(unbiased)) or "none",
                )
            )
        count = TRAITS - len(unbiased)
        for entry in select(published, metric="significant_traits", **keys):
            rows.append(
                row(
                    "significant_traits",
                    f"{entry.location}, {result.model}, {attribute}",
                    entry.statement,
                    in_words(count),
                    ok=entry.agrees_with(count),
                )
            )
    return rows


def _temperature_checks(
    published: Sequence[Published], result: ModelResults, traits: Sequence[str]
) -> list[AuditRow]:
    """Check Tables 6 to 9 at temperature 1.0 against the result files' skin tone tests."""
    p_values = result.attributes["skin_tone"].p_values
    rows = []
    for cell in select(published, metric="welch_p", model=result.model, setting="T=1.0"):
        p = float(p_values[traits.index(cell.item), int(cell.prompt.removeprefix("T")) - 1])
        rows.append(
            row(
                "p_value_in_result_file",
                f"{cell.location}, {cell.model}, {cell.setting}, {cell.prompt}",
                cell.value,
                in_words(p, P_VALUE_DECIMALS),
                ok=cell.agrees_with(p, P_VALUE_DECIMALS),
            )
        )
    return rows


def _share(result: ModelResults, entry: Published, polarity: NDArray[np.str_], rule: Rule) -> float:
    """Return the percentage of traits of the entry's polarity attributed to its group."""
    results = result.attributes[entry.attribute]
    found = attributed(results.group_means, results.overall_means, rule)
    shares = attributed_share(found, polarity == entry.item)
    return float(shares[results.groups.index(entry.group)])


def _valence_checks(
    published: Sequence[Published], result: ModelResults, polarity: NDArray[np.str_]
) -> list[AuditRow]:
    rows = []
    for entry in select(published, metric="attributed_share", model=result.model):
        for rule in RULES:
            share = _share(result, entry, polarity, rule)
            rows.append(
                row(
                    f"attributed_share_{rule}",
                    f"{entry.location}, {entry.model}, {entry.attribute} {entry.group}, "
                    f"{entry.item} traits",
                    f"{entry.statement} %",
                    f"{in_words(share)} %",
                    ok=entry.agrees_with(share),
                )
            )
    return rows


def _template_checks(published: Sequence[Published], result: ModelResults) -> list[AuditRow]:
    """Check the claim of section 4.1 and that its tests ran on the FairFace images alone."""
    larger = np.maximum(result.sensitivity["ANOVA_p"], result.sensitivity["Friedman_p"])
    rows = [
        row(
            "template_sensitive_traits",
            f"{entry.location}, {result.model}",
            f"{TRAITS} of {TRAITS} with p {entry.statement}",
            f"{sum(entry.agrees_with(float(p)) for p in larger)} of {len(larger)} "
            f"with p {entry.statement}",
        )
        for entry in select(published, metric="template_sensitivity_p", model=result.model)
    ]
    (images,) = select(
        published, location="Section 3.1", metric="images", item="fairface", setting=""
    )
    effect = TEMPLATES - 1
    stated = f"F({effect}, {effect * (int(images.number) - 1)})"
    degrees = sorted(
        set(zip(result.sensitivity["ANOVA_NumDF"], result.sensitivity["ANOVA_DenDF"], strict=True))
    )
    found = "; ".join(f"F({in_words(one)}, {in_words(other)})" for one, other in degrees)
    where = f"Sections 3.1 and 4.1, {result.model}"
    rows.append(row("template_test_degrees_of_freedom", where, stated, found))
    return rows


def _mean_checks(result: ModelResults) -> list[AuditRow]:
    """Check that groups are balanced and that the files' differences follow from their means."""
    rows = []
    for attribute in ATTRIBUTES:
        results = result.attributes[attribute]
        imbalance = np.abs(results.group_means.mean(axis=0) - results.overall_means).max()
        difference = results.group_means - results.overall_means
        wrong = np.abs(difference - results.differences).max()
        where = f"Section 3.1, {result.model}, {attribute}"
        rows += [
            row(
                "overall_mean_is_mean_of_groups",
                where,
                f"differs by at most {ROUNDING:.0e}",
                f"differs by at most {imbalance:.0e}",
                ok=imbalance <= ROUNDING,
            ),
            row(
                "difference_is_group_minus_overall",
                where,
                f"differs by at most {ROUNDING:.0e}",
                f"differs by at most {wrong:.0e}",
                ok=wrong <= ROUNDING,
            ),
        ]
    return rows


def _checks_across_models(
    published: Sequence[Published],
    results: Sequence[ModelResults],
    traits: Sequence[str],
    polarity: NDArray[np.str_],
) -> list[AuditRow]:
    """Check the two sentences about several models; each needs the files of all of them."""
    by_model = {result.model: result for result in results}
    rows = []
    for entry in select(published, metric="not_significant_traits_in_common"):
        models = {
            other.model
            for other in select(
                published, metric="not_significant_traits", attribute=entry.attribute
            )
            if other.number > 0
        }
        if models <= set(by_model):
            common = set.intersection(
                *(_unbiased(by_model[model], entry.attribute, traits) for model in models)
            )
            rows.append(row("unbiased_traits_in_common", entry.location, entry.value, len(common)))
    for entry in select(published, metric="models_with_no_negative_trait"):
        if len(by_model) < len(select(published, location="Table 2")):
            continue
        for rule in RULES:
            none = sum(_share(result, entry, polarity, rule) == 0 for result in results)
            rows.append(
                row(
                    f"models_with_no_negative_trait_{rule}",
                    entry.location,
                    entry.value,
                    in_words(none),
                )
            )
    return rows
