"""Figures as files: reproducible bytes, embedded fonts, colour scales that outliers leave be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from vlmfair.render.panels import draw_heat, place
from vlmfair.render.style import (
    MONK_TONES,
    NORMAL,
    SMALL,
    colour_limit,
    figure_style,
    folded,
    new_figure,
    save_figure,
    text_width,
)


def save_small_heat_map(stem: Path, rows: list[str]) -> list[Path]:
    values = np.array([[1.5, -2.0], [np.nan, 0.0]])
    with figure_style():
        figure = new_figure(3.3, 2)
        draw_heat(place(figure, 1.0, 0.2, 2.0, 1.5), values, 2.0, rows)
        return save_figure(figure, pd.DataFrame({"value": values.ravel()}), stem)


def test_the_same_figure_gives_the_same_bytes(tmp_path: Path) -> None:
    first = save_small_heat_map(tmp_path / "a", ["x", "y"])
    second = save_small_heat_map(tmp_path / "b", ["x", "y"])
    assert sorted(p.suffix for p in first) == [".csv", ".pdf", ".png"]
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


def test_pdf_embeds_truetype_fonts_and_states_no_time(tmp_path: Path) -> None:
    save_small_heat_map(tmp_path / "a", ["x", "y"])
    pdf = (tmp_path / "a.pdf").read_bytes()
    assert b"/Type3" not in pdf
    assert b"/FontFile2" in pdf
    assert b"CreationDate" not in pdf


def test_png_has_300_dots_per_inch(tmp_path: Path) -> None:
    save_small_heat_map(tmp_path / "a", ["x", "y"])
    png = (tmp_path / "a.png").read_bytes()
    assert (int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")) == (990, 600)


def test_names_with_dollar_signs_and_underscores_are_drawn_as_they_are(tmp_path: Path) -> None:
    assert save_small_heat_map(tmp_path / "a", ["$\\frac{$", "a_b^c"])


def test_nothing_is_smaller_than_seven_points() -> None:
    assert min(SMALL, NORMAL) >= 7


def test_the_scale_ends_at_a_round_number_beyond_the_largest_value() -> None:
    assert colour_limit(np.array([-0.9, 3.2, np.nan])) == (5.0, False)
    assert colour_limit(np.array([0.0, 0.0])) == (1.0, False)


def test_one_outlier_is_clipped_and_told() -> None:
    values = np.append(np.linspace(-2, 2, 200), 90.0)
    assert colour_limit(values) == (2.0, True)


def test_monk_tones_run_from_light_to_dark() -> None:
    luminance = [np.dot(to_rgb(tone), (0.299, 0.587, 0.114)) for tone in MONK_TONES]
    assert len(luminance) == 10
    assert luminance[0] > 0.9 > 0.2 > luminance[-1]


def test_a_long_name_is_folded_after_its_hyphens() -> None:
    assert folded("Phi-4-multimodal-instruct", 0.8) == "Phi-4-\nmultimodal-\ninstruct"
    assert folded("bare", 0.1) == "bare"


def test_text_is_measured_in_inches() -> None:
    assert text_width("") == 0
    assert text_width("mmmmm", 7) == pytest.approx(5 * 0.974 * 7 / 72, rel=0.05)
