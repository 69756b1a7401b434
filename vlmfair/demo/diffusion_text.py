"""The text encoders of the demo's text-to-image pipelines: tiny CLIPs and a T5 of words."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import Tensor, nn
from transformers import (
    CLIPTextConfig,
    CLIPTextModelWithProjection,
    CLIPTokenizer,
    T5Config,
    T5EncoderModel,
    T5Tokenizer,
)

from vlmfair.demo.encoder_captions import ACTIVITIES, GENDER_WORDS
from vlmfair.demo.people import Person
from vlmfair.demo.places import PLACES
from vlmfair.demo.questions import captions
from vlmfair.demo.scenes import Scene
from vlmfair.demo.vision import warm_up_cosine

LOGGER = logging.getLogger(__name__)

LENGTH = 24
# From how many tokens on T5 warns; the pipelines say by themselves where they cut.
T5_LENGTH = 512
WIDTH, LAYERS, HEADS = 64, 2, 4
VOCABULARY = 700
START, END = "<|startoftext|>", "<|endoftext|>"
# T5's mark of a space before a word.
SPACE = "\u2581"
BATCH, LEARNING_RATE = 128, 2e-3
WORDS = (*(words[0] for words in GENDER_WORDS.values()), "person")
PLACELESS = 2
# Word, activity, place or none said, second person.
ATTRIBUTES = (len(WORDS), len(ACTIVITIES), len(PLACES) + 1, 2)


def every_caption() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every caption of the demo world in every way of typing, with the number of what it says."""
    other = Person("male", 30, 1, "White")
    for occupation in ACTIVITIES:
        for place in PLACES:
            for second in (0, 1):
                people = (Person("male", 30, 1, "White", occupation), other)[: 1 + second]
                for word in WORDS:
                    for variant, text in enumerate(captions(Scene(people, place, 0), word)):
                        said = len(PLACES) if variant == PLACELESS else PLACES.index(place)
                        facts = (WORDS.index(word), ACTIVITIES.index(occupation), said, second)
                        for form in (text, text.removesuffix("."), text[0].lower() + text[1:]):
                            yield form, facts


def train_clip_tokenizer(texts: Sequence[str]) -> CLIPTokenizer:
    """Learn a byte-pair vocabulary in CLIP's form; `texts` are cut behind `LENGTH` tokens."""
    form = CLIPTokenizer().backend_tokenizer
    learner = Tokenizer(models.BPE(end_of_word_suffix="</w>", continuing_subword_prefix=""))
    learner.normalizer, learner.pre_tokenizer = form.normalizer, form.pre_tokenizer
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        end_of_word_suffix="</w>",
        show_progress=False,
    )
    learner.train_from_iterator(texts, trainer)
    vocabulary = learner.get_vocab()
    # Every byte is known, also as the last of a word: an unknown one would end the text.
    for letter in sorted(pre_tokenizers.ByteLevel.alphabet()):
        vocabulary.setdefault(f"{letter}</w>", len(vocabulary))
    merges: Any = [tuple(pair) for pair in json.loads(learner.to_str())["model"]["merges"]]
    return CLIPTokenizer(vocab=vocabulary, merges=merges, model_max_length=LENGTH)


def build_clip_text(tokenizer: CLIPTokenizer) -> CLIPTextModelWithProjection:
    """An untrained CLIP text encoder of two layers."""
    config = CLIPTextConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=4 * WIDTH,
        projection_dim=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        max_position_embeddings=LENGTH,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return CLIPTextModelWithProjection(config)


def clip_ids(tokenizer: CLIPTokenizer, texts: Sequence[str]) -> Tensor:
    """Ids of texts as the pipelines make them, n x `LENGTH`."""
    found: Tensor = tokenizer(
        list(texts),
        padding="max_length",
        max_length=LENGTH,
        truncation=True,
        return_tensors="pt",
    ).input_ids
    return found


def train_clip_text(
    tokenizer: CLIPTokenizer, *, steps: int, seed: int
) -> CLIPTextModelWithProjection:
    """Train an encoder to tell what captions say, by its embedding and by its last but one layer.

    Stable Diffusion 3 takes the tokens of that layer, and both pipelines take the pooled text.
    """
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = build_clip_text(tokenizer)
    heads = nn.ModuleList(nn.Linear(WIDTH, sum(ATTRIBUTES)) for _ in range(3))
    texts, facts = zip(*every_caption(), strict=True)
    ids, targets = clip_ids(tokenizer, texts), torch.tensor(facts)
    parameters = [*model.parameters(), *heads.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=LEARNING_RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: warm_up_cosine(n, steps))
    for step in range(steps):
        rows = torch.from_numpy(rng.integers(len(ids), size=BATCH))
        found = model(ids[rows], output_hidden_states=True)
        pooled = found.last_hidden_state[torch.arange(BATCH), _ends(ids[rows], tokenizer)]
        seen = (found.text_embeds, pooled, found.hidden_states[-2].mean(dim=1))
        losses = [
            nn.functional.cross_entropy(values, targets[rows, place])
            for head, features in zip(heads, seen, strict=True)
            for place, values in enumerate(head(features).split(ATTRIBUTES, dim=1))
        ]
        loss = torch.stack(losses).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0 or step == steps - 1:
            LOGGER.info("text encoder step %d of %d: loss %.4f", step, steps, loss.item())
    return model.eval().requires_grad_(False)


def _ends(ids: Tensor, tokenizer: CLIPTokenizer) -> Tensor:
    """Where each text ends: padding repeats the end token."""
    return (ids == tokenizer.eos_token_id).int().argmax(dim=1)


def build_t5_tokenizer(texts: Sequence[str]) -> T5Tokenizer:
    """A vocabulary in T5's form: the words of the captions, and letters for all others."""
    words = sorted({word for text in texts for word in text.removesuffix(".").split()})
    letters = [chr(code) for code in range(33, 127)]
    pieces = [(piece, 0.0) for piece in ("<pad>", "</s>", "<unk>")]
    pieces += [(f"{SPACE}{word}", -1.0) for word in words]
    pieces += [(letter, -9.0) for letter in (SPACE, *letters)]
    return T5Tokenizer(vocab=pieces, extra_ids=0, model_max_length=T5_LENGTH)


def build_word_t5(tokenizer: T5Tokenizer, width: int, seed: int) -> T5EncoderModel:
    """A T5 encoder without blocks: each token is a random direction, padding is nothing.

    The pipelines hand texts to T5 padded and without a mask, the Flux one by default to 512 tokens.
    Without blocks, all padding is the same, and a transformer can learn with one token of it.
    """
    torch.manual_seed(seed)
    model = T5EncoderModel(_t5_config(tokenizer, width))
    nn.init.normal_(model.shared.weight)
    nn.init.zeros_(model.shared.weight[tokenizer.pad_token_id])
    return model.eval().requires_grad_(False)


def build_silent_t5(tokenizer: T5Tokenizer, width: int) -> T5EncoderModel:
    """A T5 encoder that says nothing: every token is zeros.

    The Stable Diffusion 3 pipeline does not load without a third text encoder.
    """
    model = build_word_t5(tokenizer, width, 0)
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    return model


def _t5_config(tokenizer: T5Tokenizer, width: int) -> T5Config:
    return T5Config(
        vocab_size=len(tokenizer),
        d_model=width,
        d_kv=16,
        d_ff=16,
        num_layers=0,
        num_heads=4,
        dropout_rate=0.0,
    )


def t5_ids(tokenizer: T5Tokenizer, texts: Sequence[str], length: int) -> Tensor:
    """Ids of texts as the pipelines make them, n x `length`."""
    found: Tensor = tokenizer(
        list(texts), padding="max_length", max_length=length, truncation=True, return_tensors="pt"
    ).input_ids
    return found
