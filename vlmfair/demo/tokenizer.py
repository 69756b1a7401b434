"""The demo models' tokenizer: a byte-level BPE learnt from the project's own prompts."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from vlmfair.demo import wordings
from vlmfair.demo.people import OCCUPATIONS
from vlmfair.demo.places import PLACES
from vlmfair.demo.planted import PlantedTable
from vlmfair.papers.gras.questions import Prompts

END, PAD, IMAGE = "</s>", "<pad>", "<image>"
VOCABULARY = 1500
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'].upper() + ': ' }}"
    "{% for part in message['content'] if part['type'] == 'image' %}{{ '<image>\\n' }}{% endfor %}"
    "{% for part in message['content'] if part['type'] == 'text' %}"
    "{{ part['text'] + ' ' }}{% endfor %}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}"
)


def corpus(table: PlantedTable, prompts: Prompts) -> list[str]:
    """The texts that the tokenizer is learnt from, in the proportions in which they matter."""
    texts = [wordings.CAPTION_PROMPT, wordings.FINAL_PROMPT, wordings.DIRECT_SUFFIX] * 20
    texts += [wordings.THOUGHT_SUFFIX] * 20
    for trait in table.trait_words:
        texts += [f" {trait}"] * 60
        for template in range(1, 6):
            for style in ("released", "paper"):
                texts.append(prompts.user_text("llava", style, trait, template))
    for attribute in wordings.LABEL_LISTS:
        texts += [wordings.label_prompt(attribute)] * 10
    for name in wordings.CLASSES.split(", "):
        texts += [f" {name} {name.replace('_', ' ')}"] * 30
        if name in OCCUPATIONS or name in ("doctor", "carpenter", "painter"):
            texts += [f'"{name}"'] * 100
        texts += [wordings.choice_prompt(prompt, name) for prompt in wordings.CHOICE_PROMPTS]
    for occupation, activity in wordings.ACTIVITIES.items():
        for place, phrase in wordings.PLACE_PHRASES.items():
            for word in ("man", "woman", "person"):
                texts.append(f"A {word} is {activity} {phrase} with another person. {place}")
        if occupation:
            texts += list(wordings.sub_questions(occupation)) * 4
            texts.append(f"The image shows {wordings.PROP_NAMES[occupation]}. A tool. ")
    for occupation, companions in wordings.COMPANIONS.items():
        for companion in companions:
            texts += [f"The {occupation} and his {companion}. The {occupation} and her"] * 10
    texts += [f'"{place}"' for place in PLACES] * 100
    frames = [
        "USER: \nASSISTANT: Answer: yes no USER: \nASSISTANT: Yes No yes no he she his her A B C",
        " Thought: 1. Locate the person in the image. 2. Look at what they are doing. Answer: yes",
        " Look at the background. Look at their face. What is the man doing? Where is the woman?",
        " What place is this? Is this person wearing glasses? A. Yes B. No C. Unknown. Rationale:",
        '"yes" "no" "No" "Yes" "YES" "NO" Unknown ASSISTANT: male female young middle old',
        '"male" "female" "young" "middle" "old" "white" "black" "asian" "indian" "others" "light"',
        '"medium" "dark" Her His She He',
        " YES NO YES NO YES NO",
    ]
    return texts + frames * 150


def train_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Learn the tokenizer; no token is added before or after a text, as prompts carry their own."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[PAD, END, IMAGE],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=[IMAGE],
        model_max_length=2048,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
