"""What tables and figures of VL-BICLE know beside the metrics is read from the files of a run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bicle_samples import ROOT, items, sample, table

from vlmfair.errors import ConfigError, ContractError
from vlmfair.papers.vl_bicle.contexts import shared_contexts
from vlmfair.papers.vl_bicle.study_files import study_of_run

WORDS = ROOT / "resources/words/gender_words.yaml"


def settings(**changes: object) -> SimpleNamespace:
    return SimpleNamespace(**{"models": ("a",), "titles": (("a", "A"),), **changes})


def test_little_is_needed_and_the_rest_has_defaults() -> None:
    study = study_of_run(SimpleNamespace(words=WORDS), settings())

    assert study.title("a") == "A"
    assert (study.shots, study.runs, study.judge) == ((0, 2, 4, 6, 8), 5, "lexical")
    assert study.models_of("visual_cot_direct") == ("a",)
    assert study.mitigated == ("a",)
    assert study.bleu_signature.startswith("nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp")
    # The lists of resources/words/gender_words.yaml.
    assert "woman" in study.word_lists[1].words["singular"]
    assert "people" in study.collective


def test_settings_of_the_run_are_taken_over() -> None:
    own = settings(
        **{"shots": [0, 2], "runs": 3, "judge": "gpt-oss-20b", "alpha": 0.01, "sources": ["flux"]},
        **{"vqa_models": [], "max_new_tokens": (("caption", 24),), "word_list": "lic"},
    )

    study = study_of_run(SimpleNamespace(words=WORDS), own)

    assert (study.shots, study.runs, study.alpha) == ((0, 2), 3, 0.01)
    # Any judge but the lexical one is a language model.
    assert (study.judge, study.judge_model) == ("llm", "gpt-oss-20b")
    assert study.judge_sign == "judge gpt-oss-20b"
    assert study.models_of("visual_cot_cot") == ()
    assert study.image_sources == ("real", "flux")
    assert study.max_new_tokens == {"caption": 24}
    # pregnant is in this list only.
    assert "pregnant" in study.word_lists[1].words["singular"]


def test_an_unknown_list_of_words_is_told() -> None:
    with pytest.raises(ContractError, match="'nobody'"):
        study_of_run(SimpleNamespace(words=WORDS), settings(word_list="nobody"))


def contexts_file(folder: Path) -> Path:
    """Two settings and runs in one file, as a run has them."""
    own = items("coco_bias")
    tables = [
        shared_contexts(own, setting, run, shots=(2, 4), seed=0)
        for setting in ("MS", "BS")
        for run in (1, 2)
    ]
    path = folder / "sampled.parquet"
    pq.write_table(pa.concat_tables(tables).unify_dictionaries(), path)
    return path


def test_sequences_are_the_longest_of_the_first_run(tmp_path: Path) -> None:
    rows = [sample(n, "coco_bias", "queries", "Female") for n in (1, 0)]
    rows.append(sample(0, "coco_bias", "pool", "Male"))
    samples = tmp_path / "samples.parquet"
    pq.write_table(table(rows), samples)
    files = SimpleNamespace(words=WORDS, sequences=[contexts_file(tmp_path)], samples=samples)

    sequences = study_of_run(files, settings()).sequences

    assert [sequence.setting for sequence in sequences] == ["MS", "BS"]
    assert [len(sequence.demonstrations) for sequence in sequences] == [4, 4]
    first = shared_contexts(items("coco_bias"), "BS", 1, shots=(4,), seed=0).to_pylist()
    shown = sequences[1].demonstrations
    assert [one.gender for one in shown] == ["Male", "Female", "Male", "Female"]
    assert [one.text for one in shown] == [row["text"] for row in first[1::2]]
    assert [one.image for one in shown] == [row["image"] for row in first[::2]]
    # Behind shared sequences stands the first query in order of ids.
    assert sequences[0].query is not None
    assert sequences[0].query.image == "coco_bias/queries_000.jpg"


def test_retrieved_sequences_are_those_of_the_first_query(tmp_path: Path) -> None:
    path = contexts_file(tmp_path)
    frame = pq.read_table(path).to_pandas()
    own = frame[(frame["setting"] == "MS") & (frame["run"] == 1)]
    retrieved = pd.concat(
        own.assign(setting="SIIR", query=query, text=own["text"] + query) for query in ("q2", "q1")
    )
    pq.write_table(pa.Table.from_pandas(retrieved, preserve_index=False), path)

    (sequence,) = study_of_run(SimpleNamespace(words=WORDS, sequences=path), settings()).sequences

    assert sequence.setting == "SIIR"
    assert len(sequence.demonstrations) == 4
    assert all(one.text.endswith("q1") for one in sequence.demonstrations)
    assert sequence.query is None


def test_a_file_without_contexts_is_told(tmp_path: Path) -> None:
    path = contexts_file(tmp_path)
    pq.write_table(pq.read_table(path).slice(0, 0), path)

    with pytest.raises(ContractError, match="no context of the first run"):
        study_of_run(SimpleNamespace(words=WORDS, sequences=[path]), settings())


def test_drawn_captions_are_those_that_every_generator_drew(tmp_path: Path) -> None:
    def drawn(name: str, statuses: dict[str, str]) -> Path:
        rows = [
            {
                **{"sample_id": sample_id, "gender": "Male", "prompt": f"A man {sample_id}."},
                **{"generator": name, "status": status},
                "image": f"{name}/{sample_id}.png" if status == "ok" else None,
            }
            for sample_id, status in statuses.items()
        ]
        path = tmp_path / f"{name}.parquet"
        pd.DataFrame(rows).to_parquet(path)
        return path

    paths = [
        drawn("flux", {"a": "ok", "b": "refused", "c": "ok"}),
        drawn("sd35l", {"a": "ok", "b": "ok", "c": "uniform"}),
    ]
    samples = tmp_path / "samples.parquet"
    rows = [sample(1, "coco_bias", "pool", "Male", sample_id="a", image="photograph.jpg")]
    pq.write_table(table(rows), samples)
    files = SimpleNamespace(words=WORDS, drawn=paths, samples=samples)

    (one,) = study_of_run(files, settings()).drawn

    assert one.caption == "A man a."
    assert one.images == {"real": "photograph.jpg", "flux": "flux/a.png", "sd35l": "sd35l/a.png"}


def test_funnels_are_named_by_their_dataset(tmp_path: Path) -> None:
    path = tmp_path / "dci" / "funnel.csv"
    path.parent.mkdir()
    path.write_text("dataset,step,left\ndci,all records,5\n", "utf-8")
    files = SimpleNamespace(
        words=WORDS, funnels=[path], published=ROOT / "resources/published/vl_bicle.csv"
    )

    study = study_of_run(files, settings())

    assert study.funnels["dci"]["left"].tolist() == [5]
    assert any(one.value == "13.04" for one in study.published)


def test_models_with_one_title_are_refused() -> None:
    with pytest.raises(ConfigError, match="two models have the same title"):
        study_of_run(
            SimpleNamespace(words=WORDS),
            settings(models=("a", "b"), titles=(("a", "A"), ("b", "A"))),
        )
