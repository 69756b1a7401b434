"""Read one raw dataset: samples, and the records that were left out with the reason."""

from pathlib import Path

from vlmfair.contracts import PROBLEMS, SAMPLES, write_table
from vlmfair.datasets import funnel_of, parse_dataset
from vlmfair.datasets.funnel import SCHEMA, write_funnel
from vlmfair.datasets.label_files import read_paths
from vlmfair.errors import RawDataError
from vlmfair.logs import rule_log

with rule_log(snakemake.log[0]):
    dataset, raw = snakemake.wildcards.dataset, Path(snakemake.params.raw)
    if not raw.is_dir():
        raise RawDataError(f"{raw}: the raw folder is missing. {snakemake.params.how_to_get}")
    options = dict(snakemake.params.options)
    # Opening and hashing the listed images is enough; the whole of AI-Face has 1.6 million.
    listed = snakemake.params.only
    advice = snakemake.params.how_to_get_list
    only = read_paths(Path(listed), fetch=advice) if listed else None
    parsed = parse_dataset(dataset, raw, only=only, threads=snakemake.threads, options=options)
    manifest = {"raw": str(raw), "restricted": only is not None, **options}
    # Without filters there is no funnel, only its header.
    write_funnel(snakemake.output.funnel, funnel_of(dataset, parsed) or SCHEMA.empty_table())
    write_table(snakemake.output.problems, parsed.problems, PROBLEMS, manifest=manifest)
    write_table(snakemake.output.samples, parsed.samples, SAMPLES, manifest=manifest)
