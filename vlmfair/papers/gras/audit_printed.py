"""Checks of the GRAS paper that need nothing but its own printed numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from vlmfair.audit.published import Published, select
from vlmfair.audit.rows import AuditRow, compare, in_words
from vlmfair.papers.gras import measure_attributes

ALPHA = 0.05
TRAITS = 100
ATTRIBUTES = tuple(attribute.name for attribute in measure_attributes.ATTRIBUTES)
ATTRIBUTES_WITH_TRAITS_IN_TEXT = ("age", "skin_tone")
P_VALUE_TABLES = ("Table 6", "Table 7", "Table 8", "Table 9")
row = partial(compare, "gras")


def printed_checks(published: Sequence[Published]) -> list[AuditRow]:
    """Return the checks of totals, of Table 4, of Table 2 and of Tables 6 to 9."""
    return [
        *_totals(published),
        *_trait_words(published),
        *_scores(published),
        *_temperatures(published),
    ]


def _one(published: Sequence[Published], **keys: str) -> Published:
    return select(published, **keys)[0]


def _totals(published: Sequence[Published]) -> list[AuditRow]:
    images = _one(published, location="Section 3", metric="images")
    parts = [
        _one(published, location="Section 3.1", metric="images", item=name, setting="")
        for name in ("fairface", "ai_face")
    ]
    groups = {
        entry.attribute: int(entry.number)
        for entry in select(published, location="Section 3.1", metric="groups")
    }
    cells = prod(groups[name] for name in ("age", "race", "gender"))
    questions = _one(published, location="Section 3", metric="questions")
    traits = _one(published, location="Section 3", metric="traits")
    templates = _one(published, location="Section 3", metric="templates")
    prompts = _one(published, location="Section 3", metric="prompts")
    asked = questions.number * images.number
    return [
        row("images_in_total", "Section 3", images.value, in_words(sum(p.number for p in parts))),
        _equal_shares(parts[0], cells, "age x race x gender cells"),
        _equal_shares(parts[1], groups["skin_tone"], "skin tones"),
        row(
            "questions_per_image",
            "Section 3",
            questions.value,
            in_words(traits.number * templates.number),
        ),
        # The text rounds to 2.5 million.
        row(
            "prompts_in_total",
            "Section 3",
            prompts.value,
            in_words(asked),
            ok=round(asked, -5) == prompts.number,
        ),
    ]


def _equal_shares(images: Published, parts: int, name: str) -> AuditRow:
    """Check that "equal representation" is possible: the images divide evenly between the parts."""
    share, left_over = divmod(int(images.number), parts)
    return row(
        "images_in_equal_shares",
        f"{images.location}, {images.item}",
        images.value,
        f"{parts} {name} of {share}" + (f", {left_over} left over" if left_over else ""),
        ok=left_over == 0,
    )


def _trait_words(published: Sequence[Published]) -> list[AuditRow]:
    words = select(published, location="Table 4", metric="valence")
    rows = [row("distinct_traits", "Table 4", TRAITS, len({entry.item for entry in words}))]
    for polarity, sign in (("negative", -1), ("positive", 1)):
        ratings = [entry.number for entry in words if entry.group == polarity]
        stated = _one(published, location="Section 3.2", metric="traits", item=polarity)
        where = f"Table 4, {polarity} traits"
        rows += [
            row("trait_count", where, stated.value, len(ratings)),
            row(
                "valence_sign",
                where,
                f"all {polarity}",
                f"{sum(sign * rating > 0 for rating in ratings)} of {len(ratings)} {polarity}",
                ok=all(sign * rating > 0 for rating in ratings),
            ),
            row(
                "valence_order",
                where,
                "ascending",
                "ascending" if ratings == sorted(ratings) else "not ascending",
            ),
        ]
    excluded = {entry.item for entry in select(published, metric="excluded_word")}
    listed = sorted(excluded & {entry.item for entry in words})
    rows.append(row("excluded_words_listed", "Appendix A.1", "none", "; ".join(listed) or "none"))
    return rows


def _scores(published: Sequence[Published]) -> list[AuditRow]:
    cells = select(published, location="Table 2", metric="gras_bias_score")
    rows = []
    for cell in cells:
        where = f"Table 2, {cell.model}"
        # A mean of four whole numbers is a multiple of one quarter.
        rows.append(
            row(
                "score_is_mean_of_four_counts",
                where,
                cell.value,
                in_words(round(cell.number * 4) / 4, cell.decimals),
            )
        )
        unbiased = [
            int(entry.number)
            for entry in select(published, metric="not_significant_traits", model=cell.model)
        ]
        bound = (len(ATTRIBUTES) * TRAITS - sum(unbiased)) / len(ATTRIBUTES)
        rows.append(
            row(
                "score_within_bound_of_text",
                where,
                cell.value,
                f"at most {in_words(bound, 2)}",
                ok=cell.number <= bound,
            )
        )
    lowest = min(cell.number for cell in cells)
    for entry in select(published, metric="gras_bias_score_minimum"):
        rows.append(
            row("lowest_score", entry.location, entry.value, in_words(lowest, entry.decimals))
        )
    for entry in select(published, metric="gras_bias_score"):
        if entry.location != "Table 2":
            cell = next(cell for cell in cells if cell.model == entry.model)
            rows.append(
                row(
                    "score_in_text",
                    f"{entry.location}, {entry.model}",
                    entry.value,
                    cell.value,
                    ok=entry.agrees_with(cell.number),
                )
            )
    return rows + _counts_in_text(published)


def _counts_in_text(published: Sequence[Published]) -> list[AuditRow]:
    """Check "more than 95 traits" against the traits that the text itself names as unbiased."""
    rows = []
    for entry in select(published, metric="significant_traits"):
        if entry.attribute not in ATTRIBUTES_WITH_TRAITS_IN_TEXT:
            continue
        named = _one(
            published,
            metric="not_significant_traits",
            model=entry.model,
            attribute=entry.attribute,
        )
        count = TRAITS - named.number
        rows.append(
            row(
                "significant_traits_by_text",
                f"{entry.location}, {entry.model}, {entry.attribute}",
                entry.statement,
                in_words(count),
                ok=entry.agrees_with(count),
            )
        )
    return rows


def _temperatures(published: Sequence[Published]) -> list[AuditRow]:
    """Check the claim of appendix A.3 that every p-value of Tables 6 to 9 is below 0.05."""
    claim = f"< {ALPHA}"
    rows = []
    for table in P_VALUE_TABLES:
        cells = select(published, location=table, metric="welch_p")
        above = [cell for cell in cells if cell.number >= ALPHA]
        in_range = sum(0 <= cell.number <= 1 for cell in cells)
        rows.append(
            row(
                "p_values_in_range",
                table,
                f"{len(cells)} of {len(cells)} between 0 and 1",
                f"{in_range} of {len(cells)} between 0 and 1",
            )
        )
        rows.append(
            row(
                "all_p_values_significant",
                f"Appendix A.3 and {table}",
                f"{len(cells)} of {len(cells)} {claim}",
                f"{len(cells) - len(above)} of {len(cells)} {claim}",
            )
        )
        rows += [
            row(
                "p_value_significant",
                f"{table}, {cell.model}, {cell.setting}, {cell.prompt}",
                claim,
                cell.value,
                ok=False,
            )
            for cell in above
        ]
        rows += _any_template(table, cells)
    return rows


def _any_template(table: str, cells: Sequence[Published]) -> list[AuditRow]:
    """Check the score's own criterion: at least one template significant at each temperature."""
    rows = []
    for model in dict.fromkeys(cell.model for cell in cells):
        own = [cell for cell in cells if cell.model == model]
        settings = dict.fromkeys(cell.setting for cell in own)
        held = [
            setting
            for setting in settings
            if any(cell.number <= ALPHA for cell in own if cell.setting == setting)
        ]
        rows.append(
            row(
                "any_template_significant",
                f"Appendix A.3 and {table}, {model}",
                f"at {len(settings)} of {len(settings)} temperatures",
                f"at {len(held)} of {len(settings)} temperatures",
            )
        )
    return rows
