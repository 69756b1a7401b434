"""A model behind a server takes the same road: it answers questions, and writes sub-questions."""

from __future__ import annotations

import json

import pandas as pd
import pytest
import yaml
from fake_api import KEY, KEY_VARIABLE, completion, question_of, serve

pytestmark = pytest.mark.workflow

GENERATED = """Sub-questions:
1. Is anyone at work?
2. Is a tool in the picture?
Sub-answers:
1. Uncertain
2. Uncertain
Answer: Uncertain"""


def reply_as_a_model(handler, body) -> None:
    """List sub-questions when asked for some, else choose Yes."""
    asked = question_of(body)
    text = GENERATED if asked.startswith("Given the context") else "A. Yes"
    handler.send(200, json.dumps(completion(text)).encode())


@pytest.fixture
def served(fresh, monkeypatch):
    """A project whose model and generator is a server on this machine."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with serve() as server:
        server.always = reply_as_a_model
        path = fresh.folder / "config/models.yaml"
        sheet = yaml.safe_load(path.read_text())
        sheet["models"]["served"] = {
            "backend": "openai",
            "base_url": server.base_url,
            "api_model": "served-2024-11-20",
            "api_key_env": KEY_VARIABLE,
            "price_input": 0,
            "price_output": 0,
        }
        path.write_text(yaml.safe_dump(sheet))
        project = fresh.with_settings(
            datasets={"facet": {"drawn_per_cell": 1}},
            lvlm_fairness={"models": ["served"], "generator": "served"},
        )
        yield project, server


def test_a_served_model_answers_and_writes_the_sub_questions(served):
    project, server = served
    results = project.folder / "results/demo/lvlm_fairness"
    names = ("rationale/sub_questions.json", "responses/sub_questions/served.parquet")

    project.snakemake(*(f"results/demo/lvlm_fairness/{name}" for name in names))

    asked = json.loads((results / names[0]).read_text())
    assert len(asked) == 13
    assert set(map(tuple, asked.values())) == {
        ("Is anyone at work?", "Is a tool in the picture?"),
    }
    answers = pd.read_parquet(results / names[1])
    assert len(answers) == 13 * 2 * 2, "one image of each class and gender, two questions each"
    assert set(answers["text"]) == {"A. Yes"}
    # Once for each occupation without an image, then each question about each image.
    pictures = [isinstance(body["messages"][-1]["content"], list) for body in server.bodies]
    assert (pictures.count(False), pictures.count(True)) == (13, 13 * 2 * 2)
    written = [path for path in (project.folder / "results").rglob("*") if path.is_file()]
    assert not [path for path in written if KEY.encode() in path.read_bytes()]
