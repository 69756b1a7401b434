"""The demo's GRAS numbers are those of one full forward for each question."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import numpy as np
import pytest

from vlmfair.demo.scenes import draw, sample_scene
from vlmfair.inference.engine import open_engine
from vlmfair.inference.queries import Query, Turn
from vlmfair.models.chat import ChatRenderer, ImageRef
from vlmfair.models.loading import load_model, load_processor
from vlmfair.models.registry import load_registry
from vlmfair.papers.gras.questions import load_prompts, load_traits

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["tiny-planted", "tiny-control"])
def test_p_yes_differs_from_full_forwards_by_rounding_only(name, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    prompts = load_prompts("resources/prompts/gras.yaml")
    traits = load_traits("resources/words/gras_traits.csv")
    rng = np.random.default_rng(4)
    queries = []
    for number in range(2):
        path = tmp_path / f"{number}.png"
        draw(sample_scene(rng)).save(path)
        image = ImageRef(str(path), hashlib.sha256(path.read_bytes()).hexdigest())
        for trait in traits[::5]:
            text = prompts.user_text("llava", "released", trait.word, template=1 + number)
            turns = (Turn("user", text, (image,)),)
            queries.append(Query(f"{number}/{trait.word}", turns, labels=(" Yes",)))
    loaded = load_processor(load_registry("config/models.yaml")[name])
    model = load_model(loaded, "cpu")
    renderer = ChatRenderer(loaded.processor, loaded.family, name)

    def p_yes(mode: str) -> dict[str, float]:
        engine = open_engine(loaded, renderer, mode=mode, model=model)
        return {
            a.request_id: math.exp(a.logits[0] - a.logsumexp[0])
            for a in engine.score(queries, (1.0,))
        }

    full, ours = p_yes("full_forward"), p_yes("auto")

    assert max(abs(ours[key] - full[key]) for key in full) <= 1e-5
    assert max(full.values()) - min(full.values()) > 0.2
