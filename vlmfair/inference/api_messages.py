"""A question as an OpenAI-compatible server gets it: chat messages, images as data URLs."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from vlmfair.inference.images import open_image
from vlmfair.inference.queries import ImageRef, Query
from vlmfair.inference.store import KEY_BYTES
from vlmfair.models.api_settings import ApiSettings

# Raised by hand when the same question would be put differently; part of every answer's key.
API_SEMANTICS = 1
# What servers document to read. Pillow calls the JPEG of some cameras MPO.
_MEDIA_TYPES = {
    "JPEG": "image/jpeg",
    "MPO": "image/jpeg",
    "PNG": "image/png",
    "WEBP": "image/webp",
    "GIF": "image/gif",
}


def data_url(ref: ImageRef) -> str:
    """Return an image as a data URL: the file's own bytes, or a PNG of the transformed pixels.

    The media type goes by content; formats that servers do not read become PNG. Raises as
    `open_image`, so that a damaged image is never paid for.
    """
    image = open_image(ref)
    content = Path(ref.path).read_bytes()
    with Image.open(io.BytesIO(content)) as opened:
        media_type = _MEDIA_TYPES.get(opened.format or "")
    if ref.transform != "none" or media_type is None:
        buffer = io.BytesIO()
        image.save(buffer, "PNG")
        content, media_type = buffer.getvalue(), "image/png"
    return f"data:{media_type};base64,{base64.b64encode(content).decode('ascii')}"


def chat_messages(query: Query, url_of: Callable[[ImageRef], str] = data_url) -> list[Any]:
    """Return the messages of a conversation; the images of a turn come before its text.

    A turn without images is plain text, which servers of text models insist on.
    """
    messages = []
    for turn in query.turns:
        content: Any = turn.text
        if turn.images:
            content = [
                *({"type": "image_url", "image_url": {"url": url_of(ref)}} for ref in turn.images),
                {"type": "text", "text": turn.text},
            ]
        messages.append({"role": turn.role, "content": content})
    return messages


def request_body(query: Query, settings: ApiSettings) -> dict[str, Any]:
    """Return the JSON of one request. Raises as `open_image`."""
    scored = query.mode == "score"
    body: dict[str, Any] = {
        "model": settings.api_model,
        "messages": chat_messages(query),
        settings.token_limit: 1 if scored else query.max_new_tokens,
    }
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    if settings.seed is not None:
        body["seed"] = settings.seed
    if scored:
        body |= {"logprobs": True, "top_logprobs": settings.top_logprobs}
    return body


def why_unaskable(query: Query) -> str | None:
    """Return the sentence of a question that no chat server can be asked, else None."""
    if query.assistant_prefix:
        return (
            "a chat server does not continue a given beginning of its answer. "
            "Plan the question without assistant_prefix."
        )
    if query.rendering == "raw":
        return "a chat server takes no raw prompt. Plan the question with the rendering chat."
    if any(turn.images and turn.role != "user" for turn in query.turns):
        return "a chat server takes images from the user only. Put them into user turns."
    return None


def api_answer_key(query: Query, temperatures: Sequence[float]) -> bytes:
    """Return the key of an answer: 16 bytes from the messages and what is asked about them.

    Images count by the SHA-256 of their bytes and their transform, so that no image is opened
    for an answer that is stored.
    """
    content = {
        "mode": query.mode,
        "messages": chat_messages(query, lambda ref: f"{ref.sha256} {ref.transform}"),
        "prefix": query.assistant_prefix,
        "rendering": query.rendering or "chat",
        "asked": [list(query.labels), list(temperatures)]
        if query.mode == "score"
        else query.max_new_tokens,
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=KEY_BYTES).digest()
