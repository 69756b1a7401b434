"""The figures of the LVLM paper: what is drawn is what the metrics and the answers say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lvlm_answers import PROMPTS
from lvlm_published import MODELS, as_metrics, published_metrics, published_study
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from vlmfair.errors import ConfigError, ContractError, RawDataError
from vlmfair.papers.lvlm_fairness.artefacts import WITH_IMAGES
from vlmfair.papers.lvlm_fairness.figures import FIGURES, draw_figure
from vlmfair.papers.lvlm_fairness.questions import OCCUPATIONS
from vlmfair.papers.lvlm_fairness.study import Study
from vlmfair.render.style import figure_style

FEW = ("nurse", "gymnast")


def class_metrics(models: tuple[str, ...] = ("one", "two")) -> pd.DataFrame:
    """Disparities of two models in every class; nurses and gymnasts are few, singers none."""
    rows: list[dict[str, Any]] = []
    for place, model in enumerate(models):
        for prompt, sign in (("p1", 1), ("p2", -1)):
            keys: dict[str, Any] = {"experiment": "facet", "model": model, "setting": "strict"}
            keys |= {"prompt": prompt, "attribute": "gender"}
            for number, name in enumerate(OCCUPATIONS):
                n = 6 if name in FEW else 40
                value = sign * (0.02 * number - 0.1 * place)
                # Few images move everything.
                value = {"nurse": 1.0, "singer": np.nan}.get(name, value)
                rows.append(
                    {
                        **keys,
                        **{"metric": "disparity", "group": "Male-Female", "item": name},
                        **{"value": value, "n": 0 if name == "singer" else n},
                        **{"ci_low": value - 0.1, "ci_high": value + 0.1},
                        **{"p_adjusted": 0.01 if name == "horseman" else 0.5},
                    }
                )
                for group, more in (("Male", 30), ("Female", 0)):
                    recall = {"metric": "recall", "group": group, "value": 0.5, "n": n + more}
                    rows.append({**keys, **recall, "item": name})
            for judge in ("strict", "regex"):
                accuracy = {"metric": "accuracy", "value": 0.8, "ci_low": 0.7, "ci_high": 0.9}
                rows.append({**keys, **accuracy, "n": 520, "attribute": "all", "setting": judge})
            for item, value in (("raw", 0.1), ("100", 0.08), ("20", 0.12), ("900", np.nan)):
                keys_of_item = {**keys, "experiment": "resampling", "item": item}
                keys_of_item |= {"group": "Male-Female", "n": 260}
                rows.append({**keys_of_item, "metric": "disparity", "value": value})
                if item != "raw":
                    rows.append({**keys_of_item, "metric": "standard_error", "value": 0.02})
    return as_metrics(rows)


def example(image: Path, **change: Any) -> dict[str, Any]:
    """A worked example as `worked_example` writes it."""
    questions = ["Is there a stethoscope?", "Is there a bed?"]
    return {
        **{"model": "one", "sample_id": "facet/sa_1.jpg", "image": str(image)},
        **{"occupation": "nurse", "question": PROMPTS.text("p2", "nurse")},
        "options": ["Yes", "No", "Unknown"],
        "generation_prompt": PROMPTS.generation_prompt("nurse", "p2"),
        "sub_questions": [{"question": q, "answer": "Yes.", "status": "ok"} for q in questions],
        "final_prompt": PROMPTS.final_prompt("nurse", [(q, "Yes.") for q in questions]),
        "before": {"text": "C. Unknown", "predicted": "Unknown"},
        "after": {"text": "Rationale: a bed.\nAnswer: Yes", "predicted": "Yes"},
        **{"truth": "Yes", "judge": "strict", "improved": True},
        **change,
    }


@pytest.fixture(scope="module")
def metrics() -> pd.DataFrame:
    return class_metrics()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("raw") / "sa_1.jpg"
    Image.new("RGB", (300, 200), (255, 0, 0)).save(path)
    return path


def study_of(*examples: dict[str, Any], **change: Any) -> Study:
    facts: dict[str, Any] = {
        **{"models": ("one", "two"), "prompts": PROMPTS, "table_judge": "strict"},
        **{"judges": ("strict", "regex"), "titles": {"one": "Model $1$"}},
        "sub_questions": {"nurse": ["A bed?"], "skateboarder": ["A board?", "A ramp?"]},
        **change,
    }
    return Study(examples=examples, **facts)


def shown(name: str, metrics: pd.DataFrame, study: Study) -> tuple[Figure, pd.DataFrame]:
    with figure_style():
        return FIGURES[name](metrics, study)


def texts_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.texts]


@pytest.mark.parametrize("figure_id", sorted(FIGURES))
def test_every_figure_is_drawn_and_written(
    figure_id: str, metrics: pd.DataFrame, image: Path, tmp_path: Path
) -> None:
    files = draw_figure(figure_id, metrics, study_of(example(image)), tmp_path / figure_id)

    assert sorted(path.suffix for path in files) == [".csv", ".pdf", ".png"]
    assert len(pd.read_csv(tmp_path / f"{figure_id}.csv")) > 0
    with Image.open(tmp_path / f"{figure_id}.png") as picture:
        assert picture.width == 2070  # 6.9 inches at 300 dots
        assert picture.height < 9.5 * 300


@pytest.mark.parametrize("figure_id", ["figure_1", "figure_3a", "figure_3c", "figure_3e"])
def test_figures_take_the_paper_s_nine_models(figure_id: str, tmp_path: Path) -> None:
    files = draw_figure(figure_id, published_metrics(), published_study(), tmp_path / figure_id)

    with Image.open(next(path for path in files if path.suffix == ".png")) as picture:
        assert picture.height < 6 * 300


def test_the_heat_map_has_the_paper_s_order_and_the_printed_numbers() -> None:
    figure, data = shown("figure_3a", published_metrics(), published_study(MODELS[:-1]))
    axes = figure.axes[0]

    assert [label.get_text() for label in axes.get_xticklabels()] == list(OCCUPATIONS)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(MODELS[:-1])
    # Paper, Table 9a: GPT-4o, gardener to laborer, and its nurse.
    assert [text.get_text() for text in axes.texts[:3]] == ["−0.4", "+0.4", "+3.4"]
    assert axes.texts[9].get_text() == "−34.2"
    drawn = data[(data["metric"] == "disparity") & (data["item"] == "nurse")]
    assert drawn["value"].iloc[0] == -0.3425


def test_both_heat_maps_have_one_scale_around_zero(metrics: pd.DataFrame) -> None:
    wide = metrics["value"].where(metrics["prompt"] != "p2", metrics["value"] * 1.5)
    scales = []
    for name in ("figure_3a", "figure_3b"):
        figure, _ = shown(name, metrics.assign(value=wide), study_of())
        scales.append(figure.axes[1].get_xlim())

    assert scales[0] == scales[1]
    assert scales[0][0] == -scales[0][1]
    # The largest firm disparity is 1.5 x 0.24; few nurses at 1.5 do not stretch the scale.
    assert scales[0][1] == 50


def test_cells_of_few_images_and_unknown_ones_are_hatched(metrics: pd.DataFrame) -> None:
    figure, _ = shown("figure_3a", metrics, study_of())
    hatched = {
        patch.get_xy()
        for patch in figure.axes[0].patches
        if isinstance(patch, Rectangle) and patch.get_hatch()
    }

    columns = {OCCUPATIONS.index(name) for name in (*FEW, "singer")}
    assert hatched == {(column, row) for column in columns for row in (0, 1)}
    labels = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert labels == [
        "p ≤ 0.05 after Holm’s correction",
        "smaller group has fewer than 10 images; –: none, or not measured",
    ]


def test_numbers_of_images_stand_below_every_class(metrics: pd.DataFrame) -> None:
    figure, _ = shown("figure_3b", metrics, study_of())
    texts = texts_of(figure)

    men = texts[texts.index("Images, Male") + 1 :][: len(OCCUPATIONS)]
    women = texts[texts.index("Images, Female") + 1 :][: len(OCCUPATIONS)]
    assert dict(zip(OCCUPATIONS, men))["nurse"] == "36"
    assert dict(zip(OCCUPATIONS, women))["nurse"] == "6"
    assert dict(zip(OCCUPATIONS, women))["dancer"] == "40"


def test_figure_1_shows_both_classes_with_their_numbers_of_images(metrics: pd.DataFrame) -> None:
    figure, data = shown("figure_1", metrics, study_of())

    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles == [
        "skateboarder (Male 70, Female 40 images)",
        "nurse (Male 36, Female 6 images) †",
    ]
    assert any("† fewer than 10 images" in text for text in texts_of(figure))
    assert set(data["item"]) == {"skateboarder", "nurse"}
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()


def test_encoders_have_one_scale_and_keep_their_colours(metrics: pd.DataFrame) -> None:
    figure, data = shown("figure_3c", metrics, study_of())
    alone, _ = shown("figure_3d", metrics, study_of(judges=("strict",)))

    assert figure.axes[0].get_xlim() == alone.axes[0].get_xlim() == (0, 1)
    assert set(data["setting"]) == {"regex", "strict"}
    colours = [
        {line.get_label(): line.get_color() for line in found.legends[0].get_lines()}
        for found in (figure, alone)
    ]
    assert colours[0]["strict reader"] == colours[1]["strict reader"]
    assert "n = 520 images" in texts_of(figure)[0]


def test_balanced_samples_are_in_the_order_of_their_size(metrics: pd.DataFrame) -> None:
    figure, _ = shown("figure_3e", metrics, study_of())

    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [
        "all images (smaller gender 260)",
        *("20 of each gender", "100 of each gender", "900 of each gender"),
    ]


def test_figure_5_shows_the_paper_s_occupation_where_the_run_has_it(metrics: pd.DataFrame) -> None:
    figure, data = shown("figure_5", metrics, study_of())
    other, _ = shown("figure_5", metrics, study_of(sub_questions={"nurse": ["A bed?"]}))

    assert data["text"].tolist()[1:] == ["A board?", "A ramp?"]
    assert "Sub-questions: skateboarder" in texts_of(figure)
    assert "Sub-questions: nurse" in texts_of(other)


@pytest.mark.parametrize("name", sorted(WITH_IMAGES))
def test_the_example_is_one_whose_answer_turned_right(
    name: str, metrics: pd.DataFrame, image: Path
) -> None:
    same = example(image, model="one", sample_id="facet/same.jpg", improved=False)
    turned = example(image, model="two", sample_id="facet/turned.jpg")

    _, data = shown(name, metrics, study_of(same, turned))
    _, only = shown(name, metrics, study_of(same))

    assert set(data["sample_id"]) == {"facet/turned.jpg"}
    assert set(only["sample_id"]) == {"facet/same.jpg"}
    assert set(only["model"]) == {"Model $1$"}


def test_hostile_texts_are_shown_as_they_are_and_cut(
    metrics: pd.DataFrame, image: Path, tmp_path: Path
) -> None:
    evil = "$\\frac{1}{0}$ \u202e<script>\x00" + "Rationale " * 500 + "B" * 2000
    hostile = example(
        image,
        sample_id="facet/" + "x" * 300 + ".jpg",
        sub_questions=[{"question": evil, "answer": evil, "status": "ok"}] * 9,
        final_prompt=evil,
        generation_prompt=evil,
        before={"text": "", "predicted": None},
        after={"text": evil, "predicted": None},
    )
    for name in WITH_IMAGES:
        draw_figure(name, metrics, study_of(hostile), tmp_path / name)
        with Image.open(tmp_path / f"{name}.png") as picture:
            assert picture.height < 11 * 300
        data = pd.read_csv(tmp_path / f"{name}.csv", keep_default_na=False)
        # The csv file has the text in full.
        assert data.set_index("part")["text"]["answer_after"] == evil
    figure, _ = shown("figure_6", metrics, study_of(hostile))
    texts = texts_of(figure)
    assert any("[U+202E]<script>[U+0000]" in text for text in texts)
    assert "→ read as: no answer" in texts
    assert "(empty)" in texts


def test_the_image_of_the_example_is_shown(
    metrics: pd.DataFrame, image: Path, tmp_path: Path
) -> None:
    draw_figure("figure_6", metrics, study_of(example(image)), tmp_path / "figure_6")

    with Image.open(tmp_path / "figure_6.png") as picture:
        red, green, blue = np.asarray(picture.convert("RGB"))[330, 250]
    assert (red > 240, green < 20, blue < 20) == (True, True, True)


def test_a_missing_image_stops_and_nothing_is_written(
    metrics: pd.DataFrame, tmp_path: Path
) -> None:
    study = study_of(example(tmp_path / "gone.jpg"))

    with pytest.raises(RawDataError, match="the image that Figure 6 shows is missing"):
        draw_figure("figure_6", metrics, study, tmp_path / "figure_6")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("figure_id", "change", "says"),
    [
        ("figure_4", {}, "no worked example"),
        ("figure_5", {"sub_questions": {}}, "no sub-questions"),
    ],
)
def test_a_run_without_rationales_is_told_so(
    figure_id: str, change: dict[str, Any], says: str, metrics: pd.DataFrame, tmp_path: Path
) -> None:
    with pytest.raises(ContractError, match=says):
        draw_figure(figure_id, metrics, study_of(**change), tmp_path / figure_id)


def test_a_model_without_metrics_is_named(metrics: pd.DataFrame, tmp_path: Path) -> None:
    without = metrics[metrics["model"] != "two"]
    for figure_id in ("figure_1", "figure_3a", "figure_3c", "figure_3e"):
        with pytest.raises(ContractError, match="of the model two"):
            draw_figure(figure_id, without, study_of(), tmp_path / figure_id)


def test_an_unknown_figure_is_named(metrics: pd.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="lvlm_fairness has no figure_2. Use one of figure_1, "):
        draw_figure("figure_2", metrics, study_of(), tmp_path / "figure_2")
