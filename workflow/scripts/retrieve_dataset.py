"""Download what may be downloaded of one dataset, and put it into its raw folder."""

import json
from pathlib import Path

from vlmfair.logs import rule_log
from vlmfair.provenance import write_json
from vlmfair.retrieval.client import Client
from vlmfair.retrieval.dataset import Folders, retrieve

with rule_log(snakemake.log[0]):
    source = snakemake.wildcards.source
    folders = Folders(Path(snakemake.params.raw), Path(snakemake.params.downloads) / source)
    report = retrieve(source, json.loads(snakemake.params.entry), folders, Client())
    write_json(snakemake.output[0], report)
