"""The number of shards follows from the amount of work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from vlmfair.errors import ConfigError
from vlmfair.inference.sharding import shard_count


@pytest.mark.parametrize(
    ("images", "per_shard", "shards"),
    [(0, 50, 0), (1, 50, 1), (50, 50, 1), (51, 50, 2), (5010, 50, 101)],
)
def test_every_image_has_a_shard_and_no_shard_is_empty(
    images: int, per_shard: int, shards: int
) -> None:
    assert shard_count(images, per_shard) == shards


def test_a_shard_needs_an_image() -> None:
    with pytest.raises(ConfigError, match=r"images_per_shard is 0. Write the number of images"):
        shard_count(10, 0)


def test_the_snakefile_can_import_it_without_heavy_libraries(root: Path) -> None:
    code = (
        "import sys; import vlmfair.inference.sharding; "
        "print([name for name in ('torch', 'numpy', 'pyarrow', 'yaml') if name in sys.modules])"
    )

    found = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )

    assert found.stdout.strip() == "[]"
