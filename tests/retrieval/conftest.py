"""The web site that the tests of downloads ask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from web_site import Site, running_site


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as served:
        yield served
