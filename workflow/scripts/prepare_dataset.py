"""Read one raw dataset: samples, and the records that were left out with the reason."""

from pathlib import Path

from vlmfair.contracts import PROBLEMS, SAMPLES, write_table
from vlmfair.datasets import parse_dataset
from vlmfair.errors import RawDataError
from vlmfair.logs import rule_log
from vlmfair.papers.gras.artefacts import LIST_FILES
from vlmfair.papers.gras.selection import read_selection_list

with rule_log(snakemake.log[0]):
    dataset = snakemake.wildcards.dataset
    raw = Path(snakemake.params.raw)
    if not raw.is_dir():
        raise RawDataError(f"{raw}: the raw folder is missing. {snakemake.params.how_to_get}")
    only = None
    if snakemake.params.selection == "published":
        # Opening and hashing the listed images is enough; the whole of AI-Face has 1.6 million.
        listed = read_selection_list(Path(snakemake.params.lists) / LIST_FILES[dataset], dataset)
        only = [name.removeprefix(f"{dataset}/") for name in listed["sample_id"]]
    parsed = parse_dataset(dataset, raw, only=only, threads=snakemake.threads)
    manifest = {"raw": str(raw), "restricted": only is not None}
    write_table(snakemake.output.problems, parsed.problems, PROBLEMS, manifest=manifest)
    write_table(snakemake.output.samples, parsed.samples, SAMPLES, manifest=manifest)
