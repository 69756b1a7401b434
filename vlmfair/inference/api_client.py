"""One request to an OpenAI-compatible server, through the `openai` package, and its outcome."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import openai

from vlmfair.errors import ModelError
from vlmfair.inference.api_reply import Failure, Reply, error_of, read_reply, refusal_of
from vlmfair.inference.api_retry import retry_after
from vlmfair.models.api_settings import ApiSettings

logger = logging.getLogger(__name__)

# A shorter key is no secret but a word like EMPTY, which an answer may hold.
_SECRET_LENGTH = 8
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Errors of the HTTP library before a request has left this machine.
_NOT_SENT = ("ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError")
# These write a line for each request, and in debug mode its headers.
_LOUD = ("openai", "httpx", "httpcore", "httpx2", "httpcore2")


def read_key(model: str, settings: ApiSettings, environ: Mapping[str, str] | None = None) -> str:
    """Return the key from the environment variable that the entry names.

    Servers without keys get the word `none`. Raises ModelError when the variable is not set, or
    holds what no key can be; the message never repeats it.
    """
    name = settings.api_key_env
    if name is None:
        return "none"
    key = (os.environ if environ is None else environ).get(name, "").strip()
    if not key:
        raise ModelError(
            f"{model}: the environment variable {name} is not set. "
            f"Run: export {name}=<your key>, in the shell that starts snakemake."
        )
    # Anything else would end up in an error message of the HTTP library.
    if not all("!" <= character <= "~" for character in key):
        raise ModelError(
            f"{model}: the environment variable {name} holds spaces or characters that no key has. "
            f"Copy the key again."
        )
    return key


class ApiClient:
    """Sends requests for one model of the sheet; retrying is left to the engine.

    The key is taken out of everything that comes back. Close it with `close`.
    """

    def __init__(self, settings: ApiSettings, key: str) -> None:
        for name in _LOUD:
            logging.getLogger(name).setLevel(logging.WARNING)
        host = urlsplit(settings.base_url).hostname or ""
        self._settings = settings
        self._key = key if settings.api_key_env and len(key) >= _SECRET_LENGTH else ""
        self._client = openai.AsyncOpenAI(
            api_key=key,
            base_url=settings.base_url,
            max_retries=0,
            timeout=settings.timeout_seconds,
            http_client=openai.DefaultAsyncHttpxClient(
                # A redirect could carry questions and images to a server nobody named.
                follow_redirects=False,
                # A proxy of the site cannot reach this machine's own ports.
                trust_env=host not in _LOOPBACK,
                timeout=settings.timeout_seconds,
            ),
        )
        local = host in _LOOPBACK
        if self._key and settings.base_url.startswith("http:") and not local:
            logger.warning("The key travels unencrypted to %s. Use https if it is a secret.", host)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def ask(self, body: Mapping[str, Any]) -> Reply:
        """Send one request and return its answer or refusal; raises Failure when there is none."""
        try:
            # The library's own limit restarts with each byte, so that a drip would never end.
            async with asyncio.timeout(self._settings.timeout_seconds):
                response = await self._client.chat.completions.with_raw_response.create(**body)
            reply = read_reply(self._without_key_bytes(response.content))
        except TimeoutError:
            raise self._too_slow() from None
        except openai.APIStatusError as error:
            return self._clean(self._refusal_or_raise(error))
        except openai.APIConnectionError as error:
            kind = type(error.__cause__).__name__
            slow = isinstance(error, openai.APITimeoutError) and kind not in _NOT_SENT
            raise (self._too_slow() if slow else self._no_connection(error, kind)) from None
        except Failure as failure:
            # A second time, because JSON can spell a key in another way.
            failure.reason = self._without_key(failure.reason)
            raise
        except (openai.OpenAIError, ValueError) as error:
            raise Failure(
                f"the request cannot be sent ({_first_line(self._without_key(str(error)))})",
                "Correct the entry's settings.",
            ) from None
        return self._clean(reply)

    def _refusal_or_raise(self, error: openai.APIStatusError) -> Reply:
        details = _error_object(error, self._without_key_bytes(error.response.content))
        refusal = refusal_of(error.status_code, details)
        if refusal is not None:
            return refusal
        failure = error_of(error.status_code, details, retry_after(error.response.headers))
        failure.reason = self._without_key(failure.reason)
        raise failure from None

    def _no_connection(self, error: openai.APIConnectionError, kind: str) -> Failure:
        parts = urlsplit(self._settings.base_url)
        return Failure(
            f"the connection to {parts.hostname}:{parts.port or parts.scheme} failed "
            f"({kind}: {_first_line(self._without_key(str(error.__cause__ or error)))})",
            "Check base_url and that the server runs, then run again.",
            retried=True,
            # A request that reached the server may have been answered and charged.
            billed=kind not in _NOT_SENT,
        )

    def _too_slow(self) -> Failure:
        return Failure(
            f"the server did not finish within {self._settings.timeout_seconds:g} s",
            "Raise timeout_seconds, or run again later.",
            retried=True,
            billed=True,
        )

    def _clean(self, reply: Reply) -> Reply:
        return replace(
            reply, text=self._without_key(reply.text), model=self._without_key(reply.model)
        )

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "<key>") if self._key else text

    def _without_key_bytes(self, content: bytes) -> bytes:
        """Before anything is cut to length, which could leave half a key."""
        return content.replace(self._key.encode(), b"<key>") if self._key else content


def _first_line(text: str) -> str:
    return " ".join(text.split())[:300]


def _error_object(error: openai.APIStatusError, content: bytes) -> dict[str, Any]:
    """Return the `error` object of an error response, whatever the server sent instead."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    found = body.get("error", body) if isinstance(body, dict) else None
    if isinstance(found, dict):
        return found
    location = error.response.headers.get("location")
    return {"message": str(found or location or content.decode("utf-8", "replace"))}
