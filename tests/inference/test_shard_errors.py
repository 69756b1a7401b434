"""Failed answers are tolerated up to a share of the images, and stop the run beyond it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from vlmfair.errors import InferenceError
from vlmfair.inference.shard import check_errors

REQUESTS = pa.table({"sample_id": pa.array(["a", "a", "b", "b"]).dictionary_encode()})


def responses(*errors: str | None) -> pa.Table:
    return pa.table({"error": pa.array(errors, pa.string())})


def test_answers_without_errors_pass():
    check_errors(REQUESTS, responses(None, None, None, None), 0.0, "llava")


def test_a_share_of_images_may_fail():
    check_errors(REQUESTS, responses("gone", "gone", None, None), 0.5, "llava")


def test_more_than_that_says_how_many_and_what_to_do():
    with pytest.raises(
        InferenceError, match="llava: 1 of 2 images have failed answers .first: gone"
    ):
        check_errors(REQUESTS, responses(None, "gone", None, None), 0.05, "llava")
