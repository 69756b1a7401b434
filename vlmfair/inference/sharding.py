"""How much work one inference job gets. Standard library only: the Snakefile imports it."""

from __future__ import annotations

from vlmfair.errors import ConfigError


def shard_count(number_of_images: int, images_per_shard: int) -> int:
    """Return the number of shards, from the amount of work alone.

    Raises ConfigError when `images_per_shard` is not a positive number.
    """
    if images_per_shard < 1:
        raise ConfigError(
            f"images_per_shard is {images_per_shard}. Write the number of images of one inference "
            f"job, at least 1."
        )
    return -(-number_of_images // images_per_shard)
