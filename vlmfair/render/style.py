"""How figures look and how they are saved: sizes, fonts, colours, reproducible files."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from vlmfair.render.files import write_together

ONE_COLUMN, TWO_COLUMNS = 3.3, 6.9  # inches; the widths of a journal's columns
SMALL, NORMAL = 7.0, 8.0  # points at print size; nothing smaller is readable

_BOLD = 1.12  # bold letters are wider than the ones that are measured

# Okabe and Ito's palette, told apart with any colour vision.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
POLARITY_COLOURS = {"negative": "#D55E00", "positive": "#0072B2"}
# Monk's ten skin tones, 1 to 10.
MONK_TONES = (
    *("#f6ede4", "#f3e7db", "#f7ead0", "#eadaba", "#d7bd96"),
    *("#a07e56", "#825c43", "#604134", "#3a312a", "#292420"),
)
DIVERGING = "PuOr_r"

_SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so every machine draws the same
    "font.size": NORMAL,
    "axes.titlesize": NORMAL,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": NORMAL,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "lines.linewidth": 1.0,
    "pdf.fonttype": 42,
    "pdf.compression": 9,
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "figure.dpi": 100,
}


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw and save inside this block: it sets fonts, sizes and line widths, and restores them."""
    with matplotlib.rc_context(_SETTINGS):
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches, without any window behind it."""
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


@cache
def text_width(text: str, size: float = SMALL) -> float:
    """Return the width in inches of one line of text at a font size in points."""
    if not text.strip():
        return 0.0
    properties = FontProperties(family="DejaVu Sans")
    return float(TextPath((0, 0), text, size=size, prop=properties).get_extents().width) / 72


def widest(texts: Sequence[str], size: float = SMALL) -> float:
    """Return the width in inches of the widest of several lines of text."""
    return max((text_width(text, size) for text in texts), default=0.0)


def folded(name: str, width: float, size: float = SMALL) -> str:
    """Return a name on as many lines as a width in inches asks for, broken after hyphens."""
    lines = [""]
    for part in name.replace("-", "-\0").split("\0"):
        if lines[-1] and text_width(lines[-1] + part, size) * _BOLD > width:
            lines.append(part)
        else:
            lines[-1] += part
    return "\n".join(lines)


def colour_limit(values: np.ndarray) -> tuple[float, bool]:
    """Return the end of a symmetric colour scale and whether any value lies beyond it.

    The end is the 98th percentile of the absolute values, rounded up to 1, 2, 2.5 or 5 times a
    power of ten, so that one outlier does not make everything else pale.
    """
    magnitudes = np.abs(values[np.isfinite(values)])
    if magnitudes.size == 0 or magnitudes.max() == 0:
        return 1.0, False
    wanted = float(np.quantile(magnitudes, 0.98)) or float(magnitudes.max())
    power = 10.0 ** np.floor(np.log10(wanted))
    end = next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= wanted * 0.999)
    return float(end), bool(magnitudes.max() > end)


def save_figure(figure: Figure, data: pd.DataFrame, stem: str | os.PathLike[str]) -> list[Path]:
    """Write `<stem>.pdf`, `.png` (300 dpi) and `.csv` (the drawn values); all appear, or none.

    The same figure gives the same bytes: no time of creation is written.
    """
    base = os.fspath(stem)
    contents: dict[str | os.PathLike[str], bytes] = {
        f"{base}.csv": data.to_csv(index=False, lineterminator="\n").encode("utf-8")
    }
    for kind, metadata in (("pdf", {"CreationDate": None}), ("png", {"Software": None})):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, dpi=300, metadata=metadata)
        contents[f"{base}.{kind}"] = buffer.getvalue()
    return write_together(contents)
