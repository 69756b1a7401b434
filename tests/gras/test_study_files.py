"""What tables show beside the metrics is read from the files of a run, not repeated by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pytest
import yaml

from vlmfair.contracts import SAMPLES, write_table
from vlmfair.errors import ContractError
from vlmfair.models.registry import make_entry
from vlmfair.papers.gras.study_files import load_study, study_of_run

SHARD = {
    "model": "llava",
    "model_digest": "ab12",
    "dtype": "float32",
    "attention": "sdpa",
    "inference_modes": {"plain": 80},
    "label_tokens": {" Yes": [3869], "Yes": [8241]},
}


@pytest.fixture
def files(tmp_path, root):
    """The files of a run of one model over one image."""
    image = {"sample_id": "fairface/1.jpg", "dataset": "fairface", "image": "raw/1.jpg"}
    table = pa.Table.from_pylist([{**image, "image_sha256": "0" * 64}])
    write_table(tmp_path / "images.parquet", table, SAMPLES)
    (tmp_path / "selection.csv").write_text("dataset,attribute,group,listed\nai_face,t,1,8\n")
    (tmp_path / "m.json").write_text(json.dumps({"shards": [SHARD], "rows": 80}))
    settings = {"family": "llava", "dtype": "float32", "attention": "sdpa", "path": "x"}
    entry = make_entry("llava", {**settings, "yes_form": " Yes", "yes_id": 3869, "title": "LLaVA"})
    return {
        "entries": {"llava": entry},
        "models": ["llava"],
        "traits_file": root / "resources/words/gras_traits.csv",
        "chosen_traits": ["bad", "polite"],
        "prompts_file": root / "resources/prompts/gras.yaml",
        "style": "released",
        "alpha": 0.05,
        "selection": tmp_path / "selection.csv",
        "images": tmp_path / "images.parquet",
        "manifests": [tmp_path / "m.json"],
    }


def test_the_study_is_that_of_the_run(files):
    study = load_study(**files)

    assert study.words == ("bad", "polite")
    assert study.titles == {"llava": "LLaVA"}
    assert study.images == {"fairface/1.jpg": "raw/1.jpg"}
    assert (study.tokens[0].token_id, study.tokens[0].published_id) == (3869, 3869)
    assert study.tokens[0].prompt.count(" " * 50) == 2, "the released prompt has two runs"


def test_a_rules_inputs_and_parameters_give_the_same_study(files, tmp_path, root):
    settings = {"family": "llava", "dtype": "float32", "attention": "sdpa", "path": "x"}
    more = {"yes_form": " Yes", "yes_id": 3869, "title": "LLaVA"}
    (tmp_path / "models.yaml").write_text(yaml.safe_dump({"models": {"llava": settings | more}}))
    inputs = SimpleNamespace(
        traits=files["traits_file"],
        prompts=files["prompts_file"],
        **{name: files[name] for name in ("selection", "images", "manifests")},
    )
    parameters = SimpleNamespace(
        models_file=tmp_path / "models.yaml",
        **{name: files[name] for name in ("models", "chosen_traits", "style", "alpha")},
    )

    study, expected = study_of_run(inputs, parameters), load_study(**files)

    pd.testing.assert_frame_equal(study.selection, expected.selection)
    assert replace(study, selection=None) == replace(expected, selection=None)


def test_groups_named_by_numbers_stay_text(files):
    study = load_study(**files)
    assert study.selection is not None
    assert study.selection["group"].tolist() == ["1"]


def test_shards_that_disagree_about_the_token_are_refused(files):
    other = {**SHARD, "label_tokens": {" Yes": [3553]}}
    files["manifests"][0].write_text(json.dumps({"shards": [SHARD, other], "rows": 80}))
    with pytest.raises(ContractError, match="2 tokens for the answer ' Yes', not one"):
        load_study(**files)
