"""The score from committed counts: in how many wordings the authors' files show a difference.

The counts are facts of the result files, each with the file that it was counted in. The score
depends on nothing else, so it can be recomputed without the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from vlmfair.audit.published import Published, read_columns, select
from vlmfair.audit.rows import AuditRow, in_words
from vlmfair.errors import ConfigError
from vlmfair.papers.gras.audit_printed import ALPHA, ATTRIBUTES, TRAITS, row
from vlmfair.papers.gras.evaluation_results import TEMPLATES, ModelResults
from vlmfair.papers.gras.score import score_from_p_values, significant

COLUMNS = ("model", "attribute", "location", "significant_wordings", "traits", "words")


@dataclass(frozen=True)
class Significance:
    """One model and attribute: `traits[k]` traits differ between groups in k of the five wordings.

    `words` names the traits that differ in none.
    """

    model: str
    attribute: str
    location: str
    traits: tuple[int, ...]
    words: tuple[str, ...]

    def p_values(self) -> NDArray[np.float64]:
        """Return p-values [traits, wordings] of such counts: 0 for a difference, 1 for none."""
        counts = np.repeat(np.arange(TEMPLATES + 1), self.traits)
        return np.where(np.arange(TEMPLATES) < counts[:, None], 0.0, 1.0)

    def in_words(self) -> str:
        """Return the counts from none to all wordings, and the traits that differ in none."""
        counts = ", ".join(map(str, self.traits))
        return f"{counts}; none: {', '.join(sorted(self.words)) or '-'}"


def load_significance(path: str | PathLike[str]) -> tuple[Significance, ...]:
    """Read the counts, one line per model, attribute and number of wordings.

    Raises ConfigError on a missing file or column, a count that is no whole number, and counts of a
    model and attribute that are incomplete or do not sum to the hundred traits.
    """
    lines: dict[tuple[str, str], list[dict[str, str]]] = {}
    for line in read_columns(path, COLUMNS):
        lines.setdefault((line["model"], line["attribute"]), []).append(line)
    return tuple(
        _read_counts(own, f"{path}, {model}, {name}") for (model, name), own in lines.items()
    )


def _read_counts(lines: Sequence[dict[str, str]], where: str) -> Significance:
    order = [line["significant_wordings"] for line in lines]
    if order != [str(number) for number in range(TEMPLATES + 1)]:
        raise ConfigError(
            f"{where}: write one line for each of 0 to {TEMPLATES} wordings, in order."
        )
    if not all(line["traits"].isdecimal() for line in lines):
        raise ConfigError(
            f"{where}: traits is not a whole number. Write how many traits there are."
        )
    traits = tuple(int(line["traits"]) for line in lines)
    words = tuple(filter(None, lines[0]["words"].split("; ")))
    if sum(traits) != TRAITS or len(words) != traits[0]:
        raise ConfigError(
            f"{where}: {sum(traits)} traits, {len(words)} of {traits[0]} named. Count all {TRAITS} "
            f"traits and name those without a difference."
        )
    first = lines[0]
    return Significance(first["model"], first["attribute"], first["location"], traits, words)


def count_checks(published: Sequence[Published], counts: Sequence[Significance]) -> list[AuditRow]:
    """Check the printed scores, and the traits that section 4.2 names, against the counts."""
    rows = []
    for model in dict.fromkeys(entry.model for entry in counts):
        own = {entry.attribute: entry for entry in counts if entry.model == model}
        if set(own) != set(ATTRIBUTES):
            continue
        score = score_from_p_values(
            {name: own[name].p_values() for name in ATTRIBUTES}, alpha=ALPHA
        ).value
        rows += [
            row(
                "gras_bias_score_of_counts",
                f"{cell.location}, {model}",
                cell.value,
                in_words(score, cell.decimals),
                ok=cell.agrees_with(score),
            )
            for cell in select(published, metric="gras_bias_score", model=model)
        ]
        for entry in own.values():
            rows += _named_traits(published, entry)
    return rows


def _named_traits(published: Sequence[Published], counts: Significance) -> list[AuditRow]:
    keys = {"model": counts.model, "attribute": counts.attribute}
    named = {entry.item for entry in select(published, metric="not_significant", **keys)}
    return [
        row(
            "not_significant_traits_of_counts",
            f"{entry.location}, {counts.model}, {counts.attribute}",
            "; ".join(sorted(named)) or "none",
            "; ".join(sorted(counts.words)) or "none",
        )
        for entry in select(published, metric="not_significant_traits", **keys)
    ]


def count_significance(
    result: ModelResults, attribute: str, traits: Sequence[str], location: str
) -> Significance:
    """Count the wordings with p <= 0.05 of each trait in a model's result files."""
    p_values = result.attributes[attribute].p_values
    wordings = (p_values <= ALPHA).sum(axis=1)
    by_wordings = np.bincount(wordings, minlength=TEMPLATES + 1)
    none = ~significant(p_values, ALPHA)
    words = tuple(trait for trait, without in zip(traits, none, strict=True) if without)
    return Significance(result.model, attribute, location, tuple(map(int, by_wordings)), words)


def counts_of_files(
    counts: Sequence[Significance], results: Sequence[ModelResults], traits: Sequence[str]
) -> list[AuditRow]:
    """Check the committed counts against result files, for the models that are in both."""
    by_model = {result.model: result for result in results}
    return [
        row(
            "counts_of_result_file",
            entry.location,
            entry.in_words(),
            count_significance(
                by_model[entry.model], entry.attribute, traits, entry.location
            ).in_words(),
        )
        for entry in counts
        if entry.model in by_model
    ]
