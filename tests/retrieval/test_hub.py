"""A file of the hub comes at one commit, and is the one that the hub says it has."""

from __future__ import annotations

import hashlib
from http.server import BaseHTTPRequestHandler

import pytest

from vlmfair.errors import RetrievalError
from vlmfair.retrieval.hub import fetch_from_hub

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONTENT = b'{"question": "Is the man tall?"}\n' * 50
DIGEST = hashlib.sha256(CONTENT).hexdigest()
NAME = "parts/a.jsonl"


def serve_hub(site, *, tag: str = DIGEST, status: int = 200, error: str = "") -> None:
    """The two routes that a download asks: by branch, and by commit."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("ETag", f'"{tag}"')
        request.send_header("X-Repo-Commit", COMMIT)
        request.send_header("Content-Length", str(len(CONTENT) if status == 200 else 0))
        if error:
            request.send_header("X-Error-Code", error)
        request.end_headers()
        if request.command == "GET" and status == 200:
            request.wfile.write(CONTENT)

    for revision in ("main", COMMIT):
        site.pages[f"/datasets/owner/name/resolve/{revision}/{NAME}"] = answer


def test_a_file_comes_at_the_commit_of_the_branch(site, tmp_path):
    serve_hub(site)

    fetched = fetch_from_hub("owner/name", NAME, tmp_path, at_most=9999, endpoint=site.url(""))

    assert fetched.path == tmp_path / NAME
    assert fetched.path.read_bytes() == CONTENT
    assert fetched.sha256 == DIGEST
    assert fetched.address == site.url(f"/datasets/owner/name/resolve/{COMMIT}/{NAME}")


@pytest.mark.parametrize(
    ("served", "at_most", "says"),
    [
        ({"tag": "0" * 64}, 9999, "its SHA-256 is .*, and the hub says 0000"),
        ({}, 10, f"it has {len(CONTENT)} bytes of at most 10"),
        ({"status": 404, "error": "EntryNotFound"}, 9999, "parts/a.jsonl could not be downloaded"),
        ({"status": 403, "error": "GatedRepo"}, 9999, "gated. Accept its terms at https://hugg"),
    ],
)
def test_what_the_hub_does_not_give_is_told(site, tmp_path, served, at_most, says):
    serve_hub(site, **served)

    with pytest.raises(RetrievalError, match=says):
        fetch_from_hub("owner/name", NAME, tmp_path, at_most=at_most, endpoint=site.url(""))

    assert not (tmp_path / NAME).exists()
