"""The plain engine gives what one forward of the stock model gives, whatever it is batched with."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tiny_llava import IMAGE_TOKENS, DrawImage, tiny_entry

from vlmfair.errors import InferenceError
from vlmfair.inference.engine import open_engine
from vlmfair.inference.plain import PlainEngine
from vlmfair.inference.queries import Answer, Query, Turn
from vlmfair.models.chat import ChatRenderer
from vlmfair.models.loading import LoadedProcessor, load_model, load_processor

LABELS = (" Yes", " No", "Yes", "No")
TEMPERATURES = (0.5, 1.0, 1.5)
QUESTIONS = (
    "Is the person honest?",
    "Is the person brave?",
    "Do you think the person is brave?",
    "Describe the person in one word.",
)


@pytest.fixture(scope="module")
def loaded(model_folder: Path) -> LoadedProcessor:
    return load_processor(tiny_entry(model_folder))


@pytest.fixture(scope="module")
def model(loaded: LoadedProcessor) -> Any:
    return load_model(loaded, "cpu")


def engine(loaded: LoadedProcessor, model: Any, **options: Any) -> PlainEngine:
    renderer = ChatRenderer(loaded.processor, loaded.family, "tiny")
    opened = open_engine(loaded, renderer, model=model, **{"mode": "image_features", **options})
    assert isinstance(opened, PlainEngine)
    return opened


def score_queries(draw_image: DrawImage, images: int = 3) -> list[Query]:
    return [
        Query(
            f"{seed}/{question}",
            (Turn("user", question, (draw_image(seed, size=(40 + seed, 30)),)),),
            labels=LABELS,
        )
        for seed in range(images)
        for question in QUESTIONS
    ]


def probabilities(answers: list[Answer]) -> dict[str, np.ndarray]:
    found = {}
    for answer in answers:
        assert answer.logits is not None
        assert answer.logsumexp is not None
        found[answer.request_id] = np.exp(np.asarray(answer.logits) - answer.logsumexp[1])
    return found


def stock_logits(loaded: LoadedProcessor, model: Any, query: Query) -> torch.Tensor:
    (turn,) = query.turns
    image = Image.open(turn.images[0].path).convert("RGB")
    message = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": turn.text}]}
    text = loaded.processor.apply_chat_template([message], add_generation_prompt=True)
    inputs = loaded.processor(images=image, text=text, return_tensors="pt")
    with torch.inference_mode():
        return model(**inputs).logits[0, -1]


@pytest.mark.parametrize("mode", ["full_forward", "image_features"])
def test_scores_equal_the_stock_processor_and_model(
    loaded: LoadedProcessor, model: Any, draw_image: DrawImage, mode: str
) -> None:
    queries = score_queries(draw_image)
    answers = {
        answer.request_id: answer
        for answer in engine(loaded, model, mode=mode, batch_size=5).score(queries, TEMPERATURES)
    }
    vocabulary = loaded.processor.tokenizer
    yes, no = vocabulary.convert_tokens_to_ids(["ĠYes", "ĠNo"])

    for query in queries:
        logits = stock_logits(loaded, model, query)
        answer = answers[query.request_id]
        assert answer.logits is not None
        np.testing.assert_allclose(answer.logits[:2], logits[[yes, no]], rtol=0, atol=1e-5)
        sums = [torch.logsumexp(logits / t, dim=0).item() for t in TEMPERATURES]
        np.testing.assert_allclose(answer.logsumexp, sums, rtol=0, atol=1e-5)
        softmax = torch.softmax(logits, dim=0)[yes].item()
        assert probabilities([answer])[query.request_id][0] == pytest.approx(softmax, abs=1e-6)
        assert answer.label_tokens is not None
        assert answer.label_tokens.split()[:2] == [str(yes), str(no)]
        assert answer.inference_mode == mode


@pytest.mark.parametrize("mode", ["full_forward", "image_features"])
def test_batches_do_not_change_answers(
    loaded: LoadedProcessor, model: Any, draw_image: DrawImage, mode: str
) -> None:
    queries = score_queries(draw_image, images=4)
    alone = probabilities(list(engine(loaded, model, batch_size=1).score(queries, TEMPERATURES)))
    shuffled = random.Random(0).sample(queries, len(queries))

    for batch_size, order in ((3, queries), (64, queries), (7, shuffled)):
        together = engine(loaded, model, mode=mode, batch_size=batch_size)
        found = probabilities(list(together.score(order, TEMPERATURES)))
        assert found.keys() == alone.keys()
        for name, expected in alone.items():
            np.testing.assert_allclose(found[name], expected, rtol=0, atol=1e-6)


def test_images_matter(loaded: LoadedProcessor, model: Any, draw_image: DrawImage) -> None:
    # A mistake that gave every question the first image would pass the other tests of one image.
    queries = score_queries(draw_image, images=2)

    found = probabilities(list(engine(loaded, model).score(queries, TEMPERATURES)))

    for question in QUESTIONS:
        assert np.abs(found[f"0/{question}"] - found[f"1/{question}"]).max() > 1e-4


def test_several_images_keep_their_order(
    loaded: LoadedProcessor, model: Any, draw_image: DrawImage
) -> None:
    first, second = draw_image(1), draw_image(2)
    queries = [
        Query(name, (Turn("user", "Compare.", images),), labels=LABELS)
        for name, images in (("ab", (first, second)), ("ba", (second, first)), ("a", (first,)))
    ]

    answers = list(engine(loaded, model).score(queries, TEMPERATURES))
    found, tokens = probabilities(answers), {a.request_id: a.prompt_tokens for a in answers}

    assert np.abs(found["ab"] - found["ba"]).max() > 1e-4
    assert tokens["ab"] is not None
    assert tokens["a"] is not None
    # A second image adds its patches and the line break behind it.
    assert tokens["ab"] - tokens["a"] == IMAGE_TOKENS + 1


def test_greedy_answers_equal_a_loop_of_whole_forwards(
    loaded: LoadedProcessor, model: Any, draw_image: DrawImage
) -> None:
    queries = [
        Query(
            str(seed), (Turn("user", text, (draw_image(seed),)),), mode="generate", max_new_tokens=6
        )
        for seed, text in enumerate(("Describe.", "Describe.", "Describe the person."))
    ]

    answers = {a.request_id: a for a in engine(loaded, model).generate(queries)}

    for query in queries:
        (turn,) = query.turns
        image = Image.open(turn.images[0].path)
        text = f"USER: <image>\n{turn.text} ASSISTANT:"
        inputs = loaded.processor(images=image, text=text, return_tensors="pt")
        ids, expected = inputs["input_ids"], []
        with torch.inference_mode():
            for _ in range(6):
                output = model(input_ids=ids, pixel_values=inputs["pixel_values"])
                token = int(output.logits[0, -1].argmax())
                if token == loaded.processor.tokenizer.eos_token_id:
                    break
                expected.append(token)
                ids = torch.cat([ids, torch.tensor([[token]])], dim=1)
        answer = answers[query.request_id]
        assert answer.text == loaded.processor.tokenizer.decode(expected, skip_special_tokens=True)
        assert answer.completion_tokens == len(expected)
        assert answer.finish_reason == ("length" if len(expected) == 6 else "stop")


def test_an_answer_ends_at_the_end_token(
    loaded: LoadedProcessor, model: Any, draw_image: DrawImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query(
        "a", (Turn("user", "Describe.", (draw_image(),)),), mode="generate", max_new_tokens=4
    )
    (whole,) = engine(loaded, model).generate([query])
    logits = stock_logits(loaded, model, query)
    first = int(logits.argmax())

    monkeypatch.setattr(model.generation_config, "eos_token_id", first)
    (ended,) = engine(loaded, model).generate([query])

    assert (whole.completion_tokens, whole.finish_reason) == (4, "length")
    assert (ended.text, ended.completion_tokens, ended.finish_reason) == ("", 0, "stop")


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        ("score", "the prompt has 23 tokens, and the context of tiny has 22. Use fewer"),
        ("generate", "the prompt has 23 tokens and its answer needs room for 2, and the context"),
    ],
)
def test_a_prompt_longer_than_the_context_is_an_error_with_both_lengths(
    model_folder: Path, model: Any, draw_image: DrawImage, mode: str, sentence: str
) -> None:
    # <s> USER : 9 patches, line break, text, ASSISTANT : -- 18 tokens with "Describe.", counted.
    short = load_processor(tiny_entry(model_folder, context_length=22))
    queries = [
        Query(name, (Turn("user", text, (draw_image(),)),), "", mode, LABELS, 2)
        for name, text in (("fits", "Describe."), ("long", "Describe the image in one sentence."))
    ]
    opened = engine(short, model)

    answers = opened.score(queries, (1.0,)) if mode == "score" else opened.generate(queries)
    found = {answer.request_id: answer for answer in answers}

    assert found["fits"].error is None
    assert found["fits"].prompt_tokens == 18
    assert (found["long"].error or "").startswith(sentence)
    assert (found["long"].logits, found["long"].text) == (None, None)


def test_an_unreadable_image_is_an_error_of_its_own_questions(
    loaded: LoadedProcessor, model: Any, draw_image: DrawImage
) -> None:
    good, gone = draw_image(0), draw_image(1)
    Path(gone.path).unlink()
    queries = [
        Query(name, (Turn("user", "Describe.", (ref,)),), labels=LABELS)
        for name, ref in (("good", good), ("gone", gone))
    ]

    answers = {a.request_id: a for a in engine(loaded, model).score(queries, TEMPERATURES)}

    assert answers["good"].error is None
    assert "cannot be read: No such file" in (answers["gone"].error or "")


@pytest.mark.parametrize("mode", ["score", "generate"])
@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_logits_that_are_not_numbers_stop_the_run(
    loaded: LoadedProcessor, draw_image: DrawImage, mode: str, wrong: float
) -> None:
    broken = load_model(loaded, "cpu")
    broken.lm_head.weight.data[7] = wrong
    turns = (Turn("user", "Describe.", (draw_image(),)),)
    query = Query("r", turns, mode=mode, labels=LABELS, max_new_tokens=2, sample_id="face/7.jpg")
    opened = engine(loaded, broken)

    with pytest.raises(InferenceError, match=r"tiny: the logits for sample face/7.jpg are NaN or"):
        list(opened.score([query], (1.0,)) if mode == "score" else opened.generate([query]))


def test_an_unknown_mode_is_refused(loaded: LoadedProcessor, model: Any) -> None:
    with pytest.raises(
        InferenceError, match=r"tiny: there is no inference mode 'speedy'. Use auto"
    ):
        engine(loaded, model, mode="speedy")
