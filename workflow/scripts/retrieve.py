"""Show what was downloaded and what has to be fetched by hand; one dataset alone stops at that."""

import json
from pathlib import Path

from vlmfair.logs import rule_log
from vlmfair.retrieval.parts import require_nothing_by_hand
from vlmfair.retrieval.summary import summarise

reports = [json.loads(Path(path).read_text()) for path in snakemake.input if path.endswith("json")]
photographs = [path for path in snakemake.input if path.endswith("csv")]
sources = [(name, json.loads(entry), Path(raw)) for name, entry, raw in snakemake.params.sources]
# Where it stops at what is gated, the error has the sentence.
gated = [] if snakemake.params.stop else sources
print(summarise(reports, gated, photographs), flush=True)

with rule_log(snakemake.log[0]):
    for name, entry, raw in sources if snakemake.params.stop else []:
        require_nothing_by_hand(name, entry, raw)
