"""The figures of GRAS: what is drawn is what the metrics say, whatever the size of the study."""

from __future__ import annotations

import io
import itertools
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from PIL import Image
from synthetic import (
    DEMO_MODELS,
    PAPER_MODELS,
    made_up_metrics,
    made_up_study,
    made_up_traits,
)

from vlmfair.artefacts import load_artefacts
from vlmfair.errors import ConfigError, ContractError, RawDataError
from vlmfair.papers.gras.artefacts import FAMILIES, page_of, pages, stems
from vlmfair.papers.gras.deviations import deviations_of, telling_traits
from vlmfair.papers.gras.figures import FIGURES, draw_figure
from vlmfair.papers.gras.figures_templates import draw_template_means, runs_within, spaced_out
from vlmfair.papers.gras.study import Study
from vlmfair.render.style import figure_style


def red_png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (300, 200), (255, 0, 0)).save(buffer, "png")
    return buffer.getvalue()


PNG = red_png()
Demo = tuple[pd.DataFrame, Study]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    traits = made_up_traits(20)
    path = tmp_path_factory.mktemp("raw") / "1.jpg"
    path.write_bytes(PNG)
    study = made_up_study(DEMO_MODELS, traits, images={"fairface/train/1.jpg": str(path)})
    return made_up_metrics(DEMO_MODELS, traits), study


def drawn(stem: Path) -> pd.DataFrame:
    return pd.read_csv(f"{stem}.csv", dtype={"group": str})


def test_every_figure_of_the_registry_can_be_drawn(root: Path) -> None:
    registered = {
        artefact.stem: artefact.family
        for artefact in load_artefacts(root / "config" / "artefacts.yaml")
        if artefact.paper == "gras" and artefact.kind == "figure" and artefact.built
    }
    assert set(registered) == {*FIGURES, *FAMILIES}
    assert {name for name, family in registered.items() if family} == set(FAMILIES)


@pytest.mark.parametrize("figure_id", sorted(FIGURES))
def test_figures_are_drawn_for_a_small_study(figure_id: str, demo: Demo, tmp_path: Path) -> None:
    files = draw_figure(figure_id, *demo, tmp_path / figure_id)
    assert sorted(path.suffix for path in files) == [".csv", ".pdf", ".png"]
    with Image.open(tmp_path / f"{figure_id}.png") as picture:
        assert picture.width == 2070  # 6.9 inches at 300 dots
        assert picture.height < 9 * 300


@pytest.mark.parametrize(
    ("models", "count"), [(PAPER_MODELS[:1], 4), ([*PAPER_MODELS, "x-1", "x-2", "x-3"], 4)]
)
def test_figures_take_one_to_eight_models(models: list[str], count: int, tmp_path: Path) -> None:
    traits = made_up_traits(count)
    metrics, study = made_up_metrics(models, traits), made_up_study(models, traits)
    for figure_id in ("figure_4", "figure_6"):
        draw_figure(figure_id, metrics, study, tmp_path / figure_id)
        assert set(drawn(tmp_path / figure_id)["model"]) == set(models)


def test_template_means_are_not_scrambled(demo: Demo) -> None:
    metrics, study = demo
    with figure_style():
        figure, data = draw_template_means(metrics, study)
    expected = metrics[metrics["metric"] == "template_mean"].set_index(["model", "item", "prompt"])
    for row in data.itertuples():
        assert row.mean_p_yes == expected.loc[(row.model, row.trait, row.template), "value"]
    # The points of the first panel, negative traits: T1..T5 of the first trait, then the second.
    points = figure.axes[0].lines[0].get_ydata()
    words = [trait.word for trait in study.traits if trait.polarity == "negative"]
    first = [
        expected.loc[("tiny-planted", word, f"T{i}"), "value"]
        for word in words
        for i in range(1, 6)
    ]
    assert np.allclose(points, first)


@pytest.mark.parametrize(
    ("figure_id", "attribute", "prompt"),
    [("figure_4", "race", "T2"), ("figure_5", "skin_tone", "T5"), ("figure_6", "gender", "T2")],
)
def test_the_csv_holds_the_drawn_deviations_in_percentage_points(
    figure_id: str, attribute: str, prompt: str, demo: Demo, tmp_path: Path
) -> None:
    metrics, study = demo
    draw_figure(figure_id, metrics, study, tmp_path / figure_id)
    rows = metrics[
        (metrics["metric"] == "deviation")
        & (metrics["attribute"] == attribute)
        & (metrics["prompt"] == prompt)
    ].set_index(["model", "item", "group"])
    data = drawn(tmp_path / figure_id)
    for row in data.itertuples():
        source = rows.loc[(row.model, row.trait, row.group)]
        assert row.deviation == pytest.approx(100 * source["value"])
        assert row.n == source["n"]


def test_significance_before_and_after_correction_is_told_apart(demo: Demo) -> None:
    metrics, study = demo
    table = deviations_of(metrics, study, "race").table
    assert set(table["significant"]) == {0, 1, 2}
    assert (table.loc[table["significant"] == 2, "p_holm"] <= 0.05).all()
    only_before = table[table["significant"] == 1]
    assert (only_before["p"] <= 0.05).all()
    assert (only_before["p_holm"] > 0.05).all()


def test_the_main_figures_show_the_traits_that_deviate_most(demo: Demo) -> None:
    metrics, study = demo
    wanted = {"negative-03": 0.5, "positive-01": -0.4, "annoying": 0.3, "polite": 0.2}
    changed = metrics.copy()
    for word, value in wanted.items():
        at = (
            (changed["metric"] == "deviation")
            & (changed["attribute"] == "race")
            & (changed["prompt"] == "T2")
            & (changed["model"] == "tiny-control")
            & (changed["group"] == "White")
            & (changed["item"] == word)
        )
        changed["value"] = changed["value"].mask(at, value)
    found = deviations_of(changed, study, "race")
    # Half of each polarity, in the study's order.
    assert telling_traits(found, study, 4) == ["annoying", "negative-03", "polite", "positive-01"]


def test_a_polarity_with_few_traits_is_filled_up_by_the_other(demo: Demo) -> None:
    metrics, study = demo
    few = [*study.traits[:1], *study.traits[10:]]
    small = replace(study, traits=tuple(few))
    chosen = telling_traits(deviations_of(metrics, small, "race"), small, 6)
    assert len(chosen) == 6
    assert chosen[0] == "annoying"


@pytest.mark.parametrize(
    ("figure_id", "count", "expected"),
    [
        ("figure_7-26", 100, 4),
        ("figure_27-51", 100, 5),
        ("figure_7-26", 25, 1),
        ("figure_7-26", 26, 2),
        ("figure_27-51", 4, 1),
    ],
)
def test_pages_of_a_family(figure_id: str, count: int, expected: int) -> None:
    assert pages(figure_id, count) == expected
    shown = [i for p in range(1, expected + 1) for i in range(count)[page_of(figure_id, p, count)]]
    assert shown == list(range(count))


def test_five_models_and_100_traits_give_the_papers_45_appendix_figures() -> None:
    # Figures 7-26 are 20, Figures 27-51 are 25.
    words = made_up_traits(100)["trait"].tolist()
    assert len(stems("figure_7-26", PAPER_MODELS, words)) == 20
    assert len(stems("figure_27-51", PAPER_MODELS, words)) == 25
    assert stems("figure_52", PAPER_MODELS, words) == ["figure_52"]


def test_a_table_of_temperatures_exists_only_for_a_trait_that_is_asked() -> None:
    assert stems("table_8", ["a"], ["bad", "polite"]) == ["table_8"]
    assert stems("table_6", ["a"], ["bad", "polite"]) == []
    assert stems("table_2", ["a"], ["bad", "polite"]) == ["table_2"]


def test_pages_need_no_library() -> None:
    code = (
        "import sys; import vlmfair.papers.gras.artefacts as a; print(a.pages('figure_7-26', 16));"
        "print([m for m in ('pandas', 'numpy', 'matplotlib', 'yaml', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["1", "[]"]


def test_a_page_shows_its_traits_of_its_model_and_states_the_effect(
    demo: Demo, tmp_path: Path
) -> None:
    metrics, study = demo
    stem = tmp_path / "page"
    draw_figure("figure_27-51", metrics, study, stem, model="tiny-control", page=1)
    data = drawn(stem)
    assert set(data["model"]) == {"tiny-control"}
    assert list(data["trait"].unique()) == list(study.words)
    assert data["effect"].notna().all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "tiny-control", "page": 2}, "has no page 2. Ask for a page from 1 to 1"),
        ({"model": "other", "page": 1}, "the model 'other' was not measured"),
        ({}, "one file per model and page"),
    ],
)
def test_a_page_that_does_not_exist_is_refused(
    settings: dict, message: str, demo: Demo, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        draw_figure("figure_7-26", *demo, tmp_path / "page", **settings)
    assert list(tmp_path.iterdir()) == []


def test_unequal_groups_state_their_sizes(demo: Demo) -> None:
    metrics, study = demo
    fewer = (metrics["metric"] == "deviation") & (metrics["group"] == "Black")
    found = deviations_of(metrics.assign(n=metrics["n"].mask(fewer, 401)), study, "race")
    assert found.counted() == "n = 3,570 images, 401–510 per group"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "1.jpg: the image that Figure 1 shows is missing. Put it back"),
        (b"", "1.jpg: the image that Figure 1 shows cannot be read"),
        (b"<html>not an image</html>", "cannot be read .*. Put the raw file back"),
        (PNG[: len(PNG) // 2], "cannot be read .*. Put the raw file back"),
    ],
)
def test_an_example_without_its_picture_is_no_figure(
    content: bytes | None, sentence: str, demo: Demo, tmp_path: Path
) -> None:
    path = tmp_path / "1.jpg"
    if content is not None:
        path.write_bytes(content)
    images = {"fairface/train/1.jpg": str(path)}
    study = made_up_study(DEMO_MODELS, made_up_traits(20), images=images)

    with pytest.raises(RawDataError, match=sentence):
        draw_figure("figure_1", demo[0], study, tmp_path / "out" / "figure_1")

    assert not list(tmp_path.glob("out/*"))


def test_an_example_that_is_not_in_the_image_set_is_no_figure(demo: Demo, tmp_path: Path) -> None:
    study = made_up_study(DEMO_MODELS, made_up_traits(20), images={})

    with pytest.raises(ContractError, match=r"has no fairface/train/1.jpg, which Figure 1 shows"):
        draw_figure("figure_1", demo[0], study, tmp_path / "figure_1")


def test_the_example_shows_the_picture(demo: Demo, tmp_path: Path) -> None:
    metrics, study = demo
    draw_figure("figure_1", metrics, study, tmp_path / "figure_1")
    data = pd.read_csv(tmp_path / "figure_1.csv")
    assert list(data["p_yes"]) == [0.91, 0.42, 0.07, 0.55, 0.78]
    assert data["question"][2] == "Does the person look positive-07?"
    with Image.open(tmp_path / "figure_1.png") as picture:
        red, green, blue = picture.convert("RGB").getpixel((270, 340))
    assert (red > 240, green < 20, blue < 20) == (True, True, True)


def pointers(axes: Axes) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """The lines from the last template to the names: both ends of each, brackets left out."""
    lines = [line.get_xydata() for line in axes.lines if not line.get_clip_on()]
    return [(tuple(start), tuple(end)) for start, end in lines if start[0] != end[0]]


@pytest.mark.parametrize("ends", [[1.0], [0.0, 0.01], [0.3, 0.3, 0.32, 0.9], None])
def test_pointers_to_names_never_meet(ends: list[float] | None) -> None:
    # Given 100 traits, those that the wording moves most at nearly the same last mean,
    traits = made_up_traits(100)
    metrics = made_up_metrics(PAPER_MODELS[:1], traits)
    study = made_up_study(PAPER_MODELS[:1], traits)
    if ends is not None:
        means = metrics["metric"] == "template_mean"
        moved = ["annoying", "bad", "affectionate", "polite"]
        for i, word in enumerate(moved):
            of_word = means & (metrics["item"] == word)
            last, first = of_word & (metrics["prompt"] == "T5"), metrics["prompt"] == "T1"
            metrics.loc[last, "value"] = end = ends[i % len(ends)]
            metrics.loc[of_word & first, "value"] = abs(end - 0.99)
    # when the figure is drawn,
    with figure_style():
        figure, _ = draw_template_means(metrics, study)
    # then every name has a place of its own, and no two pointers share a point.
    axes = figure.axes[0]
    names = [text for text in axes.texts if text.get_text() in set(traits["trait"])]
    drawn_pointers = sorted(pointers(axes))
    assert len(names) == 4
    assert np.diff(sorted(text.get_position()[1] for text in names)).min() > 0.074
    assert 1 <= len(drawn_pointers) <= 4
    for (_, lower), (_, upper) in itertools.pairwise(drawn_pointers):
        assert lower[1] < upper[1]
    starts = [start[1] for start, _ in drawn_pointers]
    assert all(gap > 0.01 for gap in np.diff(starts))


def test_neighbours_share_a_pointer() -> None:
    assert runs_within([0.1, 0.12, 0.15, 0.5, 0.9, 0.9], 0.04) == [[0, 1, 2], [3], [4, 5]]
    assert runs_within([], 0.04) == []


@pytest.mark.parametrize("figure_id", ["figure_6", "figure_52"])
def test_no_interval_of_one_group_is_drawn_over_that_of_another(figure_id: str) -> None:
    # Given groups that do not differ, so that all intervals lie at the same values,
    traits = made_up_traits(40)
    metrics = made_up_metrics(DEMO_MODELS, traits)
    deviation = metrics["metric"] == "deviation"
    metrics.loc[deviation, ["value", "ci_low", "ci_high"]] = [0.0, -0.01, 0.01]
    with figure_style():
        figure, _ = FIGURES[figure_id](metrics, made_up_study(DEMO_MODELS, traits))
    # when drawn, then the lines of each panel are at heights of their own, inside their rows.
    for axes in figure.axes:
        groups = [found for found in axes.collections if isinstance(found, LineCollection)]
        heights = [[line[0][1] for line in group.get_segments()] for group in groups]
        assert len(heights) == 2
        for female, male in zip(*heights, strict=True):
            assert male - female == pytest.approx(0.4)
            assert int(female) == int(male)


def test_labels_are_moved_apart_and_stay_inside() -> None:
    moved = spaced_out([0.5, 0.5, 0.99, 0.99], 0.1, 0.0, 1.0)
    assert moved == pytest.approx([0.5, 0.6, 0.9, 1.0])


def test_models_are_called_by_their_titles(demo: Demo, tmp_path: Path) -> None:
    metrics, _ = demo
    study = made_up_study(DEMO_MODELS, made_up_traits(20), titles={"tiny-control": "Control_$x$"})
    draw_figure("figure_7-26", metrics, study, tmp_path / "p", model="tiny-control", page=1)
    assert set(drawn(tmp_path / "p")["model"]) == {"Control_$x$"}


def test_missing_metrics_are_named_and_nothing_is_written(demo: Demo, tmp_path: Path) -> None:
    metrics, study = demo
    without = metrics[metrics["metric"] != "deviation"]
    with pytest.raises(ContractError, match="no row of bias_detection/deviation"):
        draw_figure("figure_4", without, study, tmp_path / "figure_4")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_figure_is_named(demo: Demo, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="GRAS has no figure_2"):
        draw_figure("figure_2", *demo, tmp_path / "figure_2")
