"""Made-up tables of drawn images, for tests of VL-BICLE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pyarrow as pa

from vlmfair.contracts import conform
from vlmfair.papers.vl_bicle.items import Items
from vlmfair.provenance import sha256_of_text
from vlmfair.synthesis.table import DRAWN


def drawn(own: Items, source: str, failed: Mapping[str, str] | None = None) -> pa.Table:
    """A table of drawn images; `failed` are statuses by sample id."""
    rows = []
    for item in own.pool:
        status = (failed or {}).get(item.sample_id, "ok")
        image = f"{source}/{item.sample_id}.png" if status == "ok" else None
        row = {
            "sample_id": item.sample_id,
            "gender": item.gender,
            "prompt": item.answer,
            "seed": 1,
            "generator": source,
            "truncated": item.sample_id.endswith("0"),
            "status": status,
            "image": image,
            "image_sha256": None if image is None else sha256_of_text(image),
        }
        rows.append(row)
    return conform(pa.Table.from_pylist(rows), DRAWN)


def both(own: Items, **failed: Mapping[str, str]) -> dict[str, pa.Table]:
    return {source: drawn(own, source, failed.get(source)) for source in ("flux", "sd35l")}


def pick(metrics: pa.Table, metric: str, **keys: Any) -> pd.Series:
    found = metrics.to_pandas()
    for name, value in {"metric": metric, **keys}.items():
        found = found[found[name] == value]
    assert len(found) == 1, f"{metric} {keys}: {len(found)} rows"
    return found.iloc[0]
