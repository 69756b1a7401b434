"""Entries of served models: what they state, and what is refused without repeating a secret."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from vlmfair.errors import ConfigError
from vlmfair.models.readiness import unready_models
from vlmfair.models.registry import load_registry

SECRET = "AIzaSy-0123456789-secret"


def write_sheet(folder: Path, **settings: object) -> Path:
    entry = {
        "backend": "openai",
        "base_url": "https://api.example.org/v1",
        "api_model": "big-2024-11-20",
        "price_input": 2.5,
        "price_output": 10,
        **settings,
    }
    kept = {key: value for key, value in entry.items() if value != "left out"}
    path = folder / "models.yaml"
    path.write_text(yaml.safe_dump({"models": {"mine": kept}}))
    return path


def test_an_entry_without_more_has_the_documented_defaults(tmp_path: Path) -> None:
    entry = load_registry(write_sheet(tmp_path, title="Mine"))["mine"]

    assert entry.api is not None
    assert (entry.title, entry.family, entry.dtype) == ("Mine", "openai", "unknown")
    assert entry.source == "big-2024-11-20 at https://api.example.org/v1"
    assert (entry.api.concurrency, entry.api.temperature, entry.api.seed) == (4, 0.0, None)
    assert (entry.api.timeout_seconds, entry.api.max_wait_seconds) == (60.0, 600.0)
    assert (entry.api.top_logprobs, entry.api.token_limit) == (0, "max_tokens")


def test_the_committed_example_is_a_pinned_snapshot_whose_key_is_in_the_environment(
    root: Path,
) -> None:
    api = load_registry(root / "config/models.yaml")["gpt-4o"].api

    assert api is not None
    assert (api.api_model, api.api_key_env) == ("gpt-4o-2024-11-20", "OPENAI_API_KEY")
    assert (api.price_input, api.price_output) == (2.5, 10.0)


def test_the_sheet_has_the_papers_gemini(root: Path) -> None:
    entry = load_registry(root / "config/models.yaml", root / "config/schemas/models.schema.json")[
        "gemini-1.5-pro"
    ]

    assert entry.title == "Gemini 1.5 Pro"
    assert entry.api is not None
    assert entry.api.base_url.startswith("https://generativelanguage.googleapis.com/v1beta/openai")
    assert (entry.api.api_model, entry.api.api_key_env) == ("gemini-1.5-pro-002", "GEMINI_API_KEY")
    assert (entry.api.price_input, entry.api.price_output) == (1.25, 5.0)


def test_a_served_model_needs_no_family_and_no_download(root: Path) -> None:
    registry = load_registry(root / "config/models.yaml")

    assert unready_models(["gpt-4o"], registry) == ""


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"base_url": "left out"}, "base_url is missing. Write base_url: <the server's address"),
        ({"price_output": "left out"}, "price_output is missing. Write price_output: <the price"),
        ({"api_key": "x"}, "api_key is not a known key. Write api_key_env."),
        ({"concurrency": 0}, "Write a number of questions at a time, 1 to 256."),
        ({"temperature": 3}, "Write 0 to 2, or null for the server's own default."),
        ({"dtype": "float32"}, "dtype is a key of local models"),
        ({"base_url": "ftp://example.org"}, "Write base_url: https://<host>/v1"),
        ({"base_url": "file:///etc/passwd"}, "no http or https address"),
        ({"base_url": "api.example.org/v1"}, "no http or https address"),
        ({"base_url": "http://"}, "no http or https address"),
        ({"base_url": "http://[bad/v1"}, "no http or https address"),
        ({"base_url": "https://host:port/v1"}, "no http or https address"),
        ({"base_url": f"https://me:{SECRET}@example.org/v1"}, "holds a user, a query or a frag"),
        ({"base_url": f"https://example.org/v1?key={SECRET}"}, "name the key's variable in api_k"),
        ({"api_key_env": SECRET}, "Write the name of the environment variable that holds the key"),
        ({"backend": "azure"}, "Write transformers (weights that are loaded here) or openai"),
    ],
)
def test_a_wrong_entry_is_refused_with_what_to_write(
    tmp_path: Path, settings: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_registry(write_sheet(tmp_path, **settings))

    assert sentence in str(caught.value)
    assert "mine" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_local_model_has_no_keys_of_a_server(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    local = {"path": "weights", "family": "llava", "dtype": "float32", "attention": "sdpa"}
    path.write_text(yaml.safe_dump({"models": {"mine": {**local, "backend": "transformers"}}}))
    assert load_registry(path)["mine"].path == "weights"

    path.write_text(yaml.safe_dump({"models": {"mine": {**local, "api_key_env": "KEY"}}}))

    with pytest.raises(ConfigError, match=r"api_key_env is a key of models behind a server"):
        load_registry(path)
