"""What the sheet of models states about a model behind an OpenAI-compatible server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlsplit

from vlmfair.errors import ConfigError

BACKEND = "openai"
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
# Keys that an entry of any backend may have.
SHARED_KEYS = frozenset(
    {
        *("title", "repository", "revision", "image_transforms", "yes_form"),
        *("kind", "memory_gb", "papers", "access", "get"),
    }
)


@dataclass(frozen=True)
class ApiSettings:
    """Where a model is asked and how; prices are for a million tokens, times in seconds.

    Every key is explained in the project's own `config/models.yaml`.
    """

    base_url: str
    api_model: str
    price_input: float
    price_output: float
    api_key_env: str | None = None
    concurrency: int = 4
    timeout_seconds: float = 60.0
    max_wait_seconds: float = 600.0
    first_wait_seconds: float = 1.0
    temperature: float | None = 0.0
    seed: int | None = None
    top_logprobs: int = 0
    token_limit: str = "max_tokens"


API_KEYS = frozenset(field.name for field in fields(ApiSettings))


def make_api_settings(name: str, settings: Mapping[str, Any], sheet: str) -> ApiSettings:
    """Return the API settings of an entry, which the schema has passed.

    Raises ConfigError on a key of local models, on a base_url that is no plain http address, and on
    an api_key_env that is no name of a variable.
    """
    foreign = sorted(set(settings) - API_KEYS - SHARED_KEYS - {"backend"})
    if foreign:
        raise ConfigError(
            f"{sheet}: {name}: {foreign[0]} is a key of local models, and this entry says "
            f"backend: {BACKEND}. Remove {foreign[0]}."
        )
    _check_base_url(name, settings["base_url"], sheet)
    if not _VARIABLE.fullmatch(settings.get("api_key_env", "KEY")):
        # Not repeated in the message: it may be the key itself.
        raise ConfigError(
            f"{sheet}: {name}: api_key_env is no name of capital letters, digits and underscores. "
            f"Write the name of the environment variable that holds the key, never the key."
        )
    return ApiSettings(**{key: value for key, value in settings.items() if key in API_KEYS})


def refuse_api_keys(name: str, settings: Mapping[str, Any], sheet: str) -> None:
    """Raise ConfigError when the entry of a local model has a key of API models."""
    foreign = sorted(set(settings) & API_KEYS)
    if foreign:
        raise ConfigError(
            f"{sheet}: {name}: {foreign[0]} is a key of models behind a server. "
            f"Remove it, or write backend: {BACKEND}."
        )


def _check_base_url(name: str, url: str, sheet: str) -> None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    # The address is not repeated in the message: it may hold a password.
    if parts.scheme not in ("http", "https") or not host or any(map(str.isspace, url)):
        raise ConfigError(
            f"{sheet}: {name}: base_url is no http or https address. "
            f"Write base_url: https://<host>/v1, as the server's documentation states it."
        )
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ConfigError(
            f"{sheet}: {name}: base_url holds a user, a query or a fragment, where keys get into "
            f"logs. Write base_url: https://<host>/v1 and name the key's variable in api_key_env."
        )
