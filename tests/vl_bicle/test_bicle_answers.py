"""From contexts to answers: a demo model whose pull of demonstrations is known, a served judge."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import fake_api
import numpy as np
import pyarrow as pa
import pytest
from bicle_samples import NOUNS, PROMPTS, ROOT, items, plan, respond

from vlmfair.demo.questions import captions
from vlmfair.demo.scenes import draw, sample_scene
from vlmfair.inference.api_shard import answer_api_shard
from vlmfair.inference.label_sets import load_label_sets
from vlmfair.inference.shard import answer_shard
from vlmfair.models.registry import load_registry
from vlmfair.papers.vl_bicle.contexts import shared_contexts, zero_shot_contexts
from vlmfair.papers.vl_bicle.items import Item, Items
from vlmfair.papers.vl_bicle.judge import judge_captions, judge_pronouns
from vlmfair.papers.vl_bicle.judge_answers import judge_answers
from vlmfair.papers.vl_bicle.plan import plan_task
from vlmfair.papers.vl_bicle.verdicts import plan_verdicts, read_verdicts
from vlmfair.text.words import load_gender_words

pytestmark = pytest.mark.usefixtures("one_thread")
LABELS = load_label_sets(ROOT / "resources/prompts/vl_bicle.yaml")


def drawn(own: Items, folder: Path) -> Items:
    """The same items with pictures: clear people in the pool, hooded ones as queries."""
    random = np.random.default_rng(5)

    def picture(item: Item, hooded: bool) -> Item:
        gender = item.gender.lower()
        scene = sample_scene(random, gender=gender, hooded=hooded, two=False, occupation="student")
        path = folder / f"{item.sample_id.replace('/', '_')}.png"
        draw(scene, 120).save(path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        found = replace(item, image=str(path), image_sha256=digest)
        if item.prefix:
            return found
        # A wording that the model was trained on.
        return replace(found, answer=captions(scene, NOUNS[item.gender])[0])

    return replace(
        own,
        pool=tuple(picture(item, hooded=False) for item in own.pool),
        queries=tuple(picture(item, hooded=True) for item in own.queries),
    )


def ask(own: Items, store: Path, shots: int) -> tuple[pa.Table, pa.Table]:
    """Requests and responses of the planted demo model, without and with demonstrations."""
    contexts = [shared_contexts(own, name, 1, shots=[shots], seed=0) for name in ("MS", "FS")]
    contexts.append(zero_shot_contexts(own))
    entry = load_registry(ROOT / "config/models.yaml")["tiny-planted"]
    entry = replace(entry, path=str(ROOT / "resources/demo/tiny-planted"))
    requests = plan_task(
        own, entry, contexts, shots=[0, shots], images_per_shard=99, max_new_tokens=24
    ).requests
    table = pa.concat_tables(contexts).unify_dictionaries()
    found = answer_shard(requests, table, entry, LABELS, [1.0], store, device="cpu", threads=1)
    # "his" and "her" are tokens of their own behind the prefix.
    assert found.manifest["labels_merged_with_prompt"] == []
    assert found.manifest["labels_with_one_token"] == []
    assert found.manifest["errors"] == 0
    return requests, found.responses


def test_the_planted_pull_of_demonstrations_is_found_in_pronouns(tmp_path: Path) -> None:
    own = drawn(items("visogender_oo", pool=(4, 4), queries=3), tmp_path)

    judged = judge_pronouns(*ask(own, tmp_path / "store", 4)).to_pandas()

    logit = np.log(judged["p_her"] / judged["p_his"])
    assert ((judged["p_her"] + judged["p_his"]) > 0.9).all()
    by_setting = logit.groupby(judged["setting"].astype(str)).mean()
    # docs/demo.md: women only against men only, four demonstrations, hooded: 2.93 logits.
    assert by_setting["FS"] - by_setting["MS"] == pytest.approx(2.93, abs=1.2)
    assert by_setting["MS"] < by_setting["zero-shot"] < by_setting["FS"]


def test_the_planted_pull_of_demonstrations_is_found_in_captions(tmp_path: Path) -> None:
    own = drawn(items("coco_bias", pool=(8, 8), queries=3), tmp_path)

    requests, responses = ask(own, tmp_path / "store", 8)
    judged = judge_captions(requests, responses, {}, load_gender_words(), items=own).to_pandas()

    said = judged.groupby(judged["setting"].astype(str))["predicted"].agg(lambda s: set(s.dropna()))
    # resources/demo/planted.yaml: hooded people are persons without demonstrations, with weights
    # of 0.62, 0.23 (man) and 0.15 (woman); eight of one gender multiply its weight by 5.8.
    assert said["zero-shot"] == set()
    assert said["MS"] == {"Male"}
    assert said["FS"] == {"Female"}
    assert judged["neutral"][judged["setting"] == "zero-shot"].all()
    wrong = judged["error"][(judged["setting"] == "MS") & (judged["gender"] == "Female")]
    assert wrong.tolist() == [1.0] * 3


def test_a_served_judge_is_asked_once_for_a_verdict(tmp_path: Path) -> None:
    own = items("visual_cot_direct", queries=2)
    requests = plan(own, ["RS"], shots=[0, 2], runs=2).requests
    responses = respond(requests, lambda request: "Answer: sitting")
    asked, context = plan_verdicts([(requests, responses)], PROMPTS, shards=1, max_new_tokens=64)

    with fake_api.serve() as served:
        served.always = fake_api.reply(fake_api.completion("The answers differ.\nscore: 0.25"))
        for _again in range(2):
            replied = answer_api_shard(
                asked,
                context,
                fake_api.api_entry(served.base_url),
                {},
                (1.0,),
                tmp_path,
                environ=fake_api.ENVIRON,
            )
            verdicts = read_verdicts(asked, replied.responses)

    judged = judge_answers(requests, responses, verdicts=verdicts)
    # 4 questions, asked in 3 cells and by 2 runs of the judge.
    assert len(requests) == 12
    assert len(served.bodies) == len(asked) == 4
    roles = [message["role"] for message in served.bodies[0]["messages"]]
    assert roles == ["system", "user"]
    assert "image" not in json.dumps(served.bodies)
    assert set(judged["error"].to_pylist()) == {0.75}
    assert set(judged["judge_status"].to_pylist()) == {"ok"}
