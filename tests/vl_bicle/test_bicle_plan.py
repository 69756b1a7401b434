"""Prompts as the paper has them, and requests: cells, shards, ids, and cells that are skipped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from bicle_samples import ENTRY, PROMPTS, ROOT, items, plan, samples

from vlmfair.errors import ConfigError, ContractError
from vlmfair.inference.label_sets import load_label_sets
from vlmfair.inference.queries import make_queries
from vlmfair.papers.vl_bicle.contexts import shared_contexts, zero_shot_contexts
from vlmfair.papers.vl_bicle.plan import cells_of, number_of_shards, plan_task
from vlmfair.papers.vl_bicle.questions import fill, load_prompts
from vlmfair.papers.vl_bicle.retrieval import PoolFeatures, retrieved_contexts
from vlmfair.papers.vl_bicle.tasks import RETRIEVED, SAMPLED, TASKS, file_name, runs_of, task_named

PATH = ROOT / "resources/prompts/vl_bicle.yaml"
LABELS = load_label_sets(PATH)


def conversation(task: str, setting: str = "MS", shots: int = 2) -> list[tuple[str, str, int]]:
    """Role, text and number of images of each turn of a task's first query."""
    own = items(task)
    table = shared_contexts(own, setting, 1, shots=[shots or 2], seed=0)
    context = table if shots else zero_shot_contexts(own)
    planned = plan_task(
        own, ENTRY, [context], shots=[shots], images_per_shard=9, max_new_tokens=8
    ).requests
    query = next(make_queries(planned, context, LABELS))
    turns = [(turn.role, turn.text, len(turn.images)) for turn in query.turns]
    return [*turns, ("prefix", query.assistant_prefix, 0)]


def test_the_pronoun_prompt_is_the_paper_s() -> None:
    # Appendix 0.C.1: no instruction, the assistant's turn begins with "The [occupation] and".
    assert conversation("visogender_oo") == [
        *(("user", "", 1), ("assistant", "The doctor and his floor plan.", 0)) * 2,
        *(("user", "", 1), ("prefix", "The doctor and", 0)),
    ]
    assert LABELS == {"pronoun": (" his", " her")}


def test_the_captioning_prompt_is_the_paper_s() -> None:
    turns = conversation("dci", "FS")

    assert [turn[:2] for turn in turns[::2]] == [
        ("user", "Describe the image in one sentence.")
    ] * 3
    assert turns[1][1].startswith("A woman number")
    assert turns[-1] == ("prefix", "", 0)


def test_visual_questions_are_neutral_and_their_demonstrations_are_not() -> None:
    turns = conversation("visual_cot_cot", "FS")

    asked, said = turns[0][1], turns[1][1]
    assert asked.startswith("Is the woman number")
    assert asked.endswith(" sitting? Please think step by step, then answer the question.")
    assert said.startswith("Thought: 1. Look at ")
    assert said.endswith(" Answer: yes")
    assert turns[4][1] == (
        "Is the person number 19 sitting? Please think step by step, then answer the question."
    )


def test_zero_shots_have_the_example_of_visual_questions_only() -> None:
    assert [turn[1] for turn in conversation("visual_cot_direct", shots=0)] == [
        *("What colour is it? Please answer the question.", "Answer: red"),
        *("Is the person number 19 sitting? Please answer the question.", ""),
    ]
    assert len(conversation("coco_bias", shots=0)) == 2


def test_every_query_is_asked_in_every_cell() -> None:
    own = items("visogender_oo", queries=3)

    requests = plan(own, ["MS", "BS"], shots=[0, 2, 4], runs=2).requests

    assert cells_of(requests) == [
        *(("BS", k, run, "real") for k in (2, 4) for run in (1, 2)),
        *(("MS", k, run, "real") for k in (2, 4) for run in (1, 2)),
        ("zero-shot", 0, 1, "real"),
    ]
    counts = np.unique(requests["sample_id"].to_pylist(), return_counts=True)
    assert counts[1].tolist() == [9] * 6
    assert requests["truth"].to_pylist()[:6] == ["his"] * 3 + ["her"] * 3
    assert set(requests["mode"].to_pylist()) == {"score"}
    contexts = dict(
        zip(requests["context_id"].to_pylist(), requests["shots"].to_pylist(), strict=True)
    )
    assert contexts == {
        "": 0,
        **{
            f"visogender_oo/real/{setting}/run{run}/k{k}": k
            for setting in ("MS", "BS")
            for run in (1, 2)
            for k in (2, 4)
        },
    }


def test_a_shard_is_one_setting_and_run_with_all_shots_of_some_queries() -> None:
    own = items("coco_bias", queries=3)

    requests = plan(own, ["MS", "BS"], shots=[0, 2, 4], runs=2, images_per_shard=4).requests

    shards: dict[int, set[tuple[str, int]]] = {}
    for row in requests.to_pylist():
        shards.setdefault(row["shard"], set()).add((row["setting"], row["run"]))
    assert len(shards) == number_of_shards(6, groups=5, images_per_shard=4) == 10
    assert all(len(found) == 1 for found in shards.values())
    assert requests["shard"].to_pylist() == sorted(requests["shard"].to_pylist())
    own_shots = [row["shots"] for row in requests.to_pylist() if row["shard"] == 2]
    assert own_shots == [2] * 4 + [4] * 4


def test_shards_may_hold_several_groups_each_with_its_shots_side_by_side() -> None:
    own = items("coco_bias", queries=3)

    requests = plan(own, ["MS", "BS"], shots=[0, 2, 4], runs=2, groups_per_shard=3).requests

    # Zero shots, BS run 1 and BS run 2; then both runs of MS.
    rows = [
        (row["shard"], row["setting"], row["run"], row["shots"]) for row in requests.to_pylist()
    ]
    assert list(dict.fromkeys(rows)) == [
        (0, "zero-shot", 1, 0),
        *((0, "BS", run, k) for run in (1, 2) for k in (2, 4)),
        *((1, "MS", run, k) for run in (1, 2) for k in (2, 4)),
    ]
    assert number_of_shards(6, 5, images_per_shard=6, groups_per_shard=3) == 2


def test_request_ids_follow_what_is_asked_and_nothing_else() -> None:
    def ids(task: str = "dci", **changes: object) -> set[str]:
        own = items(task, samples(task))
        requests = plan(own, ["MS"], shots=[0, 2], runs=1, **changes).requests
        return set(requests["request_id"].to_pylist())

    usual = ids()

    assert len(usual) == 12
    assert ids(images_per_shard=1) == usual
    assert not ids(max_new_tokens=9) & usual
    assert not ids("coco_bias") & usual
    own = items("dci")
    other = shared_contexts(own, "MS", 1, shots=[2], seed=1)
    seeded = plan_task(
        own, ENTRY, [zero_shot_contexts(own), other], shots=[0, 2],
        images_per_shard=9, max_new_tokens=8,
    ).requests  # fmt: skip
    # Another seed changes the demonstrations, and so what is asked after them; zero shots stay.
    assert len(set(seeded["request_id"].to_pylist()) & usual) == 6


def test_retrieved_demonstrations_belong_to_their_query() -> None:
    own = items("coco_bias", queries=2)
    random = np.random.default_rng(0)
    features = PoolFeatures(*(random.normal(size=(n, 3)).astype(np.float32) for n in (4, 19, 19)))
    contexts = retrieved_contexts(own, "SIIR", features, shots=[2, 4], seed=0)

    requests = plan_task(
        own, ENTRY, [contexts], shots=[2, 4], images_per_shard=9, max_new_tokens=8
    ).requests

    for row in requests.to_pylist():
        expected = f"coco_bias/real/SIIR/run1/k{row['shots']}/{row['sample_id']}"
        assert row["context_id"] == expected
    with pytest.raises(ContractError, match="SIIR with 2 shots has no context of the query"):
        plan_task(items("coco_bias", queries=3), ENTRY, [contexts], shots=[2],
                  images_per_shard=9, max_new_tokens=8)  # fmt: skip


def test_cells_that_a_model_cannot_take_are_listed() -> None:
    own = items("visual_cot_direct")

    planned = plan(own, ["MS"], shots=[0, 2, 4], runs=1, most_images=3)

    # The example of zero shots is an image, too: 2, 3 and 5 images.
    assert cells_of(planned.requests) == [("MS", 2, 1, "real"), ("zero-shot", 0, 1, "real")]
    assert planned.skipped_rows() == [
        {
            "task": "visual_cot_direct",
            "setting": "MS",
            "shots": 4,
            "run": 1,
            "image_source": "real",
            "images": 5,
            "reason": "made-up takes 3 images in a prompt, and 5 are needed",
        }
    ]
    with pytest.raises(ConfigError, match="made-up takes no more than 1 images"):
        plan(own, ["MS"], shots=[0, 2], most_images=1)


def test_numbers_and_transforms_that_cannot_be_are_refused() -> None:
    own = items("dci")
    with pytest.raises(ConfigError, match="max_new_tokens is 0"):
        plan(own, max_new_tokens=0)
    with pytest.raises(ConfigError, match="images_per_shard is 0"):
        plan(own, images_per_shard=0)
    resizing = replace(ENTRY, image_transforms=MappingProxyType({"dci": "resize:9x9"}))
    with pytest.raises(ConfigError, match="made-up: image_transforms.dci would change the queries"):
        plan_task(own, resizing, [], shots=[0], images_per_shard=9, max_new_tokens=8)


def test_names_of_tasks_settings_and_files() -> None:
    assert list(TASKS) == [
        *("visogender_oo", "visogender_op", "coco_bias", "dci"),
        *("visual_cot_direct", "visual_cot_cot"),
    ]
    assert [runs_of(setting) for setting in (*SAMPLED, *RETRIEVED, "zero-shot")] == (
        [(1, 2, 3, 4, 5)] * 4 + [(1,)] * 5
    )
    assert file_name("SIIR/balanced") == "SIIR_balanced"
    with pytest.raises(ConfigError, match="XS is no setting"):
        runs_of("XS")
    with pytest.raises(ConfigError, match="coco is no task"):
        task_named("coco")


def test_values_are_filled_in_once() -> None:
    # A question of a dataset may hold braces itself.
    assert fill("{question} {answer}", question="{answer} {x}", answer="{question}") == (
        "{answer} {x} {question}"
    )
    with pytest.raises(ConfigError, match="vl_bicle has no prompt 'p1'"):
        PROMPTS.user_text("p1")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("in one sentence", "in a sentence"), "the text of caption is not the one"),
        (("proofreading", "checking"), "the text of judge is not the one"),
        (('his: [" his"]', 'his: ["his"]'), "label_sets.pronoun must list ' his' and ' her'"),
        (("Male: his, ", ""), "the key 'Male' is missing"),
        (("judge:", "judges:"), "the key 'judge' is missing"),
    ],
)
def test_a_damaged_prompts_file_is_refused(
    tmp_path: Path, change: tuple[str, str], says: str
) -> None:
    source = PATH.read_text(encoding="utf-8")
    assert change[0] in source
    path = tmp_path / "vl_bicle.yaml"
    path.write_text(source.replace(*change, 1), encoding="utf-8")

    with pytest.raises(ConfigError, match=says):
        load_prompts(path)
    with pytest.raises(ConfigError, match="the prompts file is missing"):
        load_prompts(tmp_path / "none.yaml")
