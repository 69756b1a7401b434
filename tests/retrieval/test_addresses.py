"""What is fetched lies on the public web, whatever the address, its name or a redirect says."""

from __future__ import annotations

import socket
from ipaddress import ip_address

import pytest

from vlmfair.retrieval.addresses import (
    AddressRule,
    RefusedAddressError,
    check_address,
    is_public,
    resolve,
)
from vlmfair.retrieval.client import Client


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.org/x.jpg",
        "//example.org/x.jpg",
        "data:image/png;base64,AAAA",
        "http:///x.jpg",
        "http://localhost/x.jpg",
        "http://LOCALHOST./x.jpg",
        "http://sub.localhost/x.jpg",
        "http://printer/x.jpg",
        "http://nas.local/x.jpg",
        "http://metadata.google.internal/x",
        "http://127.0.0.1/x.jpg",
        "http://10.1.2.3/x.jpg",
        "http://192.168.0.1/x.jpg",
        "http://172.16.0.1/x.jpg",
        "http://169.254.169.254/latest/meta-data",
        "http://100.64.0.1/x.jpg",
        "http://0.0.0.0/x.jpg",
        "http://224.0.0.1/x.jpg",
        "http://[::1]/x.jpg",
        "http://[fe80::1]/x.jpg",
        "http://[fe80::1%25eth0]/x.jpg",
        "http://[fd00::1]/x.jpg",
        "http://[::ffff:10.0.0.1]/x.jpg",
        "http://[64:ff9b::7f00:1]/x.jpg",
        "http://[2002:7f00:1::]/x.jpg",
        "http://2130706433/x.jpg",
        "http://user:secret@example.org/x.jpg",
        "http://example.org:22/x.jpg",
        "http://example.org:99999/x.jpg",
        "http://example.org\\@127.0.0.1/x.jpg",
        "http://exam ple.org/x.jpg",
        "http://example.org/x\r\nHost: localhost",
        "http://[::1/x.jpg",
    ],
)
def test_what_is_not_of_the_public_web_is_refused(url):
    with pytest.raises(RefusedAddressError, match=r"the address is refused, because .*\. Correct"):
        check_address(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://images.pexels.com/photos/1/x.jpeg?auto=compress&w=600",
        "http://example.org:80/x",
        "https://8.8.8.8/x.jpg",
        "https://[2001:4860:4860::8888]/x.jpg",
    ],
)
def test_public_addresses_are_fetched(url):
    assert check_address(url).hostname


@pytest.mark.parametrize(
    ("address", "public"),
    [("8.8.8.8", True), ("10.0.0.1", False), ("::ffff:8.8.8.8", True), ("64:ff9b::a00:1", False)],
)
def test_addresses_that_wrap_another_are_as_public_as_that(address, public):
    assert is_public(ip_address(address)) is public


@pytest.mark.parametrize("spelling", ["0x7f.1", "127.1", "0177.0.0.1"])
def test_other_spellings_of_a_local_address_are_found_when_they_are_looked_up(spelling):
    with pytest.raises(RefusedAddressError, match=r"leads to 127\.0\.0\.1"):
        resolve(spelling, 80)


def test_a_name_that_leads_to_a_local_address_is_refused_before_a_connection(monkeypatch, site):
    """As a server for names does that is in somebody else's hands."""
    site.serve("/secret", b"secret")
    monkeypatch.setattr(socket, "getaddrinfo", names_of("93.184.216.34", "127.0.0.1"))

    with (
        pytest.raises(RefusedAddressError, match=r"photos\.example\.org: .* 127\.0\.0\.1"),
        Client().open("http://photos.example.org/secret"),
    ):
        pass

    assert site.asked == []


def test_a_name_is_looked_up_once_so_that_it_cannot_lead_elsewhere(monkeypatch, site):
    """The first look-up is public; a second one, at the connection, would be local."""
    looked_up = []

    def changing(host, port, *args, **kwargs):
        looked_up.append(host)
        address = "127.0.0.1" if len(looked_up) > 1 else "203.0.113.9"
        return names_of(address)(host, port)

    site.serve("/secret", b"secret")
    monkeypatch.setattr(socket, "getaddrinfo", changing)
    rule = AddressRule(frozenset({("203.0.113.9", 80)}))
    client = Client(rule, connect_timeout=0.05)

    with pytest.raises(Exception, match=r"(timed out|unreachable|refused)") as failed:  # noqa: SIM117
        with client.open("http://photos.example.org/secret"):
            pass

    # The connection went to the checked address, given as such, and to no name.
    assert not isinstance(failed.value, RefusedAddressError)
    assert looked_up == ["photos.example.org", "203.0.113.9"]
    assert site.asked == []


def names_of(*addresses):
    def found(host, port, *args, **kwargs):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (own, port)) for own in addresses]

    return found


@pytest.mark.parametrize(
    "target",
    ["http://localhost/x", "http://192.168.0.1/x", "file:///etc/passwd", "http://printer/x"],
)
def test_a_redirect_to_a_local_address_is_refused(site, target):
    site.redirect("/photo.jpg", target)

    with pytest.raises(RefusedAddressError), site.client().open(site.url("/photo.jpg")):
        pass

    assert site.paths() == ["/photo.jpg"]


def test_a_server_of_this_machine_is_refused_without_the_rule_of_tests(site):
    with pytest.raises(RefusedAddressError), Client().open(site.url("/photo.jpg")):
        pass

    assert site.asked == []


def test_redirects_are_followed_and_the_last_address_is_told(site):
    site.redirect("/a", "/b?x=1")
    site.redirect("/b?x=1", site.url("/c"))
    site.serve("/c", b"here")

    with site.client().open(site.url("/a")) as answer:
        assert (answer.url, answer.content) == (site.url("/c"), b"here")


def test_redirects_in_a_circle_end(site):
    site.redirect("/a", "/a")

    with (
        pytest.raises(Exception, match="more than 8 redirects"),
        site.client().open(site.url("/a")),
    ):
        pass


def test_no_password_and_no_cookie_goes_to_a_server(site, tmp_path, monkeypatch):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    site.serve("/a", b"x", Set_Cookie="id=1")
    client = site.client()

    for _ in range(2):
        with client.open(site.url("/a")):
            pass

    assert all({"Authorization", "Cookie"}.isdisjoint(request.headers) for request in site.asked)


def test_behind_a_proxy_names_are_looked_up_there_and_checked_here(monkeypatch, site):
    """On a cluster, a name may be known to the proxy alone."""
    monkeypatch.setenv("HTTP_PROXY", site.url(""))
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    site.serve("http://photos.example.invalid/1.jpg", b"here")

    with Client().open("http://photos.example.invalid/1.jpg") as answer:
        assert answer.content == b"here"
    with pytest.raises(RefusedAddressError), Client().open("http://intranet/1.jpg"):
        pass
    monkeypatch.setattr(socket, "getaddrinfo", names_of("10.0.0.7"))
    with pytest.raises(RefusedAddressError), Client().open("http://own.example.org/1.jpg"):
        pass
