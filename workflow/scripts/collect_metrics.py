"""Put the metrics of all models into one table."""

import pyarrow as pa

from vlmfair.contracts import METRICS, read_table, write_table
from vlmfair.logs import rule_log

with rule_log(snakemake.log[0]):
    tables = [read_table(path, METRICS) for path in snakemake.input.models]
    write_table(snakemake.output.metrics, pa.concat_tables(tables), METRICS)
