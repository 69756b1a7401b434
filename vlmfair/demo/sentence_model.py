"""The demo's sentence-T5: a tiny T5 encoder that puts answers next to the labels that they give."""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import nn
from transformers import T5Config, T5EncoderModel, T5Tokenizer

from vlmfair.demo.encoder_answers import AnswerSet, answer_loss, answer_sets, draw_answers
from vlmfair.demo.folders import whole_folder
from vlmfair.demo.vision import warm_up_cosine
from vlmfair.papers.lvlm_fairness.questions import Prompts

LOGGER = logging.getLogger(__name__)

VOCABULARY = 700
WIDTH, OUTPUT_WIDTH, LENGTH = 64, 64, 64
ANSWERS = 48
LEARNING_RATE = 2e-3
CORPUS_DRAWS = 600
SPECIAL = ("<pad>", "</s>", "<unk>")


def corpus(sets: Sequence[AnswerSet], seed: int) -> list[str]:
    """Labels and answers that the tokenizer is learnt from."""
    rng = np.random.default_rng(seed)
    said = [text for answers in sets for text in answers.candidates]
    for _ in range(CORPUS_DRAWS):
        said += [text for _, drawn, _ in draw_answers(sets, ANSWERS, rng) for text in drawn]
    return said


def train_sentence_tokenizer(texts: Iterable[str]) -> T5Tokenizer:
    """Learn a unigram vocabulary in T5's form: padding, end and unknown first, no sentinels."""
    learner = Tokenizer(models.Unigram())
    # As T5's own: words at white space, each with the mark of a space before it.
    learner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    trainer = trainers.UnigramTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        unk_token=SPECIAL[2],
        initial_alphabet=[chr(code) for code in range(33, 127)],
        show_progress=False,
    )
    learner.train_from_iterator(texts, trainer)
    pieces = _pieces(learner)
    return T5Tokenizer(vocab=pieces, extra_ids=0, model_max_length=LENGTH)


def _pieces(learner: Tokenizer) -> list[tuple[str, float]]:
    """The pieces of a unigram tokenizer with their scores, in the order of their numbers."""
    return [(str(p), float(score)) for p, score in json.loads(learner.to_str())["model"]["vocab"]]


def build_sentence_model(tokenizer: T5Tokenizer, seed: int) -> SentenceTransformer:
    """An untrained model of sentence-T5's modules: encoder, mean, dense layer, length one."""
    torch.manual_seed(seed)
    config = T5Config(
        vocab_size=len(tokenizer),
        d_model=WIDTH,
        d_kv=16,
        d_ff=4 * WIDTH,
        num_layers=2,
        num_heads=4,
        dropout_rate=0.0,
        feed_forward_proj="relu",
    )
    with tempfile.TemporaryDirectory() as folder:
        T5EncoderModel(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        encoder = Transformer(folder, max_seq_length=LENGTH)
    dense = Dense(WIDTH, OUTPUT_WIDTH, bias=False, activation_function=nn.Identity())
    modules = [encoder, Pooling(WIDTH, "mean"), dense, Normalize()]
    return SentenceTransformer(modules=modules, device="cpu")


def train_sentence_model(prompts: Prompts, *, steps: int, seed: int) -> SentenceTransformer:
    """Train from nothing, on answers among the labels that the sentence-T5 judge compares."""
    sets = answer_sets(prompts, "sentence_t5")
    model = build_sentence_model(train_sentence_tokenizer(corpus(sets, seed)), seed)
    rng = np.random.default_rng(seed)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=LEARNING_RATE, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: warm_up_cosine(n, steps))
    model.train()
    for step in range(steps):
        drawn = draw_answers(sets, ANSWERS, rng)
        wanted = [text for answers, said, _ in drawn for text in (*answers.candidates, *said)]
        features = model(model.preprocess(wanted))["sentence_embedding"]
        loss = answer_loss(features, drawn)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0 or step == steps - 1:
            LOGGER.info("sentences step %d of %d: loss %.3f", step, steps, loss.item())
    return model.eval()


def save_sentence_model(model: SentenceTransformer, output: Path) -> None:
    """Write the folder that SentenceTransformer reads, without a card; it appears whole."""
    with whole_folder(output) as folder:
        model.save(str(folder), create_model_card=False)
