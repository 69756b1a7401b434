"""A web client that follows redirects one by one and connects to no address that is refused."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.cookiejar import DefaultCookiePolicy
from typing import Any
from urllib.parse import urljoin

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ReadTimeoutError,
)

from vlmfair import __version__
from vlmfair.errors import RetrievalError
from vlmfair.retrieval.addresses import PORTS, PUBLIC, AddressRule, check_address, resolve

MAX_REDIRECTS = 8
REDIRECTS = (301, 302, 303, 307, 308)
# Seconds until a connection stands, and between two pieces of an answer.
CONNECT_TIMEOUT, READ_TIMEOUT = 15.0, 60.0
HEADERS = {
    "User-Agent": f"vlmfair/{__version__} (research on fairness; reads each file once)",
    # The bytes as they lie on the server, so that sizes and ranges mean the same here and there.
    "Accept-Encoding": "identity",
}


class Client:
    """Opens addresses; safe to use from several threads.

    `rule` says which addresses may be asked. Where the environment names a proxy, it is the proxy
    that looks up names; what can be looked up here is checked all the same.
    """

    def __init__(
        self,
        rule: AddressRule = PUBLIC,
        *,
        connect_timeout: float = CONNECT_TIMEOUT,
        read_timeout: float = READ_TIMEOUT,
    ) -> None:
        self.rule = rule
        self._timeout = (connect_timeout, read_timeout)
        self._session = requests.Session()
        self._session.headers.update(HEADERS)
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        # Without it, passwords of ~/.netrc would go to whatever server has an entry there.
        self._session.auth = _no_password
        adapter = _GuardedAdapter(rule)
        self._session.mount("http://", adapter)
        self._session.mount("https://", adapter)

    @contextmanager
    def open(self, url: str, headers: Mapping[str, str] | None = None) -> Iterator[Any]:
        """Yield the answer (a `requests.Response`, not yet read) behind all redirects.

        Its `url` is the last address. Raises RefusedAddressError on the way, RetrievalError on too
        many redirects, and what `requests` raises when a server cannot be reached.
        """
        for _ in range(MAX_REDIRECTS + 1):
            self._check(url)
            answer = self._session.get(
                url,
                headers=dict(headers or {}),
                timeout=self._timeout,
                allow_redirects=False,
                stream=True,
            )
            target = answer.headers.get("Location")
            if answer.status_code not in REDIRECTS or not target:
                with answer:
                    yield answer
                return
            answer.close()
            # Servers send the bytes of a name as they are; requests has read them as Latin-1.
            url = urljoin(url, requests.utils.requote_uri(target))
        raise RetrievalError(
            f"{url[:200]}: there are more than {MAX_REDIRECTS} redirects. Fetch the file by hand."
        )

    def _check(self, url: str) -> None:
        parts = check_address(url, self.rule)
        if requests.utils.get_environ_proxies(url).get(parts.scheme):
            try:
                resolve(parts.hostname or "", parts.port or PORTS[parts.scheme], self.rule)
            except OSError:
                return


def pieces(answer: Any, size: int) -> Iterator[bytes]:
    """Yield the bytes of an answer as they come, `size` at most at a time.

    A break loses nothing that has come. Raises `requests.Timeout` and `requests.ConnectionError`.
    """
    try:
        while piece := answer.raw.read1(size):
            yield piece
    except (ReadTimeoutError, TimeoutError) as error:
        raise requests.Timeout(f"nothing came any more: {error}") from error
    except (HTTPError, OSError) as error:
        raise requests.ConnectionError(f"the connection broke off: {error}") from error


def _no_password(request: Any) -> Any:
    return request


class _GuardedAdapter(HTTPAdapter):
    """Makes connections whose server's IP address has been checked."""

    def __init__(self, rule: AddressRule) -> None:
        self._rule = rule
        super().__init__(pool_connections=32, pool_maxsize=32)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        manager: PoolManager = self.poolmanager
        manager.pool_classes_by_scheme = _guarded_pools(self._rule)


def _guarded_pools(rule: AddressRule) -> dict[str, Any]:
    """Return urllib3's pools for both schemes, with connections that `rule` allows."""

    class Plain(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return _connected(self, super()._new_conn, rule)

    class Encrypted(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return _connected(self, super()._new_conn, rule)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class EncryptedPool(HTTPSConnectionPool):
        ConnectionCls = Encrypted

    return {"http": PlainPool, "https": EncryptedPool}


def _connected(
    connection: Any, connect: Callable[[], socket.socket], rule: AddressRule
) -> socket.socket:
    """Connect to an address of the server that has been looked up and checked, and to no other.

    A name is looked up once: asked again, it could lead to another place than the checked one.
    """
    name = connection._dns_host
    try:
        addresses = resolve(name, connection.port, rule)
    except socket.gaierror as error:
        raise NameResolutionError(name, connection, error) from error
    try:
        for address in addresses[:-1]:
            connection._dns_host = address
            try:
                return connect()
            except (NewConnectionError, ConnectTimeoutError):
                continue
        connection._dns_host = addresses[-1]
        return connect()
    finally:
        connection._dns_host = name
