"""Join the shards of one model: each question answered, none missing, none twice."""

import json

import pyarrow as pa

from vlmfair.contracts import (
    REQUESTS,
    RESPONSES,
    assert_same_ids,
    manifest_path,
    read_table,
    write_table,
)
from vlmfair.logs import rule_log

with rule_log(snakemake.log[0]):
    requests = read_table(snakemake.input.requests, REQUESTS, columns=["request_id"])
    shards = [read_table(path, RESPONSES) for path in snakemake.input.shards]
    responses = pa.concat_tables(shards)
    assert_same_ids(
        requests["request_id"].to_pylist(),
        responses["request_id"].to_pylist(),
        f"responses of {snakemake.wildcards.model}",
    )
    manifests = [
        json.loads(manifest_path(path).read_text(encoding="utf-8"))
        for path in snakemake.input.shards
    ]
    write_table(snakemake.output.responses, responses, RESPONSES, manifest={"shards": manifests})
