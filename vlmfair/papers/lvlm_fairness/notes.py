"""Notes below tables: numbers of images, whose readings are shown, invalid answers, signs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vlmfair.papers.lvlm_fairness.cells import SIGNIFICANT, SMALL, Cells, any_of
from vlmfair.papers.lvlm_fairness.study import JUDGE_NAMES, Study, shown_group
from vlmfair.render.numbers import MISSING, format_count, format_number

RECALL_NOTE = (
    "R: recall, the share of a group’s images with the right answer. GD: recall of the first group "
    "minus that of the second; above 0 it favours the first."
)


CSV_NOTE = "The csv file has the interval, the p-value and the number of images of every cell."


def count_range(counts: Iterable[float]) -> str:
    """Return numbers of images as `3,821`, or `3,790–3,821` where models differ."""
    known = sorted(count for count in counts if count == count)
    if not known:
        return MISSING
    low, high = format_count(known[0]), format_count(known[-1])
    return low if low == high else f"{low}–{high}"


def images_note(cells: Cells, experiment: str = "facet") -> list[str]:
    """Return `Images: Male 3,821, Female 1,660.` of the groups whose cells were shown, if known."""
    data = cells.data()
    whole = (data["item"] == "all") & (data["experiment"] == experiment)
    groups = data[whole & ~data["group"].str.contains("-") & (data["metric"] != "dropped_answers")]
    sizes = {
        shown_group(group): count_range(groups["n"][groups["group"] == group])
        for group in groups["group"].unique()
    }
    if all(size == MISSING for size in sizes.values()):
        return []
    return [f"Images: {', '.join(f'{name} {size}' for name, size in sizes.items())}."]


def reader_note(study: Study) -> str:
    """Return who read the answers, and what became of the invalid ones."""
    done = "count as wrong" if study.invalid == "wrong" else "are left out"
    note = f"Answers are read by the {JUDGE_NAMES.get(study.table_judge, study.table_judge)}"
    return f"{note}; invalid ones (unparsed or refused) {done}."


def other_handling_note(cells: Cells) -> list[str]:
    """Return by how much the shown recalls would change with the other handling of invalid ones."""
    changes = [abs(change) for change in cells.handled_otherwise if change == change]
    if not changes:
        return []
    handling, change = "counted as wrong", "fall"
    if cells.study.other_handling == "excluded":
        handling, change = "left out", "rise"
    moved = f"a recall here would {change} by up to {format_number(max(changes), 4)}"
    if not max(changes):
        moved = "no recall here changes"
    return [
        "The paper’s text leaves invalid answers out of the recall, its numbers count them as "
        f"wrong. If they are {handling} (lvlm_fairness.invalid in the config), {moved}."
    ]


def sign_notes(rows: Sequence[Sequence[str]], study: Study, over: str = "") -> list[str]:
    """Return what the signs in the cells mean, of those that occur."""
    notes = []
    if any_of(rows, SIGNIFICANT):
        notes.append(f"{SIGNIFICANT} p ≤ {study.alpha:g} by Fisher’s exact test{over}.")
    if any_of(rows, SMALL):
        notes.append(
            f"{SMALL} the smaller group has fewer than {study.small_cell} images: the number is "
            "not reliable."
        )
    return notes
