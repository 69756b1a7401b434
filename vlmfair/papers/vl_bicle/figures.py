"""The figures of the paper by their names, each drawn from the metrics and the study alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from vlmfair.errors import ConfigError
from vlmfair.papers.vl_bicle import figures_lines, figures_retrieval, figures_sheets
from vlmfair.papers.vl_bicle.study import Study
from vlmfair.render.style import figure_style, save_figure

Drawer = Callable[[pd.DataFrame, Study], tuple[Figure, pd.DataFrame]]

FIGURES: dict[str, Drawer] = {
    "figure_1": figures_sheets.draw_sequences,
    "figure_2": figures_lines.draw_shifts,
    "figure_3": figures_lines.draw_one_gender,
    "figure_4": figures_retrieval.draw_retrieval,
    "figure_5": figures_lines.draw_visual_questions,
    "figure_6": figures_lines.draw_sources,
    "figure_synthetic": figures_sheets.draw_drawn_images,
}


def draw_figure(
    figure_id: str,
    metrics: pd.DataFrame,
    study: Study,
    stem: str | os.PathLike[str],
) -> list[Path]:
    """Draw one figure and write `<stem>.pdf`, `.png` and `.csv` (what is drawn), all or none.

    Raises ConfigError on an unknown name, ContractError when the metrics or the study lack what it
    draws, RawDataError when an image that it shows cannot be read.
    """
    if figure_id not in FIGURES:
        raise ConfigError(f"vl_bicle has no {figure_id}. Use one of {', '.join(FIGURES)}.")
    with figure_style():
        figure, data = FIGURES[figure_id](metrics, study)
        return save_figure(figure, data, stem)
