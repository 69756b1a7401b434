"""The shared-prefix engine gives what one full forward for each question gives, in all families."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from tiny_llava import DrawImage
from tiny_models import FAMILIES, SINGLE_IMAGE, tiny_entry, write_family

from vlmfair.errors import InferenceError
from vlmfair.inference.engine import open_engine
from vlmfair.inference.queries import Answer, Query, Turn
from vlmfair.inference.shared import SharedPrefixEngine
from vlmfair.models.chat import ChatRenderer, ImageRef
from vlmfair.models.labels import LabelTokens
from vlmfair.models.loading import LoadedProcessor, load_model, load_processor

LABELS = (" Yes", "No", "brave")
TEMPERATURES = (1.0, 0.5)
QUESTIONS = (
    "Is the person in the image honest?",
    "Is the person in the image brave?",
    "Do you think the person is brave? Response format: Yes or No",
    "Yes",
)
# PaliGemma's attention is not causal over the prompt.
FALLS_BACK = {"paligemma": "image_features"}
# BLIP-2 takes one image, and PaliGemma has no conversations.
WITHOUT_DEMONSTRATIONS = SINGLE_IMAGE | {"paligemma"}
# Llama 3.2 looks at several images from the side, and phi-4 changes its rotary frequencies.
NOT_SHARED = {"mllama", "phi4_multimodal"}
# With one demonstration phi-4's beginning lies before the change of frequencies, the prompt behind.
KS = {"mllama": 4, "phi4_multimodal": 1}
PACKED = sorted(set(FAMILIES) - set(FALLS_BACK))


@dataclasses.dataclass(frozen=True)
class Tiny:
    """A tiny model of one family."""

    loaded: LoadedProcessor
    renderer: ChatRenderer
    model: Any

    def engine(self, mode: str, **options: Any) -> Any:
        return open_engine(self.loaded, self.renderer, model=self.model, mode=mode, **options)

    def shared(self, mode: str = "packed", **options: Any) -> SharedPrefixEngine:
        return SharedPrefixEngine(self.loaded, self.renderer, self.model, mode=mode, **options)


@pytest.fixture(scope="module")
def tiny(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    family = request.param
    folder = write_family(tmp_path_factory.mktemp(family), family)
    entry = tiny_entry(folder, family)
    loaded = load_processor(entry)
    return Tiny(
        loaded,
        ChatRenderer(loaded.processor, loaded.family, entry.name),
        load_model(loaded, "cpu"),
    )


every_family = pytest.mark.parametrize("tiny", sorted(FAMILIES), indirect=True)
packed_families = pytest.mark.parametrize("tiny", PACKED, indirect=True)
llava = pytest.mark.parametrize("tiny", ["llava"], indirect=True)


def trait_queries(draw_image: DrawImage, images: int = 2, **options: Any) -> list[Query]:
    """Several questions about each of some images of unlike sizes, and one without an image."""
    queries = [
        Query(
            f"{seed}/{number}",
            (Turn("user", text, (draw_image(seed, size=(30 + 20 * seed, 40)),)),),
            **{"labels": LABELS, **options},
        )
        for seed in range(images)
        for number, text in enumerate(QUESTIONS)
    ]
    blind = Query("blind", (Turn("user", QUESTIONS[0]),), **{"labels": LABELS, **options})
    return [*queries, blind]


def shots(draw_image: DrawImage, k: int) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    for number in range(k):
        image = draw_image(50 + number, size=(40, 30 + 8 * (number % 3)))
        turns.append(Turn("user", "Who is it?", (image,)))
        turns.append(Turn("assistant", ("The nurse and his patient.", "Yes")[number % 2]))
    return tuple(turns)


def context_queries(
    draw_image: DrawImage, ks: Sequence[int] = (0, 2, 4, 8), **options: Any
) -> list[Query]:
    """The same three query images behind nested sequences of demonstrations."""
    return [
        Query(
            f"{k}/{seed}",
            (
                *shots(draw_image, k),
                Turn("user", "Who is it?", (draw_image(seed, size=(30 + 10 * seed, 40)),)),
            ),
            **{"mode": "generate", "max_new_tokens": 6, **options},
        )
        for k in ks
        for seed in range(3)
    ]


def by_id(answers: Any) -> dict[str, Answer]:
    found = {answer.request_id: answer for answer in answers}
    assert not [answer.error for answer in found.values() if answer.error]
    return found


def largest_difference(one: dict[str, Answer], other: dict[str, Answer]) -> float:
    """The largest difference of a label's probability at a temperature of 1."""
    assert one.keys() == other.keys()
    return max(
        abs(math.exp(a - one[key].logsumexp[0]) - math.exp(b - other[key].logsumexp[0]))
        for key in one
        for a, b in zip(one[key].logits, other[key].logits, strict=True)
    )


@every_family
def test_every_family_gives_the_probabilities_of_full_forwards(
    tiny: Tiny, draw_image: DrawImage
) -> None:
    queries = trait_queries(draw_image)
    full = by_id(tiny.engine("full_forward").score(queries, TEMPERATURES))
    engine = tiny.engine("auto")

    answers = by_id(engine.score(queries, TEMPERATURES))

    assert largest_difference(answers, full) <= 1e-5
    family = tiny.loaded.family.name
    with_image = [answer for key, answer in answers.items() if key != "blind"]
    assert {answer.inference_mode for answer in with_image} == {FALLS_BACK.get(family, "packed")}
    assert all(abs(a.logsumexp[1] - full[key].logsumexp[1]) <= 1e-4 for key, a in answers.items())


@packed_families
@pytest.mark.parametrize("mode", ["packed", "repeated", "image_features"])
def test_each_mode_gives_the_probabilities_of_full_forwards(
    tiny: Tiny, mode: str, draw_image: DrawImage
) -> None:
    queries = trait_queries(draw_image)
    full = by_id(tiny.engine("full_forward").score(queries, TEMPERATURES))

    answers = by_id(tiny.engine(mode).score(queries, TEMPERATURES))

    assert largest_difference(answers, full) <= 1e-5


@every_family
def test_greedy_answers_are_token_identical_for_every_number_of_demonstrations(
    tiny: Tiny, draw_image: DrawImage
) -> None:
    alone = tiny.loaded.family.name in WITHOUT_DEMONSTRATIONS
    queries = context_queries(draw_image, (0,) if alone else (0, 2, 4, 8))
    plain = by_id(tiny.engine("full_forward", batch_size=1).generate(queries))

    answers = by_id(tiny.engine("auto").generate(queries))

    assert {key: (a.text, a.completion_tokens, a.finish_reason) for key, a in answers.items()} == {
        key: (a.text, a.completion_tokens, a.finish_reason) for key, a in plain.items()
    }
    # Falling back everywhere would prove nothing.
    family = tiny.loaded.family.name
    packed = {key for key, a in answers.items() if a.inference_mode == "packed"}
    alone_or_cut = {key for key in answers if key.startswith("0/") or family not in NOT_SHARED}
    assert packed == (set() if family in FALLS_BACK else alone_or_cut)
    assert alone or len({answer.text for answer in answers.values()}) > 1


@packed_families
def test_demonstrations_are_computed_once_for_all_queries_and_extended(
    tiny: Tiny, draw_image: DrawImage
) -> None:
    if tiny.loaded.family.name in WITHOUT_DEMONSTRATIONS | NOT_SHARED:
        pytest.skip("this family takes or shares no demonstrations")
    queries = context_queries(draw_image, (2, 4), mode="score", labels=LABELS)
    engine = tiny.shared()
    answers = by_id(engine.score(queries, TEMPERATURES))

    lengths = {key: answer.prompt_tokens or 0 for key, answer in answers.items()}
    report = engine.report()

    # Six prompts share two demonstrations, and three of them two more.
    assert report["tokens_asked"] == sum(lengths.values())
    assert report["tokens_computed"] < 0.6 * sum(lengths.values())


@llava
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_answers_do_not_depend_on_packs_batches_or_order(
    tiny: Tiny, draw_image: DrawImage, data: st.DataObject
) -> None:
    generating = data.draw(st.booleans())
    kind = {"mode": "generate", "max_new_tokens": 4} if generating else {"labels": LABELS}
    queries = [
        *trait_queries(draw_image, **kind),
        *context_queries(draw_image, (2,), **{"mode": "score", **kind}),
    ]

    def ask(engine: Any, queries: Sequence[Query]) -> dict[str, Answer]:
        return by_id(engine.generate(queries) if generating else engine.score(queries, (1.0,)))

    order = data.draw(st.permutations(queries))
    asked = order[: data.draw(st.integers(1, len(order)))]
    mode = data.draw(st.sampled_from(["packed", "repeated", "image_features", "full_forward"]))
    if mode in ("packed", "repeated"):
        engine: Any = tiny.shared(mode, pack_tokens=data.draw(st.integers(1, 200)))
    else:
        engine = tiny.engine(mode, batch_size=data.draw(st.integers(1, 7)))

    answers = ask(engine, asked)

    expected = ask(tiny.engine("full_forward", batch_size=1), asked)
    assert answers.keys() == {query.request_id for query in asked}
    if generating:
        assert {k: a.text for k, a in answers.items()} == {k: a.text for k, a in expected.items()}
    else:
        assert largest_difference(answers, expected) <= 1e-5


@llava
@pytest.mark.parametrize("mode", ["packed", "repeated"])
@pytest.mark.parametrize("pack_tokens", [1, 40, 500])
def test_texts_do_not_depend_on_what_is_generated_beside_them(
    tiny: Tiny, mode: str, pack_tokens: int, draw_image: DrawImage
) -> None:
    # Given answers of unlike lengths, so that some sequences end before others.
    queries = [
        dataclasses.replace(query, max_new_tokens=1 + number)
        for number, query in enumerate(trait_queries(draw_image, mode="generate"))
    ]
    plain = by_id(tiny.engine("full_forward", batch_size=1).generate(queries))

    answers = by_id(tiny.shared(mode, pack_tokens=pack_tokens).generate(queries))

    assert {key: a.text for key, a in answers.items()} == {key: a.text for key, a in plain.items()}


@llava
def test_finished_sequences_leave_the_cache(
    tiny: Tiny, draw_image: DrawImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vlmfair.inference.forward.LEAST_DROPPED", 2)
    queries = [
        dataclasses.replace(query, max_new_tokens=25 if number == 2 else 2, mode="generate")
        for number, query in enumerate(trait_queries(draw_image))
    ]
    plain = by_id(tiny.engine("full_forward", batch_size=1).generate(queries))

    answers = by_id(tiny.shared().generate(queries))

    assert {key: a.text for key, a in answers.items()} == {key: a.text for key, a in plain.items()}


@llava
def test_equal_prompts_with_unlike_labels_get_their_own_logits(
    tiny: Tiny, draw_image: DrawImage
) -> None:
    turns = (Turn("user", QUESTIONS[0], (draw_image(0),)),)
    both = [Query("a", turns, labels=("Yes",)), Query("b", turns, labels=("No", "Yes"))]

    answers = by_id(tiny.shared().score(both, (1.0,)))

    assert len(answers["a"].logits) == 1
    assert answers["b"].logits[1] == pytest.approx(answers["a"].logits[0], abs=1e-5)


@llava
def test_two_images_with_one_question_are_told_apart(tiny: Tiny, draw_image: DrawImage) -> None:
    def query(name: str, *images: ImageRef) -> Query:
        return Query(name, (Turn("user", "Which is it?", images),), labels=LABELS)

    one, other = draw_image(1), draw_image(2)
    queries = [query("12", one, other), query("21", other, one), query("11", one, one)]
    full = by_id(tiny.engine("full_forward").score(queries, TEMPERATURES))

    answers = by_id(tiny.shared().score(queries, TEMPERATURES))

    assert largest_difference(answers, full) <= 1e-5
    assert len({tuple(answer.logits) for answer in answers.values()}) == 3


@pytest.mark.parametrize("tiny", ["llava", "qwen3_vl"], indirect=True)
def test_shared_beginnings_are_what_makes_it_fast(tiny: Tiny, draw_image: DrawImage) -> None:
    queries = trait_queries(draw_image, images=1)[:-1]
    engine = tiny.shared()
    answers = by_id(engine.score(queries, TEMPERATURES))
    longest = max(answer.prompt_tokens or 0 for answer in answers.values())

    computed = engine.report()["tokens_computed"]

    # The longest prompt once, and of the three others less than half of theirs.
    assert longest <= computed < longest + 1.5 * longest


def test_bfloat16_is_checked_against_its_own_rounding(
    tmp_path_factory: pytest.TempPathFactory, draw_image: DrawImage
) -> None:
    folder = write_family(tmp_path_factory.mktemp("half"), "llava")
    loaded = load_processor(tiny_entry(folder, "llava", dtype="bfloat16"))
    model = load_model(loaded, "cpu")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    renderer = ChatRenderer(loaded.processor, loaded.family, "half")
    engine = SharedPrefixEngine(loaded, renderer, model)

    by_id(engine.score(trait_queries(draw_image), TEMPERATURES))

    [*_, check] = engine.checks
    assert check.mode == "packed"
    assert check.tolerance >= 2e-3
    # Widening the weights for the check leaves each of them as it was.
    after = model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(value.dtype == before[name].dtype for name, value in after.items())


@pytest.mark.parametrize(
    ("tiny", "mode", "reason"),
    [
        # Rows before the first image look at all images, so that no beginning can be kept.
        ("mllama", "image_features", "first of 5 images"),
        # The rotary frequencies change at original_max_position_embeddings, here 1,024 tokens.
        ("phi4_multimodal", "image_features", "1024"),
    ],
    indirect=["tiny"],
)
def test_demonstrations_that_cannot_be_shared_are_asked_in_another_way(
    tiny: Tiny, mode: str, reason: str, draw_image: DrawImage
) -> None:
    engine = tiny.shared("auto")
    answers = by_id(engine.generate(context_queries(draw_image, (4,))))

    assert {answer.inference_mode for answer in answers.values()} == {mode}
    assert reason in " ".join(engine.checks[-1].refused.values())


@pytest.mark.parametrize("tiny", ["mllama", "paligemma", "phi4_multimodal"], indirect=True)
def test_the_check_finds_what_the_configuration_does_not_tell(
    tiny: Tiny, draw_image: DrawImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a family that does not know what stands in the way of sharing.
    monkeypatch.setattr(type(tiny.loaded.family), "obstacle", lambda *a, **o: None)
    queries = (
        trait_queries(draw_image)
        if tiny.loaded.family.name == "paligemma"
        else context_queries(
            draw_image, (KS[tiny.loaded.family.name],), mode="score", labels=LABELS
        )
    )
    full = by_id(tiny.engine("full_forward").score(queries, TEMPERATURES))
    engine = tiny.shared("auto")

    answers = by_id(engine.score(queries, TEMPERATURES))

    assert {a.inference_mode for key, a in answers.items() if key != "blind"} == {"image_features"}
    assert largest_difference(answers, full) <= 1e-5


@pytest.mark.parametrize("told", [True, False])
def test_a_window_shorter_than_the_prompt_is_not_shared(
    told: bool,
    tmp_path: Path,
    draw_image: DrawImage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given a model whose layers look 24 tokens back, with prompts of more.
    folder = write_family(tmp_path, "llava_next")
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["sliding_window"] = 24
    (folder / "config.json").write_text(json.dumps(config))
    loaded = load_processor(tiny_entry(folder, "llava_next"))
    tiny = Tiny(
        loaded, ChatRenderer(loaded.processor, loaded.family, "w"), load_model(loaded, "cpu")
    )
    if not told:
        monkeypatch.setattr(type(loaded.family), "obstacle", lambda *a, **o: None)
    queries = trait_queries(draw_image)
    full = by_id(tiny.engine("full_forward").score(queries, TEMPERATURES))
    engine = tiny.shared("auto")

    answers = by_id(engine.score(queries, TEMPERATURES))

    with_image = {a.inference_mode for key, a in answers.items() if key != "blind"}
    assert with_image == {"image_features"}
    assert largest_difference(answers, full) <= 1e-5


def test_eager_attention_is_packed_with_an_additive_mask(
    tmp_path: Path, draw_image: DrawImage
) -> None:
    folder = write_family(tmp_path, "llava")
    loaded = load_processor(tiny_entry(folder, "llava", attention="eager"))
    tiny = Tiny(
        loaded, ChatRenderer(loaded.processor, loaded.family, "e"), load_model(loaded, "cpu")
    )
    queries = trait_queries(draw_image)
    full = by_id(tiny.engine("full_forward").score(queries, TEMPERATURES))

    answers = by_id(tiny.shared("auto").score(queries, TEMPERATURES))

    assert {answer.inference_mode for answer in answers.values()} == {"packed"}
    assert largest_difference(answers, full) <= 1e-5


class Crowded:
    """A decoder whose memory suffices for so many tokens at once."""

    def __init__(self, decode: Any, most: int) -> None:
        self.decode, self.most = decode, most

    def __call__(self, model: Any, **arguments: Any) -> torch.Tensor:
        if arguments["embeddings"].shape[1] > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        hidden: torch.Tensor = self.decode(model, **arguments)
        return hidden


@llava
def test_out_of_memory_halves_the_pack_and_keeps_what_is_done(
    tiny: Tiny, draw_image: DrawImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = trait_queries(draw_image, images=1)[:-1]
    full = by_id(tiny.engine("full_forward").score(queries, TEMPERATURES))
    monkeypatch.setattr(tiny.loaded.family, "decode", Crowded(tiny.loaded.family.decode, 30))
    engine = tiny.shared(pack_tokens=128)

    answers = list(engine.score(queries, TEMPERATURES))

    assert len(answers) == len(queries)
    assert largest_difference(by_id(answers), full) <= 1e-5
    assert engine.report()["out_of_memory"] == [
        {"from": 128, "to": 64, "unit": "tokens in a pack"},
        {"from": 64, "to": 32, "unit": "tokens in a pack"},
    ]


@llava
def test_memory_that_runs_out_in_the_check_halves_the_pack_too(
    tiny: Tiny, draw_image: DrawImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = trait_queries(draw_image, images=1)[:-1]
    full = by_id(tiny.engine("full_forward").score(queries, TEMPERATURES))
    monkeypatch.setattr(tiny.loaded.family, "decode", Crowded(tiny.loaded.family.decode, 30))
    engine = tiny.shared("auto", pack_tokens=128)

    answers = by_id(engine.score(queries, TEMPERATURES))

    assert {answer.inference_mode for answer in answers.values()} == {"packed"}
    assert largest_difference(answers, full) <= 1e-5
    assert engine.report()["out_of_memory"][0] == {
        "from": 128,
        "to": 64,
        "unit": "tokens in a pack",
    }


@llava
def test_images_that_do_not_fit_together_are_encoded_apart(
    tiny: Tiny, draw_image: DrawImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = context_queries(draw_image, (4,), mode="score", labels=LABELS)
    full = by_id(tiny.engine("full_forward").score(queries, TEMPERATURES))
    encode = tiny.loaded.family.encode_images

    def crowded(model: Any, images: Sequence[Any]) -> Any:
        if len(images) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return encode(model, images)

    monkeypatch.setattr(tiny.loaded.family, "encode_images", crowded)
    engine = tiny.shared()

    assert largest_difference(by_id(engine.score(queries, TEMPERATURES)), full) <= 1e-5
    assert [halving["to"] for halving in engine.report()["out_of_memory"]] == [4, 2]


@llava
def test_a_prompt_that_never_fits_is_an_error_with_its_length(
    tiny: Tiny, draw_image: DrawImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiny.loaded.family, "decode", Crowded(tiny.loaded.family.decode, 2))

    with pytest.raises(
        InferenceError,
        match=r"a prompt of \d+ tokens does not fit into memory even by itself \(.* GiB",
    ):
        list(tiny.shared().score(trait_queries(draw_image), TEMPERATURES))


@llava
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("mode", ["score", "generate"])
def test_logits_that_are_not_numbers_stop_a_pack(
    tiny: Tiny, bad: float, mode: str, draw_image: DrawImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        tiny.loaded.family, "head", lambda model, hidden: torch.full((len(hidden), 9), bad)
    )
    labels = ("Yes",) if mode == "score" else ()
    queries = trait_queries(draw_image, mode=mode, labels=labels, max_new_tokens=3)
    queries = [dataclasses.replace(query, sample_id="women/7.jpg") for query in queries]
    monkeypatch.setattr(ChatRenderer, "label_tokens", lambda *a: LabelTokens((3,), (False,)))

    with pytest.raises(InferenceError, match=r"logits for sample women/7.jpg are NaN or infinite"):
        list(getattr(tiny.shared(), mode)(queries, *([(1.0,)] if mode == "score" else [])))


@llava
@pytest.mark.parametrize("size", [(1, 1), (12_000, 9_000)])
def test_images_of_any_size_are_asked_about(
    tiny: Tiny, size: tuple[int, int], tmp_path: Path
) -> None:
    path = tmp_path / "image.png"
    Image.new("1", size).save(path)
    ref = ImageRef(str(path), hashlib.sha256(path.read_bytes()).hexdigest())
    query = Query("q", (Turn("user", "Who?", (ref,)),), labels=LABELS)

    [answer] = tiny.shared("auto").score([query], TEMPERATURES)

    assert answer.error is None


@llava
def test_a_prompt_beyond_the_context_is_an_error_row_with_both_lengths(
    tiny: Tiny, draw_image: DrawImage
) -> None:
    queries = context_queries(draw_image, (0, 8), mode="score", labels=LABELS)
    limited = dataclasses.replace(
        tiny.loaded, entry=dataclasses.replace(tiny.loaded.entry, context_length=100)
    )
    engine = SharedPrefixEngine(limited, tiny.renderer, tiny.model)

    answers = {answer.request_id: answer for answer in engine.score(queries, TEMPERATURES)}

    assert answers["0/0"].error is None
    assert "and the context of tiny-llava has 100" in str(answers["8/0"].error)
    assert answers["8/0"].logits is None
