"""In-context sequences: nesting, composition, alternation, determinism, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from bicle_samples import ROOT, items, sample, samples
from hypothesis import given, settings
from hypothesis import strategies as st

from vlmfair.errors import ConfigError, ContractError
from vlmfair.papers.vl_bicle.contexts import (
    check_contexts,
    draw_sequence,
    shared_contexts,
    zero_shot_contexts,
)
from vlmfair.papers.vl_bicle.retrieval import (
    PoolFeatures,
    balanced_pool,
    most_similar,
    retrieved_contexts,
)

SHOTS = [0, 2, 4, 6, 8]
CAPTIONS = items("coco_bias")
SIZES = st.tuples(st.integers(8, 14), st.integers(8, 14))
SETTING = st.sampled_from(["RS", "MS", "FS", "BS"])


def shown(table: object, **keys: object) -> dict[tuple[str, int], list[dict[str, object]]]:
    """The demonstrations (user's turns) of each context by query and shots."""
    found: dict[tuple[str, int], list[dict[str, object]]] = {}
    for row in table.to_pylist():  # type: ignore[attr-defined]
        if row["role"] == "user" and all(row[name] == value for name, value in keys.items()):
            found.setdefault((row["query"], row["shots"]), []).append(row)
    return {key: sorted(rows, key=lambda row: row["turn"]) for key, rows in found.items()}


@settings(max_examples=40, deadline=None)
@given(SIZES, SETTING, st.integers(1, 5), st.integers(0, 3))
def test_sequences_are_nested_and_composed_as_their_setting_says(
    pool: tuple[int, int], setting: str, run: int, seed: int
) -> None:
    own = items("coco_bias", pool=pool)

    contexts = shown(shared_contexts(own, setting, run, shots=SHOTS, seed=seed))

    longest = [row["sample_id"] for row in contexts[("", 8)]]
    assert len(set(longest)) == 8
    for number in (2, 4, 6, 8):
        rows = contexts[("", number)]
        assert [row["sample_id"] for row in rows] == longest[:number]
        genders = [row["gender"] for row in rows]
        if setting in ("MS", "FS"):
            assert set(genders) == {{"MS": "Male", "FS": "Female"}[setting]}
        if setting == "BS":
            assert genders == ["Male", "Female"] * (number // 2)
        assert set(longest) <= {item.sample_id for item in own.pool}


@settings(max_examples=20, deadline=None)
@given(SETTING, st.permutations(range(19)))
def test_the_order_of_samples_changes_nothing(setting: str, order: list[int]) -> None:
    rows = samples("coco_bias")
    mixed = [rows[place] for place in order] + rows[19:]

    usual = shared_contexts(CAPTIONS, setting, 1, shots=SHOTS, seed=0)

    assert shared_contexts(items("coco_bias", mixed), setting, 1, shots=SHOTS, seed=0) == usual


def test_runs_settings_and_seeds_are_drawn_independently() -> None:
    drawn = {
        (setting, run, seed): draw_sequence(
            CAPTIONS.pool, setting, run, dataset="coco_bias", length=8, seed=seed
        )
        for setting in ("RS", "MS", "FS", "BS")
        for run in range(1, 6)
        for seed in (0, 1)
    }

    assert len(set(drawn.values())) == len(drawn)


def test_random_sequences_follow_the_pool_s_distribution() -> None:
    # Over many runs each of 19 images is as often first; 3 standard deviations of a binomial.
    firsts = [
        draw_sequence(CAPTIONS.pool, "RS", run, dataset="d", length=1, seed=0)[0].sample_id
        for run in range(1900)
    ]

    counts = np.unique(firsts, return_counts=True)[1]

    assert len(counts) == 19
    assert abs(counts - 100).max() < 3.5 * np.sqrt(100 * 18 / 19)


def test_the_drawing_of_the_first_run_is_fixed() -> None:
    # Written out: another machine, Python or hash seed has to draw the same images.
    (context,) = shown(shared_contexts(CAPTIONS, "BS", 1, shots=[4], seed=0)).values()

    assert [row["sample_id"] for row in context] == [
        f"coco_bias/pool_{number}" for number in ("004", "013", "007", "018")
    ]


def test_hash_seeds_change_nothing() -> None:
    script = (
        "from bicle_samples import items\n"
        "from vlmfair.papers.vl_bicle.contexts import shared_contexts\n"
        "own = items('coco_bias')\n"
        "print(shared_contexts(own, 'RS', 1, shots=[8], seed=0)['sample_id'].to_pylist())"
    )
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "vl_bicle")])
    run = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": "123", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )

    here = shared_contexts(CAPTIONS, "RS", 1, shots=[8], seed=0)["sample_id"].to_pylist()
    assert run.stdout.strip() == str(here)


def test_demonstrations_are_a_question_and_an_answer() -> None:
    rows = shared_contexts(CAPTIONS, "FS", 2, shots=[2], seed=0).to_pylist()

    assert [(row["turn"], row["role"]) for row in rows] == [
        *((0, "user"), (1, "assistant"), (2, "user"), (3, "assistant")),
    ]
    assert rows[0]["text"] == "Describe the image in one sentence."
    number = int(str(rows[0]["sample_id"])[-3:])
    # The first caption names nobody's gender, and its white space is gone.
    assert rows[1]["text"] == f"A woman number {number}."
    assert (rows[0]["image"], rows[1]["image"]) == (f"coco_bias/pool_{number:03d}.jpg", None)
    assert {row["context_id"] for row in rows} == {"coco_bias/real/FS/run2/k2"}


def test_visual_questions_share_their_sequences_between_prompts() -> None:
    direct, thought = (
        shared_contexts(items(f"visual_cot_{kind}"), "RS", 3, shots=[2], seed=0).to_pylist()
        for kind in ("direct", "cot")
    )

    assert [row["sample_id"] for row in direct] == [row["sample_id"] for row in thought]
    number = int(str(direct[0]["sample_id"])[-3:])
    noun = {"Male": "man", "Female": "woman"}[str(direct[0]["gender"])]
    question = f"Is the {noun} number {number} sitting?"
    assert direct[0]["text"] == f"{question} Please answer the question."
    assert direct[1]["text"] == "Answer: yes"
    step = "Please think step by step, then answer the question."
    assert thought[0]["text"] == f"{question} {step}"
    assert thought[1]["text"] == f"Thought: 1. Look at {number}. 2. See. Answer: yes"


def test_zero_shots_show_visual_questions_an_example_without_a_person() -> None:
    rows = zero_shot_contexts(items("visual_cot_direct")).to_pylist()

    assert [row["text"] for row in rows] == [
        *("What colour is it? Please answer the question.", "Answer: red")
    ]
    assert {row["shots"] for row in rows} == {0}
    assert len(zero_shot_contexts(CAPTIONS)) == 0


@pytest.mark.parametrize(
    ("setting", "pool", "says"),
    [
        ("FS", (10, 3), "FS with 8 demonstrations needs 8 women in the pool of coco_bias, and "
                        "there are 3"),
        ("BS", (10, 3), "BS with 8 demonstrations needs 4 women in the pool of coco_bias, and "
                        "there are 3"),
        ("MS", (0, 9), "MS with 8 demonstrations needs 8 men"),
        ("RS", (4, 3), "RS with 8 demonstrations needs 8 images in the pool of coco_bias, and "
                       "there are 7"),
    ],
)  # fmt: skip
def test_a_pool_that_is_too_small_is_told_with_numbers(
    setting: str, pool: tuple[int, int], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        shared_contexts(items("coco_bias", pool=pool), setting, 1, shots=SHOTS, seed=0)


def test_settings_and_numbers_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="XS is not sampled"):
        shared_contexts(CAPTIONS, "XS", 1, shots=SHOTS, seed=0)
    with pytest.raises(ConfigError, match="which 3 demonstrations cannot be"):
        shared_contexts(CAPTIONS, "BS", 1, shots=[3], seed=0)
    with pytest.raises(ConfigError, match="lists no number above 0"):
        shared_contexts(CAPTIONS, "BS", 1, shots=[0], seed=0)


def test_images_of_queries_and_repeated_ones_are_no_demonstrations() -> None:
    rows = samples("coco_bias")
    query = next(row for row in rows if row["split"] == "queries")
    rows[0]["image_sha256"] = query["image_sha256"]
    rows[2]["image_sha256"] = rows[1]["image_sha256"]
    rows[3]["captions"] = ["A person.", "A woman and a man."]
    rows[4]["gender"] = "Both"

    own = items("coco_bias", rows)

    assert [(left.sample_id[-3:], left.reason) for left in own.left_out] == [
        *(("000", "image_of_a_query"), ("002", "repeated_image")),
        *(("003", "no_gendered_caption"), ("004", "no_gender")),
    ]
    assert not {item.image_sha256 for item in own.pool} & {i.image_sha256 for i in own.queries}


def test_a_context_that_shows_a_query_is_refused() -> None:
    table = shared_contexts(CAPTIONS, "RS", 1, shots=[8], seed=0)

    check_contexts(table, CAPTIONS.queries)
    with pytest.raises(ContractError, match="RS/run1/k8 shows the image of coco_bias/pool"):
        check_contexts(table, CAPTIONS.pool)


# ------------------------------------------------------------------------------------- retrieval


def features(seed: int = 0, width: int = 5) -> PoolFeatures:
    random = np.random.default_rng(seed)

    def units(rows: int) -> np.ndarray:
        found = random.normal(size=(rows, width)).astype(np.float32)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    pool = len(CAPTIONS.pool)
    return PoolFeatures(units(len(CAPTIONS.queries)), units(pool), units(pool))


@pytest.mark.parametrize("setting", ["SIIR", "SITR"])
def test_the_most_similar_stand_last_and_nest_at_the_end(setting: str) -> None:
    own = features()
    compared = own.images if setting == "SIIR" else own.texts

    contexts = shown(retrieved_contexts(CAPTIONS, setting, own, shots=SHOTS, seed=0))

    for row, query in enumerate(CAPTIONS.queries):
        # A plain loop over the pool, most similar first.
        cosines = [float(own.queries[row] @ candidate) for candidate in compared]
        best = sorted(range(len(cosines)), key=lambda place: -cosines[place])
        for number in (2, 4, 6, 8):
            expected = [CAPTIONS.pool[place].sample_id for place in reversed(best[:number])]
            found = contexts[(query.sample_id, number)]
            assert [demonstration["sample_id"] for demonstration in found] == expected


def test_the_balanced_pool_has_as_many_of_each_gender() -> None:
    own = items("coco_bias", pool=(14, 9))
    genders = [item.gender for item in own.pool]

    kept = balanced_pool(own, seed=0)

    assert [genders[place] for place in kept].count("Male") == 9
    assert sum(gender == "Female" for gender in genders) == 9
    assert set(np.flatnonzero(np.array(genders) == "Female")) <= set(kept.tolist())
    assert kept.tolist() != balanced_pool(own, seed=1).tolist()
    random = np.random.default_rng(0)
    found = PoolFeatures(*(random.normal(size=(n, 4)).astype(np.float32) for n in (6, 23, 23)))
    table = retrieved_contexts(own, "SIIR/balanced", found, shots=[8], seed=0)
    allowed = {own.pool[place].sample_id for place in kept}
    assert set(table["sample_id"].to_pylist()) <= allowed


def test_equal_similarities_are_taken_in_the_order_of_ids() -> None:
    # Equal but for rounding, as another machine might compute them.
    candidates = np.array([[1.0, 0.0], [1.0, 1e-9], [0.0, 1.0], [1.0 - 1e-9, 0.0]])

    assert most_similar(np.array([[1.0, 0.0]]), candidates, 4).tolist() == [[0, 1, 3, 2]]


def test_what_cannot_be_retrieved_is_refused() -> None:
    own = features()
    with pytest.raises(ConfigError, match="RS retrieves nothing"):
        retrieved_contexts(CAPTIONS, "RS", own, shots=[2], seed=0)
    with pytest.raises(ConfigError, match="SIIR compares captions, which visogender_oo lacks"):
        retrieved_contexts(items("visogender_oo"), "SIIR", own, shots=[2], seed=0)
    with pytest.raises(ConfigError, match="SITR/balanced with 20 demonstrations .* there are 18"):
        retrieved_contexts(CAPTIONS, "SITR/balanced", own, shots=[20], seed=0)
    with pytest.raises(ContractError, match="features of 6 queries and 18 demonstrations for 6"):
        short = PoolFeatures(own.queries, own.images[1:], own.texts)
        retrieved_contexts(CAPTIONS, "SIIR", short, shots=[2], seed=0)


def test_samples_without_what_a_task_needs_are_left_out_with_a_reason() -> None:
    rows = [
        *samples("visual_cot"),
        sample(90, "visual_cot", "pool", "Male", thought=""),
        sample(91, "visual_cot", "queries", "Male", question="Is his hat red?"),
        sample(92, "visual_cot", "queries", "Male", answer=" "),
    ]

    own = items("visual_cot_direct", rows)

    assert [(left.sample_id[-3:], left.reason) for left in own.left_out] == [
        *(("090", "no_thought"), ("091", "resists"), ("092", "no_answer")),
    ]
    assert own.queries[0].question == "Is the person number 19 sitting?"


def test_the_two_tasks_of_visogender_have_their_own_images() -> None:
    rows = samples("visogender")
    rows.append(sample(95, "visogender", "queries", "Male", task="OP", companion="patient"))

    own = items("visogender_op", rows)

    assert [item.sample_id for item in own.queries] == ["visogender/queries_095"]
    assert own.pool == ()
    demonstration = items("visogender_oo", rows).pool[0]
    assert demonstration.answer == "The doctor and his floor plan."
    assert (demonstration.text, demonstration.prefix) == ("", "The doctor and")


def test_what_a_task_cannot_do_without_is_asked_for() -> None:
    rows = [row for row in samples("visual_cot") if row["split"] != "example"]
    with pytest.raises(ContractError, match="no sample of the split example"):
        items("visual_cot_cot", rows)
    with pytest.raises(ContractError, match="dci has no query"):
        items("dci", [row for row in samples("dci") if row["split"] != "queries"])
    plain = [{k: v for k, v in row.items() if k != "companion"} for row in samples("visogender")]
    with pytest.raises(ContractError, match="samples of visogender lack the columns companion"):
        items("visogender_oo", plain)
