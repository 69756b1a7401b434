"""Answer a sample of a run's questions in the plain form and in ours, and write both speeds."""

from vlmfair.bench.full_size_speed import measure_speed, sample_questions
from vlmfair.contracts import REQUESTS, read_table
from vlmfair.inference.label_sets import load_label_sets
from vlmfair.logs import rule_log
from vlmfair.models.registry import load_registry
from vlmfair.provenance import write_json

with rule_log(snakemake.log[0]):
    questions = sample_questions(
        read_table(snakemake.input.requests, REQUESTS), snakemake.params.sample
    )
    speed = measure_speed(
        questions,
        load_registry(snakemake.params.models_file)[snakemake.wildcards.model],
        load_label_sets(snakemake.input.prompts),
        snakemake.params.temperatures,
        batch_size=snakemake.params.batch_size,
    )
    write_json(snakemake.output[0], speed)
