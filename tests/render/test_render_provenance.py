"""The report tells which weights and which software made its numbers."""

from __future__ import annotations

from vlmfair.render.provenance import provenance_of

SHARD = {
    "model": "llava",
    "model_digest": "ab12",
    "dtype": "float32",
    "attention": "sdpa",
    "inference_modes": {"plain": 80},
}
SERVED = {
    **SHARD,
    "model": "gpt",
    "inference_modes": {"api": 5},
    "server": {"model": "gpt-4o-2024-11-20", "base_url": "https://api.example.org/v1"},
}


def test_provenance_names_software_and_weights():
    shown = provenance_of([{"shards": [SHARD, SHARD], "rows": 160}])

    assert shown["Models"] == {
        "llava": "content ab12, float32, sdpa attention, inference plain, 160 answers"
    }
    assert {"vlmfair", "Python", "numpy"} <= set(shown["Software"])


def test_answers_of_several_papers_are_added_up():
    packed = {**SHARD, "inference_modes": {"packed": 40}}
    manifests = [{"shards": [SHARD], "rows": 80}, {"shards": [packed], "rows": 1040}]

    assert provenance_of(manifests)["Models"]["llava"] == (
        "content ab12, float32, sdpa attention, inference packed, plain, 1,120 answers"
    )


def test_other_weights_under_the_same_name_are_told():
    other = {**SHARD, "model_digest": "cd34"}

    shown = provenance_of([{"shards": [SHARD, other], "rows": 160}])["Models"]["llava"]

    assert "content ab12" in shown
    assert "content cd34" in shown


def test_a_model_behind_a_server_has_an_address_instead_of_weights():
    shown = provenance_of([{"shards": [SERVED], "rows": 5}])["Models"]["gpt"]

    assert shown == "gpt-4o-2024-11-20 at https://api.example.org/v1, inference api, 5 answers"
