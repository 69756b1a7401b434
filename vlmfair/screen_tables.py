"""Tables and lists in Markdown that are also aligned on a screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def aligned_table(lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, the first line its head, whose columns are aligned on a screen."""
    cells = [[one_line(cell) for cell in line] for line in lines]
    widths = [max(3, *(len(line[place]) for line in cells)) for place in range(len(cells[0]))]
    cells.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
        for line in cells
    )


def bullets(title: str, named: Iterable[tuple[str, str]]) -> list[str]:
    """Return a title and below it a line for each name and text; nothing for none."""
    lines = [f"- {name}: {one_line(text)}" for name, text in named]
    return [f"{title}:", "\n".join(lines)] if lines else []


def one_line(text: str) -> str:
    """Return a text on one line, in which a bar ends no cell."""
    return " ".join(text.split()).replace("|", "\\|")
