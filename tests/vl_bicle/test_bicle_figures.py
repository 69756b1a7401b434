"""The figures of VL-BICLE: what is drawn is what the metrics and the demonstrations say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bicle_metrics import measure
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image

from vlmfair.artefacts import load_artefacts
from vlmfair.errors import ConfigError, ContractError, RawDataError
from vlmfair.papers.vl_bicle.artefacts import WITH_IMAGES
from vlmfair.papers.vl_bicle.figures import FIGURES, draw_figure
from vlmfair.papers.vl_bicle.figures_look import SETTING_LOOKS
from vlmfair.papers.vl_bicle.study import (
    Demonstration,
    DemonstrationSequence,
    DrawnImage,
    Study,
)
from vlmfair.papers.vl_bicle.tasks import SAMPLED, TASKS
from vlmfair.render.style import figure_style

MODELS = ("one", "two")
OF_METRICS = sorted(set(FIGURES) - set(WITH_IMAGES))
# The paper's six models, of which three were asked visual questions and four saw drawn images.
SIX = ("QwenVL", "Idefics3", "Phi35V", "MiniCPM", "InternVL35", "Qwen3VL")
EVIL = "$\\frac{1}{0}$ \u202e<script>\x00" + "caption " * 500 + "B" * 2000


@pytest.fixture(scope="module")
def metrics() -> pd.DataFrame:
    """Measured numbers of two models; eight shots of DCI were not asked."""
    return pd.concat([measure(name, seed=n) for n, name in enumerate(MODELS)], ignore_index=True)


@pytest.fixture(scope="module")
def six(metrics: pd.DataFrame) -> pd.DataFrame:
    own = metrics[metrics["model"] == "one"]
    return pd.concat([own.assign(model=name) for name in SIX], ignore_index=True)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An image of a man, wide and blue, and of a woman, high and red."""
    folder = tmp_path_factory.mktemp("raw")
    found = {}
    for gender, size, colour in (
        ("Male", (160, 120), (0, 0, 255)),
        ("Female", (120, 160), (255, 0, 0)),
    ):
        path = folder / f"{gender}.png"
        Image.new("RGB", size, colour).save(path)
        found[gender] = str(path)
    return found


def sequences(pictures: dict[str, str], text: str = "") -> tuple[DemonstrationSequence, ...]:
    """Eight demonstrations of each setting; retrieved ones have the query of a woman."""
    found = []
    for setting, gender in (("SIIR", "Male"), ("FS", "Female"), ("MS", "Male")):
        shown = tuple(
            Demonstration(pictures[gender], text or f"{setting} caption {n}", gender)
            for n in range(1, 9)
        )
        asked = "Female" if setting == "SIIR" else "Male"
        query = Demonstration(pictures[asked], "", asked)
        found.append(DemonstrationSequence(setting, shown, query))
    return tuple(found)


def drawn(pictures: dict[str, str], men: int = 7, women: int = 7) -> tuple[DrawnImage, ...]:
    images = {"Male": [pictures["Male"]] * men, "Female": [pictures["Female"]] * women}
    return tuple(
        DrawnImage(f"caption {n} of {gender}", gender, {"real": path, "flux": path, "sd35l": path})
        for gender, paths in images.items()
        for n, path in enumerate(paths, start=1)
    )


def study_of(pictures: dict[str, str] | None = None, **changes: Any) -> Study:
    facts: dict[str, Any] = {"models": MODELS, "titles": {"one": "Model $1$"}, "runs": 2}
    if pictures is not None:
        facts |= {"sequences": sequences(pictures), "drawn": drawn(pictures)}
    return Study(**{**facts, **changes})


def shown(name: str, metrics: pd.DataFrame, study: Study) -> tuple[Figure, pd.DataFrame]:
    with figure_style():
        return FIGURES[name](metrics, study)


def texts_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.texts]


def notes_of(figure: Figure) -> str:
    return " ".join(texts_of(figure))


def drawn_lines(axes: Axes) -> dict[str, np.ndarray]:
    """The lines of a panel by the setting that has their colour, as [shots, values]."""
    names = {look.colour.lower(): name for name, look in SETTING_LOOKS.items()}
    return {
        names[to_hex(line.get_color())]: np.asarray(line.get_xydata())
        for line in axes.lines
        if line.get_marker() not in ("None", "") and to_hex(line.get_color()) in names
    }


@pytest.mark.parametrize("figure_id", sorted(FIGURES))
def test_every_figure_is_drawn_and_written(
    figure_id: str, metrics: pd.DataFrame, pictures: dict[str, str], tmp_path: Path
) -> None:
    files = draw_figure(figure_id, metrics, study_of(pictures), tmp_path / figure_id)

    assert sorted(path.suffix for path in files) == [".csv", ".pdf", ".png"]
    assert len(pd.read_csv(tmp_path / f"{figure_id}.csv")) > 0
    with Image.open(tmp_path / f"{figure_id}.png") as picture:
        assert picture.width == 2070  # 6.9 inches at 300 dots
        assert picture.height < 9.5 * 300


@pytest.mark.parametrize("figure_id", OF_METRICS)
def test_figures_take_the_paper_s_six_models(figure_id: str, six: pd.DataFrame) -> None:
    study = Study(SIX, vqa_models=("MiniCPM", "Phi35V", "Qwen3VL"), synthetic_models=SIX[1:5])

    figure, _ = shown(figure_id, six, study)

    assert figure.get_size_inches()[1] < 9.5
    names = {"figure_5": ("Phi35V", "MiniCPM", "Qwen3VL"), "figure_6": SIX[1:5]}
    assert [text for text in texts_of(figure) if text in SIX] == list(names.get(figure_id, SIX))


def test_the_registry_lists_every_figure(root: Path) -> None:
    listed = load_artefacts(root / "config/artefacts.yaml")

    figures = [entry for entry in listed if (entry.paper, entry.kind) == ("vl_bicle", "figure")]
    assert [entry.stem for entry in figures if entry.built] == list(FIGURES)


def test_figure_2_draws_the_shifts_of_every_setting(metrics: pd.DataFrame) -> None:
    figure, data = shown("figure_2", metrics, study_of())

    # Two rows of six tasks, column by column: the first is VisoGender-OO of the first model.
    assert len(figure.axes) == 2 * len(TASKS)
    lines = drawn_lines(figure.axes[0])
    assert set(lines) == set(SAMPLED)
    own = metrics[
        (metrics["model"] == "one")
        & (metrics["dataset"] == "visogender_oo")
        & (metrics["metric"] == "error_shift")
        & (metrics["group"] == "Male-Female")
        & (metrics["setting"] == "MS")
    ].sort_values("shots")
    # MS is the second of four lines, a twentieth of a step left of its shots.
    assert lines["MS"][:, 0].tolist() == pytest.approx([0, 1.9, 3.9, 5.9, 7.9])
    # Zero shots are the start of every shift.
    assert lines["MS"][:, 1].tolist() == [0.0, *own["value"]]
    row = data[(data["model"] == "Model $1$") & (data["setting"] == "MS") & (data["shots"] == 8)]
    row = row[row["dataset"] == "visogender_oo"].iloc[0]
    last = own.iloc[-1]
    assert (row["value"], row["ci_low"], row["n"]) == (last["value"], last["ci_low"], 12)
    assert {"p", "p_adjusted"} <= set(data.columns)
    assert any(text == "n = 12 + 12" for text in texts_of(figure))
    assert "Below 0 is male bias" in notes_of(figure)


def test_figure_2_has_bands_that_are_the_intervals(metrics: pd.DataFrame) -> None:
    figure, data = shown("figure_2", metrics, study_of())

    first = data[(data["model"] == "Model $1$") & (data["dataset"] == "visogender_oo")]
    bands = [band.get_datalim(figure.axes[0].transData) for band in figure.axes[0].collections]
    ends = {(round(band.y0, 6), round(band.y1, 6)) for band in bands}
    for setting in SAMPLED:
        own = first[first["setting"] == setting]
        # At zero shots a band begins in 0.
        low, high = min(own["ci_low"].min(), 0.0), max(own["ci_high"].max(), 0.0)
        assert (round(low, 6), round(high, 6)) in ends


def test_the_line_of_no_difference_is_drawn(metrics: pd.DataFrame) -> None:
    for name, along in (("figure_2", "y"), ("figure_4", "x")):
        figure, _ = shown(name, metrics, study_of())
        for axes in figure.axes:
            ends = [np.unique(getattr(line, f"get_{along}data")()) for line in axes.lines]
            assert any(found.tolist() == [0] for found in ends)
            low, high = getattr(axes, f"get_{along}lim")()
            assert low < 0 < high


def test_settings_have_one_colour_in_all_figures_and_one_order(metrics: pd.DataFrame) -> None:
    order = ["RS", "MS", "FS", "BS", "SIIR", "SITR"]
    assert list(SETTING_LOOKS) == order
    assert len({look.colour for look in SETTING_LOOKS.values()}) == len(order)
    assert len({look.marker for look in SETTING_LOOKS.values()}) == len(order)

    study = study_of(settings=("BS", "FS", "MS", "RS"))
    for name, settings in (
        ("figure_2", order[:4]),
        ("figure_3", ["MS", "FS"]),
        ("figure_4", order),
    ):
        figure, _ = shown(name, metrics, study)
        named = [text.partition(":")[0] for text in texts_of(figure)]
        assert [text for text in named if text in order] == settings
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows == order


def test_cells_that_were_not_asked_are_hatched_and_explained(metrics: pd.DataFrame) -> None:
    figure, data = shown("figure_2", metrics, study_of())

    hatched = [axes for axes in figure.axes if any(patch.get_hatch() for patch in axes.patches)]
    # Both models on DCI, whose column is the fourth.
    assert hatched == figure.axes[6:8]
    assert [patch.get_x() for patch in hatched[0].patches] == [7.0]
    assert "Hatched: not asked, since the prompt holds more images" in notes_of(figure)
    absent = data[(data["dataset"] == "dci") & (data["shots"] == 8)]
    assert set(absent["status"]) == {"not asked"}
    assert absent["value"].isna().all()


def test_a_model_without_a_task_says_so_in_its_place(metrics: pd.DataFrame) -> None:
    figure, data = shown("figure_2", metrics, study_of(vqa_models=("one",)))
    alone, _ = shown("figure_5", metrics, study_of(vqa_models=("one",)))

    notes = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert notes == [*([[]] * 9), ["not asked"], [], ["not asked"]]
    # The numbers of shots below the last row stand there all the same.
    assert [label.get_text() for label in figure.axes[-1].get_xticklabels()][-1] == "8"
    assert set(data[data["dataset"] == "visual_cot"]["model"]) == {"Model $1$"}
    assert "two" not in texts_of(alone)
    assert "Not asked: two." in texts_of(alone)


def test_a_model_that_takes_no_demonstrations_has_no_lines(metrics: pd.DataFrame) -> None:
    kept = (metrics["model"] != "two") | (metrics["shots"] == 0) | (metrics["metric"] == "skipped")
    few = metrics[kept]
    skipped = metrics[(metrics["metric"] == "error_rate") & (metrics["run"] == 1)]
    skipped = skipped[(skipped["model"] == "two") & (skipped["shots"] > 0)]
    skipped = skipped[skipped["group"] == "all"].assign(metric="skipped", n=0, value=3.0)
    few = pd.concat([few, skipped], ignore_index=True)

    figure, data = shown("figure_4", few, study_of())
    shifts, _ = shown("figure_2", few, study_of())

    assert [text.get_text() for text in figure.axes[-1].texts] == ["not asked"]
    assert any(patch.get_hatch() for patch in shifts.axes[1].patches)
    assert data[data["model"] == "two"]["value"].notna().sum() == 1  # zero shots


def test_figure_3_shows_men_and_women_beside_each_other(metrics: pd.DataFrame) -> None:
    figure, data = shown("figure_3", metrics, study_of())

    # Four tasks, two models, two genders; questions are Figure 5's.
    assert len(figure.axes) == 4 * 2 * 2
    assert set(data["setting"]) == {"zero-shot", "MS", "FS"}
    assert set(data["group"]) == {"Male", "Female"}
    assert "visual_cot" not in set(data["dataset"])
    men, women = figure.axes[:2]
    assert men.get_ylim() == women.get_ylim()
    start = data[(data["setting"] == "zero-shot") & (data["group"] == "Female")].iloc[0]
    assert {line[0, 1] for line in drawn_lines(women).values()} == {start["value"]}


def test_figure_4_shows_both_pools_in_the_row_of_a_setting(metrics: pd.DataFrame) -> None:
    figure, data = shown("figure_4", metrics, study_of())

    assert set(data["setting"]) == {
        *("zero-shot", "RS", "MS", "FS", "BS"),
        *("SIIR", "SITR", "SIIR/balanced", "SITR/balanced"),
    }
    colour = SETTING_LOOKS["SIIR"].colour.lower()
    marks = [
        line
        for line in figure.axes[0].lines
        if to_hex(line.get_markeredgecolor()) == colour and line.get_marker() != "None"
    ]
    faces = [to_hex(line.get_markerfacecolor()) for line in marks]
    assert faces == [colour, "#ffffff"]
    # Row 4, counted from 0: above and below its middle.
    assert [float(line.get_ydata()[0]) for line in marks] == pytest.approx([4.3, 4.7])
    assert {axes.get_xlim() for axes in figure.axes} == {figure.axes[0].get_xlim()}


@pytest.mark.parametrize(
    ("judge", "model", "says"),
    [("lexical", "", "not by the paper’s language model"), ("llm", "judge-20b", "by judge-20b")],
)
def test_the_judge_of_questions_is_named(
    judge: str, model: str, says: str, metrics: pd.DataFrame
) -> None:
    own = metrics.assign(item=metrics["item"].where(metrics["item"] != "lexical", judge))

    for name in ("figure_2", "figure_5"):
        figure, data = shown(name, own, study_of(judge=judge, judge_model=model))
        assert says in notes_of(figure)
        assert judge in set(data["judge"])


def test_figure_6_starts_every_source_at_zero_shots(metrics: pd.DataFrame) -> None:
    figure, data = shown("figure_6", metrics, study_of(clip_backbone="ViT-B-32"))

    assert set(data["image_source"]) == {"real", "flux", "sd35l"}
    # The number of zero shots is the same for all sources and stands in the file once a model.
    assert len(data[(data["metric"] == "clipscore") & (data["shots"] == 0)]) == len(MODELS)
    starts = {float(line.get_ydata()[0]) for line in figure.axes[0].lines if len(line.get_xdata())}
    zero = data[(data["metric"] == "clipscore") & (data["shots"] == 0)].iloc[0]
    assert zero["value"] in starts
    assert "(ViT-B-32)" in notes_of(figure)
    assert "n = 24 queries" in notes_of(figure)


def test_a_generator_that_the_paper_lacks_has_a_look_of_its_own(metrics: pd.DataFrame) -> None:
    own = metrics.assign(image_source=metrics["image_source"].replace("sd35l", "mine"))

    figure, data = shown("figure_6", own, study_of(sources=("flux", "mine")))

    assert set(data["image_source"]) == {"real", "flux", "mine"}
    assert "mine (drawn images)" in texts_of(figure)


def test_figure_1_has_a_row_for_each_setting_with_the_same_query(
    metrics: pd.DataFrame, pictures: dict[str, str]
) -> None:
    figure, data = shown("figure_1", metrics, study_of(pictures))

    assert list(dict.fromkeys(data["setting"])) == ["MS", "FS", "SIIR"]
    assert data["position"].tolist() == [*map(str, range(1, 9)), "query"] * 3
    assert len(figure.axes) == 27
    marks = [axes.texts[0].get_text() for axes in figure.axes]
    # The query is the one that SIIR retrieved for: a woman's.
    assert marks == [*"MMMMMMMM", "F", *"FFFFFFFF", "F", *"MMMMMMMM", "F"]
    assert data[data["position"] == "query"]["gender"].tolist() == ["Female"] * 3
    assert data["caption"].iloc[0] == "MS caption 1"


def test_longer_sequences_show_those_next_to_the_query(
    metrics: pd.DataFrame, pictures: dict[str, str]
) -> None:
    longer = tuple(
        replace(one, demonstrations=one.demonstrations + one.demonstrations)
        for one in sequences(pictures)
    )

    figure, data = shown("figure_1", metrics, study_of(sequences=longer))

    assert data["position"].tolist()[:9] == [*map(str, range(9, 17)), "query"]
    assert "The last 8 of 16 demonstrations" in notes_of(figure)


def test_the_sheet_shows_as_many_men_as_women_of_each_source(
    metrics: pd.DataFrame, pictures: dict[str, str]
) -> None:
    figure, data = shown("figure_synthetic", metrics, study_of(pictures))
    few, _ = shown("figure_synthetic", metrics, study_of(drawn=drawn(pictures, men=1, women=20)))

    images = data[data["metric"] == "image"]
    assert images["gender"].value_counts().to_dict() == {"Male": 15, "Female": 15}
    assert images["image_source"].value_counts().to_dict() == {"real": 10, "flux": 10, "sd35l": 10}
    assert images["caption"].iloc[0] == "caption 1 of Male"
    assert texts_of(figure)[1:4] == ["COCOBias", "FLUX", "SD35L"]
    # Women fill the places that men leave.
    assert len(few.axes) == 30


def test_the_sheet_says_how_well_images_fit_their_captions(
    metrics: pd.DataFrame, pictures: dict[str, str]
) -> None:
    keys = {"paper": "vl_bicle", "experiment": "synthesis", "model": "all", "run": 0}
    keys |= {"group": "all", "image_source": "flux", "n": 40}
    rows = [
        {"metric": "image_clipscore", "value": 28.42, "ci_low": 27.9, "ci_high": 28.9},
        {"metric": "gender_as_captioned", "value": 95.0, "ci_low": 83.5, "ci_high": 98.6},
        {"metric": "refused", "value": 3.0},
        {"metric": "truncated", "value": 0.0},
    ]
    own = pd.concat([metrics, pd.DataFrame([{**keys, **row} for row in rows])], ignore_index=True)

    figure, data = shown("figure_synthetic", own, study_of(pictures))

    assert (
        "FLUX: CLIPScore 28.4 [27.9, 28.9]; gender as captioned 95.0% [83.5, 98.6]; n = 40; "
        "refused 3, caption cut 0 of 40." in notes_of(figure)
    )
    assert data[data["metric"] == "refused"]["value"].tolist() == [3.0]


@pytest.mark.parametrize("name", WITH_IMAGES)
def test_hostile_captions_are_shown_as_they_are_and_cut(
    name: str, metrics: pd.DataFrame, pictures: dict[str, str]
) -> None:
    study = study_of(
        sequences=sequences(pictures, EVIL),
        drawn=tuple(replace(one, caption=EVIL) for one in drawn(pictures)),
    )

    figure, data = shown(name, metrics, study)

    assert figure.get_size_inches()[1] < 9.5
    # The csv file has the text in full.
    assert EVIL in set(data["caption"])
    assert any("[U+202E]" in text for text in texts_of(figure))
    assert not any("\u202e" in text or "\x00" in text for text in texts_of(figure))


def test_an_image_is_framed_and_shown(metrics: pd.DataFrame, pictures: dict[str, str]) -> None:
    figure, _ = shown("figure_synthetic", metrics, study_of(pictures))

    canvas = figure.canvas
    assert isinstance(canvas, FigureCanvasAgg)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3]
    blue, red = (pixels == (0, 0, 255)).all(axis=2), (pixels == (255, 0, 0)).all(axis=2)
    # Both fill a good part of the sheet: nothing is drawn over them.
    assert blue.mean() > 0.1
    assert red.mean() > 0.1


@pytest.mark.parametrize(
    ("figure_id", "names"), [("figure_1", "Figure 1"), ("figure_synthetic", "the sheet of drawn")]
)
def test_a_missing_image_stops_and_nothing_is_written(
    figure_id: str, names: str, metrics: pd.DataFrame, tmp_path: Path
) -> None:
    gone = {gender: str(tmp_path / "gone.jpg") for gender in ("Male", "Female")}

    with pytest.raises(RawDataError, match=f"the image that {names}.* shows is missing"):
        draw_figure(figure_id, metrics, study_of(gone), tmp_path / figure_id)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("figure_id", "change", "says"),
    [
        ("figure_1", {}, "no sequences of demonstrations"),
        ("figure_synthetic", {}, "no drawn images"),
        ("figure_4", {"retrieval": ()}, "no retrieved demonstrations"),
        ("figure_4", {"shots": (0,)}, "no retrieved demonstrations"),
        ("figure_5", {"tasks": ("dci",)}, "List its tasks in vl_bicle.tasks"),
        ("figure_6", {"synthetic_models": ()}, "no model was shown drawn demonstrations"),
    ],
)
def test_a_run_without_what_a_figure_shows_is_told_so(
    figure_id: str, change: dict[str, Any], says: str, metrics: pd.DataFrame, tmp_path: Path
) -> None:
    with pytest.raises(ContractError, match=says):
        draw_figure(figure_id, metrics, study_of(**change), tmp_path / figure_id)


@pytest.mark.parametrize("figure_id", OF_METRICS)
def test_a_model_without_metrics_is_named(figure_id: str, metrics: pd.DataFrame) -> None:
    without = metrics[metrics["model"] != "two"]

    with pytest.raises(ContractError, match="of the model two on"):
        shown(figure_id, without, study_of())


@pytest.mark.parametrize(
    ("figure_id", "gone", "says"),
    [
        ("figure_2", {"setting": "BS", "shots": 6}, "BS, 6 shots, images: real"),
        ("figure_4", {"setting": "SITR/balanced"}, "SITR/balanced, 2 shots"),
        ("figure_6", {"image_source": "sd35l"}, "MS, 2 shots, images: sd35l"),
    ],
)
def test_a_cell_that_was_neither_measured_nor_skipped_is_named(
    figure_id: str, gone: dict[str, Any], says: str, metrics: pd.DataFrame
) -> None:
    lost = np.logical_and.reduce([metrics[name] == value for name, value in gone.items()])

    with pytest.raises(ContractError, match=says):
        shown(figure_id, metrics[~lost], study_of())


def test_metrics_of_another_paper_are_no_metrics(metrics: pd.DataFrame) -> None:
    with pytest.raises(ContractError, match="no row of vl_bicle"):
        shown("figure_2", metrics.assign(paper="gras"), study_of())


def test_an_unknown_figure_is_named(metrics: pd.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="vl_bicle has no figure_7. Use one of figure_1, "):
        draw_figure("figure_7", metrics, study_of(), tmp_path / "figure_7")
