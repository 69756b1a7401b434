"""A small server with the routes of the Hugging Face hub that a download asks for."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NEWER = "fedcba9876543210fedcba9876543210fedcba98"


@dataclass
class Repository:
    """A repository's commits, newest last: file names and contents.

    `gated` refuses downloads without a login; `cut` breaks off the first answers with these
    files half-way; `garbled` files have other content than the hub states.
    """

    commits: dict[str, dict[str, bytes]]
    gated: bool = False
    cut: Counter[str] = field(default_factory=Counter)
    garbled: set[str] = field(default_factory=set)


@dataclass
class FakeHub:
    """The repositories of a server, its address, and the files and parts that it sent."""

    repositories: dict[str, Repository]
    endpoint: str = ""
    asked: list[str] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)

    def files_sent(self) -> list[str]:
        """The files whose content was sent, in order."""
        return [path.rpartition("/")[2] for path in self.asked]


@contextmanager
def fake_hub(repositories: dict[str, Repository]) -> Iterator[FakeHub]:
    """Serve repositories on a free port of this machine while the block runs."""
    hub = FakeHub(repositories)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(hub: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def _answer(self) -> None:
            parts = unquote(urlsplit(self.path).path).strip("/").split("/")
            if parts[:2] == ["api", "models"]:
                self._describe("/".join(parts[2:4]), parts[4:])
            elif len(parts) > 4 and parts[2] == "resolve":
                self._file("/".join(parts[:2]), parts[3], "/".join(parts[4:]))
            else:
                self._refuse(404, "EntryNotFound")

        def _describe(self, name: str, rest: list[str]) -> None:
            repository = hub.repositories.get(name)
            if repository is None:
                self._refuse(404, "RepoNotFound")
                return
            revision = rest[1] if len(rest) > 1 else "main"
            commit = list(repository.commits)[-1] if revision == "main" else revision
            if commit not in repository.commits:
                self._refuse(404, "RevisionNotFound")
                return
            files = repository.commits[commit]
            if rest[:1] == ["tree"]:
                self._json([_entry(path, content) for path, content in files.items()])
                return
            siblings = [_sibling(path, content) for path, content in files.items()]
            gated = "manual" if repository.gated else False
            self._json({"id": name, "sha": commit, "gated": gated, "siblings": siblings})

        def _file(self, name: str, commit: str, path: str) -> None:
            repository = hub.repositories[name]
            if repository.gated:
                self._refuse(403, "GatedRepo")
                return
            content = repository.commits[commit][path]
            # The whole size stands in every answer, as the hub's storage has it.
            headers = {"ETag": f'"{_etag(path, content)}"', "X-Repo-Commit": commit}
            if path in repository.garbled:
                content = b"x" * len(content)
            if self.command == "HEAD":
                self._send(200, b"", {**headers, "Content-Length": str(len(content))})
                return
            hub.asked.append(path)
            asked_range = self.headers.get("Range", "")
            start = int(asked_range.removeprefix("bytes=").split("-")[0] or 0)
            if asked_range:
                hub.ranges.append(f"{path} from {start}")
                headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            body = content[start:]
            headers["Content-Length"] = str(len(body))
            if repository.cut[path]:
                repository.cut[path] -= 1
                body = body[: len(body) // 2]
                self.close_connection = True
            self._send(206 if asked_range else 200, body, headers)

        def _json(self, content: object) -> None:
            body = json.dumps(content).encode()
            headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
            self._send(200, body, headers)

        def _refuse(self, status: int, code: str) -> None:
            self._send(status, b"", {"X-Error-Code": code, "Content-Length": "0"})

        def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body)

    return Handler


def _is_large(path: str) -> bool:
    """Large files have their SHA-256 as ETag; small ones the id that git gives them."""
    return path.endswith(".safetensors")


def _etag(path: str, content: bytes) -> str:
    return _sha256(content) if _is_large(path) else _git_id(content)


def _entry(path: str, content: bytes) -> dict[str, object]:
    large = {"oid": _sha256(content), "size": len(content), "pointerSize": 134}
    entry = {"type": "file", "path": path, "size": len(content), "oid": _git_id(content)}
    return {**entry, "lfs": large} if _is_large(path) else entry


def _sibling(path: str, content: bytes) -> dict[str, object]:
    large = {"sha256": _sha256(content), "size": len(content), "pointerSize": 134}
    sibling = {"rfilename": path, "size": len(content), "blobId": _git_id(content)}
    return {**sibling, "lfs": large} if _is_large(path) else sibling


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _git_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
