"""The figures of GRAS by their names, each drawn from the metrics and the study's facts alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from vlmfair.errors import ConfigError
from vlmfair.papers.gras.artefacts import FAMILIES
from vlmfair.papers.gras.figures_gender import draw_gender
from vlmfair.papers.gras.figures_heat import draw_page, draw_race
from vlmfair.papers.gras.figures_templates import draw_example, draw_template_means
from vlmfair.papers.gras.figures_tones import draw_tones
from vlmfair.papers.gras.study import Study, with_titles
from vlmfair.render.style import figure_style, save_figure

Drawer = Callable[[pd.DataFrame, Study], tuple[Figure, pd.DataFrame]]

FIGURES: dict[str, Drawer] = {
    "figure_1": draw_example,
    "figure_3": draw_template_means,
    "figure_4": draw_race,
    "figure_5": draw_tones,
    "figure_6": partial(draw_gender, every_trait=False),
    "figure_52": partial(draw_gender, every_trait=True),
}


def draw_figure(
    figure_id: str,
    metrics: pd.DataFrame,
    study: Study,
    stem: str | os.PathLike[str],
    *,
    model: str | None = None,
    page: int | None = None,
) -> list[Path]:
    """Draw one figure and write `<stem>.pdf`, `.png` and `.csv` (the drawn values), all or none.

    A family of figures needs `model` and `page` (from 1). Raises ConfigError on an unknown name,
    ContractError when the metrics lack what it draws.
    """
    titles = study.titles
    metrics, study = with_titles(metrics, study)
    with figure_style():
        if figure_id in FAMILIES:
            if model is None or page is None:
                raise ConfigError(
                    f"{figure_id} has one file per model and page. Name a model and a page."
                )
            shown = titles.get(model) or model
            figure, data = draw_page(figure_id, metrics, study, model=shown, page=page)
        elif figure_id in FIGURES:
            figure, data = FIGURES[figure_id](metrics, study)
        else:
            known = ", ".join([*FIGURES, *FAMILIES])
            raise ConfigError(f"GRAS has no {figure_id}. Use one of {known}.")
        return save_figure(figure, data, stem)
