"""Pool and queries: seeded, stratified, one picture on one side, whatever the order of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlmfair.contracts import SAMPLES, conform
from vlmfair.datasets.base import ProblemLog
from vlmfair.datasets.splits import (
    EXAMPLE,
    FIFTH_OF_EACH_GENDER,
    POOL,
    QUERIES,
    SplitRule,
    keep_balanced,
    split,
)
from vlmfair.errors import RawDataError

TWO_EACH = SplitRule(strata=("occupation", "gender"), count=2)


def table(rows: Sequence[dict[str, str | None]]) -> pa.Table:
    """SAMPLES of images that all differ, unless `image_sha256` says otherwise."""
    full = [
        {
            "dataset": "d",
            "image": f"{row['sample_id']}.jpg",
            "image_sha256": f"{number:064d}",
            "occupation": None,
            "split": None,
            "raw": "{}",
            **row,
        }
        for number, row in enumerate(rows)
    ]
    return conform(pa.Table.from_pylist(full), SAMPLES)


def people(women: int, men: int) -> list[dict[str, str | None]]:
    genders = ["Female"] * women + ["Male"] * men
    return [{"sample_id": f"d/{n}", "gender": gender} for n, gender in enumerate(genders)]


def sides(samples: pa.Table) -> dict[str, str]:
    return dict(zip(samples["sample_id"].to_pylist(), samples["split"].to_pylist(), strict=True))


def test_a_fifth_of_each_gender_is_the_pool_and_queries_are_at_parity() -> None:
    """VL-BICLE 0.A.2: 20 % of each gender, then the majority gender is down-sampled."""
    log = ProblemLog("d")
    divided = split(table(people(20, 50)), FIFTH_OF_EACH_GENDER, "0", log)
    found = Counter(zip(divided["split"].to_pylist(), divided["gender"].to_pylist(), strict=True))
    assert found == {
        (POOL, "Female"): 4,
        (POOL, "Male"): 10,
        (QUERIES, "Female"): 16,
        (QUERIES, "Male"): 16,
    }
    assert Counter(log.table()["reason"].to_pylist()) == {"down_sampled": 24}
    lost = set(log.table()["record"].to_pylist())
    assert lost | set(divided["sample_id"].to_pylist()) == {f"d/{n}" for n in range(70)}


@pytest.mark.parametrize(("records", "size"), [(2, 0), (3, 1), (7, 1), (8, 2), (371, 74)])
def test_a_fifth_is_rounded_to_the_nearest(records: int, size: int) -> None:
    assert FIFTH_OF_EACH_GENDER.pool_size(records) == size


def test_two_of_each_stratum_are_the_pool_and_nothing_is_left_out() -> None:
    rows = [
        {"sample_id": f"d/{o}{g}{n}", "gender": g, "occupation": o}
        for o in ("teacher", "baker")
        for g in ("Male", "Female")
        for n in range(5)
    ]
    log = ProblemLog("d")
    divided = split(table(rows), TWO_EACH, "0", log).to_pandas()
    pool = divided[divided["split"] == POOL]
    assert set(pool.groupby(["occupation", "gender"]).size()) == {2}
    assert (len(pool), len(divided), len(log.table())) == (8, 20, 0)


def test_a_stratum_of_fewer_images_is_the_pool_alone() -> None:
    rows = [{"sample_id": "d/1", "gender": "Male", "occupation": "baker"}]
    assert sides(split(table(rows), TWO_EACH, "0", ProblemLog("d"))) == {"d/1": POOL}


def test_the_seed_decides_and_neither_order_nor_a_missing_image_shuffles_the_others() -> None:
    rows = people(30, 30)
    one = sides(split(table(rows), FIFTH_OF_EACH_GENDER, "0", ProblemLog("d")))
    again = sides(split(table(rows[::-1]), FIFTH_OF_EACH_GENDER, "0", ProblemLog("d")))
    assert one == again
    other = sides(split(table(rows), FIFTH_OF_EACH_GENDER, "1", ProblemLog("d")))
    assert one != other
    query = next(name for name, side in one.items() if side == QUERIES)
    fewer = [row for row in rows if row["sample_id"] != query]
    without = sides(split(table(fewer), FIFTH_OF_EACH_GENDER, "0", ProblemLog("d")))
    assert {n for n, side in without.items() if side == POOL} == {
        n for n, side in one.items() if side == POOL
    }


def test_the_draw_is_the_same_on_every_machine() -> None:
    """As `printf 0/pool/d/0 | sha256sum` orders them: 0 before 1 to 4, and 5 before 6 to 9."""
    divided = split(table(people(5, 5)), FIFTH_OF_EACH_GENDER, "0", ProblemLog("d"))
    assert [name for name, side in sides(divided).items() if side == POOL] == ["d/0", "d/5"]


def test_a_query_with_the_picture_of_the_pool_is_left_out() -> None:
    rows = [
        {"sample_id": f"d/{n}", "gender": "Male", "occupation": "baker", "image_sha256": "f" * 64}
        for n in range(3)
    ]
    log = ProblemLog("d")
    divided = sides(split(table(rows), TWO_EACH, "0", log))
    assert set(divided.values()) == {POOL}
    problems = log.table().to_pylist()
    assert [row["reason"] for row in problems] == ["pool_image"]
    assert problems[0]["record"] not in divided


def test_repeated_pictures_are_the_pools_last() -> None:
    """Two rows of one photograph would cost a query; there are others to draw."""
    rows = [{"sample_id": f"d/{n}", "gender": "Male", "occupation": "baker"} for n in range(5)]
    for row in rows[:2]:
        row["image_sha256"] = "f" * 64
    log = ProblemLog("d")
    for seed in map(str, range(20)):
        divided = sides(split(table(rows), TWO_EACH, seed, log))
        assert (divided["d/0"], divided["d/1"]) == (QUERIES, QUERIES)
    assert len(log.table()) == 0


def test_pictures_are_the_same_over_others_and_by_any_of_the_columns() -> None:
    """1 and 2 have the same bytes, 2 and 3 the same address: all three are one photograph."""
    rows = [
        {"sample_id": f"d/{n}", "gender": "Male", "occupation": "baker", "image_sha256": sha * 64}
        for n, sha in ((1, "a"), (2, "a"), (3, "b"))
    ]
    rule = SplitRule(("occupation",), count=1, pictures=("image_sha256", "photograph"))
    samples = table(rows).append_column("photograph", pa.array(["x", "y", "y"]))
    log = ProblemLog("d")
    assert len(split(samples, rule, "0", log)) == 1
    assert log.table()["reason"].to_pylist() == ["pool_image", "pool_image"]


def test_an_example_keeps_its_side_and_is_not_counted() -> None:
    rows = [*people(5, 5), {"sample_id": "d/x", "gender": None, "split": EXAMPLE}]
    divided = split(table(rows), FIFTH_OF_EACH_GENDER, "0", ProblemLog("d"))
    assert sides(divided)["d/x"] == EXAMPLE
    assert len(divided) == 11
    alone = split(table(rows[-1:]), FIFTH_OF_EACH_GENDER, "0", ProblemLog("d"))
    assert len(alone) == 0


def test_one_gender_alone_cannot_be_balanced() -> None:
    with pytest.raises(RawDataError, match="no usable image of gender Female is left"):
        split(table(people(0, 9)), FIFTH_OF_EACH_GENDER, "0", ProblemLog("coco_bias"))


def test_balanced_ids_stay_in_their_order() -> None:
    kept = keep_balanced(["a", "b", "c", "d"], ["Male", "Male", "Female", "Male"], "0")
    assert "c" in kept
    assert kept == sorted(kept)
    assert len(kept) == 2
    assert keep_balanced([], [], "0") == []


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["Male", "Female"]), st.integers(0, 12)), min_size=2, max_size=40
    ),
    st.integers(0, 3),
)
def test_sides_never_share_a_picture_and_every_record_is_accounted_for(
    drawn: list[tuple[str, int]], seed: int
) -> None:
    rows = [
        {"sample_id": f"d/{n}", "gender": gender, "image_sha256": f"{picture:064d}"}
        for n, (gender, picture) in enumerate(drawn)
    ]
    log = ProblemLog("d")
    try:
        divided = split(table(rows), FIFTH_OF_EACH_GENDER, str(seed), log)
    except RawDataError:
        return
    by_side: dict[str, set[str]] = {POOL: set(), QUERIES: set()}
    genders: Counter[str] = Counter()
    for row in divided.to_pylist():
        by_side[row["split"]].add(row["image_sha256"])
        genders[row["gender"]] += row["split"] == QUERIES
    assert not by_side[POOL] & by_side[QUERIES]
    assert genders["Male"] == genders["Female"] > 0
    assert len(divided) + len(log.table()) == len(rows)
