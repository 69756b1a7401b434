"""A web server on this machine, with paths that behave as badly as those of the web."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from PIL import Image

from vlmfair.retrieval.addresses import AddressRule
from vlmfair.retrieval.client import Client
from vlmfair.retrieval.fetch import Patience

# Tests do not wait as long as a real run does.
QUICK = Patience(attempts=3, first_pause=0.01, longest_pause=0.02)


@dataclass
class Request:
    """What the server was asked: path and headers."""

    path: str
    headers: dict[str, str]


@dataclass
class Site:
    """Pages by path, each a function that answers; what was asked; and how to get there."""

    pages: dict[str, Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=dict)
    asked: list[Request] = field(default_factory=list)
    port: int = 0

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def paths(self) -> list[str]:
        return [request.path for request in self.asked]

    def client(self, **settings: float) -> Client:
        """A client that may ask this server, although it is on this machine."""
        allowed = AddressRule(frozenset({("127.0.0.1", self.port)}))
        return Client(allowed, **{"connect_timeout": 2.0, "read_timeout": 2.0, **settings})

    def serve(
        self, path: str, content: bytes, *, status: int = 200, tag: str = '"one"', **headers: str
    ) -> None:
        """Serve bytes, in parts where the request asks for one of a file that has not changed."""

        def answer(request: BaseHTTPRequestHandler) -> None:
            wanted, start = request.headers.get("Range"), 0
            if wanted and request.headers.get("If-Range") == tag:
                start = int(wanted.removeprefix("bytes=").rstrip("-"))
            request.send_response(206 if start else status)
            request.send_header("ETag", tag)
            request.send_header("Content-Length", str(len(content) - start))
            if start:
                end = len(content) - 1
                request.send_header("Content-Range", f"bytes {start}-{end}/{len(content)}")
            for name, value in headers.items():
                request.send_header(name.replace("_", "-"), value)
            request.end_headers()
            request.wfile.write(content[start:])

        self.pages[path] = answer

    def redirect(self, path: str, target: str) -> None:
        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(302)
            request.send_header("Location", target)
            request.send_header("Content-Length", "0")
            request.end_headers()

        self.pages[path] = answer

    def break_off(self, path: str, content: bytes, *after: int, tag: str = '"one"') -> None:
        """Serve bytes, but end the connection early the first times: after so many bytes each."""
        breaks = list(after)
        self.serve(path, content, tag=tag)
        whole = self.pages[path]

        def answer(request: BaseHTTPRequestHandler) -> None:
            if not breaks:
                return whole(request)
            wanted = request.headers.get("Range", "bytes=0-")
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            request.send_response(206 if start else 200)
            request.send_header("ETag", tag)
            request.send_header("Content-Length", str(len(content) - start))
            if start:
                total = len(content)
                request.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
            request.end_headers()
            request.wfile.write(content[start : start + breaks.pop(0)])
            request.wfile.flush()
            request.close_connection = True
            return None

        self.pages[path] = answer

    def drip(self, path: str, seconds: float) -> None:
        """Send a byte now and then, for so many seconds."""

        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(200)
            request.end_headers()
            end = time.monotonic() + seconds
            try:
                while time.monotonic() < end:
                    request.wfile.write(b"x")
                    time.sleep(0.02)
            except OSError:
                pass
            request.close_connection = True

        self.pages[path] = answer


@contextmanager
def running_site() -> Iterator[Site]:
    """A site that answers until the end of the block."""
    served = Site()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            served.asked.append(Request(self.path, dict(self.headers)))
            page = served.pages.get(self.path)
            if page is None:
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                page(self)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    served.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield served
    server.shutdown()
    server.server_close()


def picture(colour: int, kind: str = "JPEG") -> bytes:
    """A small picture of one colour."""
    written = io.BytesIO()
    Image.new("RGB", (16, 12), (colour, 90, 120)).save(written, kind)
    return written.getvalue()
