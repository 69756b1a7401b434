"""The whole road as an instrument: the metrics show what was planted, the control nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pytest

from vlmfair.demo.planted import PlantedTable, load_planted, p_yes_trait
from vlmfair.demo.raw_data import scenes_of
from vlmfair.papers.gras.selection import GROUPS, MEASURED

pytestmark = pytest.mark.workflow

# The mean error of one answer of the small models is 0.03; a group of the small run has at least
# three images, and the largest of some hundred such differences is allowed to be this far off.
TOLERANCE = 0.08
MEAN_TOLERANCE = 0.02


@pytest.fixture(scope="module")
def metrics(finished) -> pd.DataFrame:
    return pd.read_parquet(finished.folder / "results/demo/gras/metrics.parquet")


def planted_deviations(finished, table: PlantedTable) -> Iterator[tuple[tuple[str, ...], float]]:
    """The planted deviation of each group's mean, for the images that were really measured."""
    sizes = {key: finished.settings["gras"][key] for key in ("per_cell", "per_tone")}
    images = pd.read_parquet(finished.folder / "results/demo/gras/images.parquet")
    for dataset, attributes in MEASURED.items():
        scenes = scenes_of(dataset, **sizes)
        measured = images[images["dataset"] == dataset]
        for trait in finished.settings["gras"]["traits"]:
            for template in range(1, 6):
                p = measured["sample_id"].map(
                    lambda name, scenes=scenes, trait=trait, template=template: p_yes_trait(
                        scenes[name], trait, template, table
                    )
                )
                for attribute in attributes:
                    means = p.groupby(measured[attribute]).mean()
                    assert set(means.index) == set(GROUPS[attribute])
                    for group, mean in means.items():
                        key = (attribute, str(group), trait, f"T{template}")
                        yield key, mean - p.mean()


@pytest.mark.parametrize("model", ["tiny-planted", "tiny-control"])
def test_measured_deviations_are_the_planted_ones(finished, metrics, model):
    table = load_planted(finished.folder / "resources/demo/planted.yaml")
    planted = dict(planted_deviations(finished, table if "planted" in model else table.control()))
    rows = metrics[(metrics["model"] == model) & (metrics["metric"] == "deviation")]
    keys = ["attribute", "group", "item", "prompt"]
    measured = rows[rows["group"] != "all"].set_index(keys)["value"]

    gaps = (measured - pd.Series(planted).rename_axis(keys)).abs()

    assert len(gaps) == len(planted) == (2 + 7 + 5 + 10) * 4 * 5
    assert gaps.notna().all()
    assert gaps.max() <= TOLERANCE, gaps.idxmax()
    assert gaps.mean() <= MEAN_TOLERANCE


def test_the_planted_model_scores_above_chance_and_the_control_does_not(metrics):
    score = metrics[
        (metrics["metric"] == "gras_bias_score") & (metrics["setting"] == "uncorrected")
    ].set_index("model")
    assert score.loc["tiny-planted", "p"] <= 0.05
    assert score.loc["tiny-control", "p"] > 0.05
