"""Each photograph is fetched once and checked; what is missing says why."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler

import pytest
from web_site import picture

from vlmfair.datasets.visogender import photograph_of
from vlmfair.errors import RetrievalError
from vlmfair.retrieval.fetch import Patience
from vlmfair.retrieval.photograph_list import MISSING, Wanted, count_by_status, read_list
from vlmfair.retrieval.photographs import Manners, fetch_photographs

QUICK = Manners(
    servers=4, pause=0.0, seconds=1.0, max_bytes=50_000, patience=Patience(2, 0.01, 0.02)
)


def wanted(number: str, address: str) -> Wanted:
    return Wanted(number, address, photograph_of(address))


def fetch_one(site, folder, page: str, **manners) -> str:
    settings = Manners(**{**QUICK.__dict__, **manners})
    (found,) = fetch_photographs(
        [wanted("OO_1", site.url(page))], folder, site.client(read_timeout=0.3), settings
    )
    assert found.detail or found.status == "ok"
    return found.status


@pytest.mark.parametrize(("kind", "ending"), [("JPEG", "jpg"), ("PNG", "png"), ("WEBP", "webp")])
def test_a_photograph_is_kept_under_its_number_with_the_ending_of_what_it_is(
    site, tmp_path, kind, ending
):
    """Addresses have query strings, other endings, or none."""
    site.serve("/p/1.jpg!d?w=600", picture(1, kind))

    (found,) = fetch_photographs(
        [wanted("OO_1", site.url("/p/1.jpg!d?w=600"))], tmp_path, site.client(), QUICK
    )

    assert (found.status, found.file) == ("ok", f"OO_1.{ending}")
    assert (found.width, found.height) == (16, 12)
    assert (tmp_path / "images" / found.file).read_bytes() == picture(1, kind)
    assert read_list(tmp_path / "photographs.csv") == [found]


def test_what_is_there_is_not_asked_for_again_and_what_is_missing_is(site, tmp_path):
    site.serve("/1", picture(1))
    rows = [wanted("OO_1", site.url("/1")), wanted("OO_2", site.url("/2"))]

    first = fetch_photographs(rows, tmp_path, site.client(), QUICK)
    site.serve("/2", picture(2))
    second = fetch_photographs(rows, tmp_path, site.client(), QUICK)

    assert [one.status for one in first] == ["ok", "gone"]
    assert [one.status for one in second] == ["ok", "ok"]
    assert sorted(site.paths()) == ["/1", "/2", "/2"]


def test_a_row_whose_address_has_changed_is_fetched_anew(site, tmp_path):
    """Rows kept their number when a photograph was replaced."""
    site.serve("/old", picture(1))
    site.serve("/new", picture(2, "PNG"))
    fetch_photographs([wanted("OO_1", site.url("/old"))], tmp_path, site.client(), QUICK)

    fetch_photographs([wanted("OO_1", site.url("/new"))], tmp_path, site.client(), QUICK)

    assert [path.name for path in (tmp_path / "images").iterdir()] == ["OO_1.png"]


def test_a_file_that_was_put_there_by_hand_stays(site, tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images/OO_1.jpeg").write_bytes(picture(7))

    (found,) = fetch_photographs([wanted("OO_1", site.url("/1"))], tmp_path, site.client(), QUICK)

    assert (found.status, found.file) == ("by_hand", "OO_1.jpeg")
    assert site.asked == []


@pytest.mark.parametrize(
    ("status", "reason"),
    [(404, "gone"), (410, "gone"), (403, "forbidden"), (451, "forbidden"), (500, "server_error")],
)
def test_answers_without_a_photograph(site, tmp_path, status, reason):
    site.serve("/1", b"", status=status)
    assert fetch_one(site, tmp_path, "/1") == reason


def test_a_page_is_no_image_whatever_its_address_ends_in(site, tmp_path):
    site.serve("/1.jpg", b"<html>Sorry, this page has moved</html>")

    assert fetch_one(site, tmp_path, "/1.jpg") == "no_image"
    assert list((tmp_path / "images").iterdir()) == []


def test_half_an_image_is_none(site, tmp_path):
    site.serve("/1.jpg", picture(1)[:300])
    assert fetch_one(site, tmp_path, "/1.jpg") == "no_image"


@pytest.mark.parametrize("announced", [True, False])
def test_more_bytes_than_a_photograph_has(site, tmp_path, announced):
    if announced:
        site.serve("/1.jpg", b"\xff\xd8" + bytes(60_000))
    else:
        site.drip("/1.jpg", 5.0)
    assert fetch_one(site, tmp_path, "/1.jpg", max_bytes=20) == "too_large"


def test_a_server_that_drips_is_left_after_a_while(site, tmp_path):
    site.drip("/1.jpg", 5.0)
    started = time.monotonic()

    assert fetch_one(site, tmp_path, "/1.jpg", seconds=0.1) == "timed_out"

    assert time.monotonic() - started < 2
    assert site.paths() == ["/1.jpg"] * 2, "it is given a second chance"


def test_a_server_that_says_nothing_times_out(site, tmp_path):
    def silent(request: BaseHTTPRequestHandler) -> None:
        time.sleep(0.6)
        request.close_connection = True

    site.pages["/1.jpg"] = silent
    assert fetch_one(site, tmp_path, "/1.jpg", patience=Patience(1, 0, 0)) == "timed_out"


def test_a_server_that_is_not_there(tmp_path, site):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client = site.client()
    object.__setattr__(client.rule, "allowed", frozenset({("127.0.0.1", port)}))

    (found,) = fetch_photographs(
        [wanted("OO_1", f"http://127.0.0.1:{port}/1.jpg")], tmp_path, client, QUICK
    )

    assert found.status == "unreachable"


@pytest.mark.parametrize(
    "address",
    ["file:///etc/passwd", "http://192.168.1.1/1.jpg", "http://localhost/1.jpg", "no address"],
)
def test_addresses_that_are_not_of_the_web_are_refused(site, tmp_path, address):
    (found,) = fetch_photographs([wanted("OO_1", address)], tmp_path, site.client(), QUICK)

    assert found.status == "refused"
    assert "the address is refused, because" in found.detail


def test_a_redirect_into_the_own_network_is_refused(site, tmp_path):
    site.redirect("/1.jpg", "http://169.254.169.254/latest/meta-data")
    assert fetch_one(site, tmp_path, "/1.jpg") == "refused"


def test_a_placeholder_behind_redirects_is_known_by_its_bytes(site, tmp_path):
    """A server that lost photographs leads to one and the same picture."""
    site.serve("/sorry.png", picture(9, "PNG"))
    site.redirect("/1.jpg", "/sorry.png")
    site.redirect("/2.jpg", "/sorry.png")
    site.serve("/3.jpg", picture(3))
    rows = [wanted(f"OO_{number}", site.url(f"/{number}.jpg")) for number in (1, 2, 3)]

    found = fetch_photographs(rows, tmp_path, site.client(), QUICK)

    assert [one.status for one in found] == ["placeholder", "placeholder", "ok"]
    assert found[0].detail == "the same bytes came for OO_1, OO_2"
    assert [path.name for path in (tmp_path / "images").iterdir()] == ["OO_3.jpg"]


def test_a_known_placeholder_is_known_when_it_comes_alone(site, tmp_path):
    site.serve("/sorry.png", picture(9, "PNG"))
    for number in (1, 2, 3):
        site.redirect(f"/{number}.jpg", "/sorry.png")
    rows = [wanted(f"OO_{number}", site.url(f"/{number}.jpg")) for number in (1, 2, 3)]
    fetch_photographs(rows[:2], tmp_path, site.client(), QUICK)
    site.serve("/1.jpg", picture(1))
    site.serve("/2.jpg", picture(2))

    found = fetch_photographs(rows, tmp_path, site.client(), QUICK)

    assert [one.status for one in found] == ["ok", "ok", "placeholder"]


def test_two_addresses_of_one_photograph_are_no_placeholder(site, tmp_path):
    """Seven photographs of the newest tables have two rows, with another size in the address."""
    for query in ("?w=600", "?w=1200"):
        site.serve(f"/photos/42/a.jpeg{query}", picture(1))
    rows = [
        wanted("OO_1", site.url("/photos/42/a.jpeg?w=600")),
        wanted("OO_2", site.url("/photos/42/a.jpeg?w=1200")),
    ]

    found = fetch_photographs(rows, tmp_path, site.client(), QUICK)

    assert [one.status for one in found] == ["ok", "ok"]
    assert found[0].sha256 == found[1].sha256


def test_one_server_is_asked_one_thing_at_a_time_with_a_pause(site, tmp_path):
    at_once, most, times, lock = [0], [0], [], threading.Lock()

    def page(colour: int):
        def answer(request: BaseHTTPRequestHandler) -> None:
            with lock:
                times.append(time.monotonic())
                at_once[0] += 1
                most[0] = max(most[0], at_once[0])
            time.sleep(0.01)
            with lock:
                at_once[0] -= 1
            content = picture(colour)
            request.send_response(200)
            request.send_header("Content-Length", str(len(content)))
            request.end_headers()
            request.wfile.write(content)

        return answer

    for number in range(4):
        site.pages[f"/{number}"] = page(number * 9)
    rows = [wanted(f"OO_{number}", site.url(f"/{number}")) for number in range(4)]

    found = fetch_photographs(rows, tmp_path, site.client(), Manners(pause=0.05, max_bytes=50_000))

    assert count_by_status(found) == {"ok": 4}
    assert most == [1]
    assert all(later - earlier >= 0.05 for earlier, later in itertools.pairwise(times))


def test_a_killed_run_keeps_what_it_has_and_continues(site, tmp_path, monkeypatch):
    site.serve("/1", picture(1))
    site.serve("/2", picture(2))
    rows = [wanted("OO_1", site.url("/1")), wanted("OO_2", site.url("/2"))]
    real = site.client()

    class Dying:
        def open(self, url: str):
            if url.endswith("/2"):
                raise KeyboardInterrupt
            return real.open(url)

    with pytest.raises(KeyboardInterrupt):
        fetch_photographs(rows, tmp_path, Dying(), QUICK)  # type: ignore[arg-type]
    found = fetch_photographs(rows, tmp_path, real, QUICK)

    assert [one.status for one in found] == ["ok", "ok"], "not taken for one put there by hand"
    assert site.paths() == ["/1", "/2"]


@pytest.mark.parametrize("number", ["../x", "a/b", "", "OO 1", "é"])
def test_a_number_that_is_no_file_name_is_an_error(site, tmp_path, number):
    with pytest.raises(RetrievalError, match="is no number of a photograph"):
        fetch_photographs([wanted(number, site.url("/1"))], tmp_path, site.client(), QUICK)


def test_every_reason_is_explained():
    assert all(text and not text.endswith(".") for text in MISSING.values())
