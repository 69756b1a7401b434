"""A real HTTP server that speaks the chat protocol, and misbehaves as a test tells it to."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from vlmfair.inference.api import ApiEngine
from vlmfair.inference.api_budget import Ledger
from vlmfair.inference.queries import Answer, ImageRef, Query, Turn
from vlmfair.models.registry import ModelEntry, make_entry

KEY = "sk-test-0123456789-never-to-be-seen"
KEY_VARIABLE = "TEST_API_KEY"
ENVIRON = {KEY_VARIABLE: KEY}
Reaction = Callable[["Handler", dict[str, Any]], None]


@dataclass
class Served:
    """What a server was asked, by the text of the question, and how it reacts to each.

    `reactions` maps a question to what happens at its first, second, ... request; `always` is for
    every question without one of its own. Without either there is an answer.
    """

    base_url: str = ""
    reactions: dict[str, list[Reaction]] = field(default_factory=dict)
    always: Reaction | None = None
    requests: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    served: Served

    def do_POST(self) -> None:
        served = self.served
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        question = question_of(body)
        with served.lock:
            served.requests.append(question)
            served.bodies.append(body)
            served.headers.append({name.lower(): value for name, value in self.headers.items()})
            served.times.append(time.monotonic())
            served.at_once += 1
            served.most_at_once = max(served.most_at_once, served.at_once)
            waiting = served.reactions.get(question, [])
            reaction = waiting.pop(0) if waiting else served.always or answer
        try:
            reaction(self, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with served.lock:
                served.at_once -= 1

    def send(self, status: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def question_of(body: Mapping[str, Any]) -> str:
    """The text of the last turn."""
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else content[-1]["text"]


def completion(text: str | None, **changes: Any) -> dict[str, Any]:
    """The body of a good answer: 100 tokens asked, 10 answered."""
    message = {"role": "assistant", "content": text, "refusal": changes.pop("refusal", None)}
    choice = {"index": 0, "message": message, "finish_reason": changes.pop("reason", "stop")}
    choice["logprobs"] = changes.pop("logprobs", None)
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    served = {"id": "1", "object": "chat.completion", "created": 1, "model": "served-2024-11-20"}
    return {**served, "choices": [choice], "usage": usage, **changes}


def answer(handler: Handler, body: dict[str, Any]) -> None:
    """Answer the question with itself in capitals."""
    question = question_of(body)
    handler.send(200, json.dumps(completion(question.upper())).encode())
    with handler.served.lock:
        handler.served.answered.append(question)


def reply(content: dict[str, Any]) -> Reaction:
    """Send this body."""
    return lambda handler, _: handler.send(200, json.dumps(content).encode())


def raw(content: bytes, status: int = 200) -> Reaction:
    """Send these bytes."""
    return lambda handler, _: handler.send(status, content)


def error(status: int, message: str = "no", code: str | None = None, **headers: str) -> Reaction:
    """Send an error as OpenAI does; `Retry_After="1"` is the header Retry-After."""
    content = json.dumps({"error": {"message": message, "code": code, "type": None}}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler, _: handler.send(status, content, named)


def reset(handler: Handler, _: dict[str, Any]) -> None:
    """Break the connection without an answer."""
    linger = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.connection.close()
    handler.close_connection = True


def truncate(handler: Handler, _: dict[str, Any]) -> None:
    """Promise a whole body and send half of it."""
    content = json.dumps(completion("half")).encode()
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content[: len(content) // 2])
    handler.close_connection = True


def drip(handler: Handler, _: dict[str, Any]) -> None:
    """Send a byte every 50 ms for a second, so that each read is in time and the whole is not."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _tick in range(20):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.05)
    handler.close_connection = True


def after(seconds: float, reaction: Reaction = answer) -> Reaction:
    """React a while later."""

    def later(handler: Handler, body: dict[str, Any]) -> None:
        time.sleep(seconds)
        reaction(handler, body)

    return later


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_: object) -> None:
        """A client that goes away is what some tests are about."""


@contextmanager
def serve() -> Iterator[Served]:
    """Run a server on a free port of this machine."""
    served = Served()
    server = _Server(("127.0.0.1", 0), type("OwnHandler", (Handler,), {"served": served}))
    served.base_url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def api_entry(base_url: str, *, without: tuple[str, ...] = (), **changes: Any) -> ModelEntry:
    """The sheet entry of a served model that is asked without patience."""
    settings: dict[str, Any] = {
        "backend": "openai",
        "base_url": base_url,
        "api_model": "served-2024-11-20",
        "api_key_env": KEY_VARIABLE,
        "price_input": 2.5,
        "price_output": 10.0,
        "timeout_seconds": 5.0,
        "max_wait_seconds": 5.0,
        "first_wait_seconds": 0.01,
        **changes,
    }
    kept = {key: value for key, value in settings.items() if key not in without}
    return make_entry("served", kept)


def ask_api(text: str, *images: ImageRef, **changes: Any) -> Query:
    """A question of one turn, whose text is its id."""
    settings = {"mode": "generate", "max_new_tokens": 16, **changes}
    return Query(text, (Turn("user", text, images),), **settings)


def api_engine(
    served: Served, folder: Path, environ: Mapping[str, str] = ENVIRON, **changes: Any
) -> ApiEngine:
    """An engine that asks the server and keeps its ledger in the folder."""
    entry = api_entry(served.base_url, **changes)
    return ApiEngine(entry, Ledger(folder / "ledger"), environ=environ)


def by_question(answers: Iterator[Answer]) -> dict[str, Answer]:
    """The answers by their questions, of which none may have two."""
    found = list(answers)
    assert len({answer.request_id for answer in found}) == len(found)
    return {answer.request_id: answer for answer in found}
