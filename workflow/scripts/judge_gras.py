"""Turn one model's label logits into P(Yes)."""

from vlmfair.contracts import JUDGEMENTS, REQUESTS, RESPONSES, read_table, write_table
from vlmfair.logs import rule_log
from vlmfair.models.registry import load_registry
from vlmfair.papers.gras.judge import judge_responses
from vlmfair.papers.gras.questions import load_prompts

with rule_log(snakemake.log[0]):
    prompts = load_prompts(snakemake.input.prompts)
    entry = load_registry(snakemake.params.models_file)[snakemake.wildcards.model]
    judgements = judge_responses(
        read_table(snakemake.input.requests, REQUESTS),
        read_table(snakemake.input.responses, RESPONSES),
        prompts.labels,
        snakemake.params.temperatures,
        yes_form=entry.yes_form or prompts.yes_forms[0],
        yes_forms=prompts.yes_forms,
    )
    write_table(snakemake.output.judgements, judgements, JUDGEMENTS)
