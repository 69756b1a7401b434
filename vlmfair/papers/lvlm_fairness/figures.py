"""The figures of the paper by their names, each drawn from the metrics and the study alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from vlmfair.errors import ConfigError
from vlmfair.papers.lvlm_fairness import figures_dots, figures_heat, figures_rationale
from vlmfair.papers.lvlm_fairness.study import Study
from vlmfair.render.style import figure_style, save_figure

Drawer = Callable[[pd.DataFrame, Study], tuple[Figure, pd.DataFrame]]

FIGURES: dict[str, Drawer] = {
    "figure_1": figures_dots.draw_two_classes,
    "figure_3a": partial(figures_heat.draw_classes, kind="direct"),
    "figure_3b": partial(figures_heat.draw_classes, kind="choice"),
    "figure_3c": partial(figures_dots.draw_encoders, kind="direct"),
    "figure_3d": partial(figures_dots.draw_encoders, kind="choice"),
    "figure_3e": figures_dots.draw_resampling,
    "figure_4": figures_rationale.draw_pipeline,
    "figure_5": figures_rationale.draw_generation,
    "figure_6": figures_rationale.draw_example,
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
        raise ConfigError(f"lvlm_fairness has no {figure_id}. Use one of {', '.join(FIGURES)}.")
    with figure_style():
        figure, data = FIGURES[figure_id](metrics, study)
        return save_figure(figure, data, stem)
