"""Plan every question of GRAS to one model."""

from vlmfair.contracts import REQUESTS, SAMPLES, read_table, write_table
from vlmfair.logs import rule_log
from vlmfair.models.registry import load_registry
from vlmfair.papers.gras.plan import plan_requests
from vlmfair.papers.gras.questions import load_prompts, load_traits, select_traits

with rule_log(snakemake.log[0]):
    prompts = load_prompts(snakemake.input.prompts)
    requests = plan_requests(
        read_table(snakemake.input.images, SAMPLES),
        select_traits(load_traits(snakemake.input.traits), snakemake.params.traits),
        prompts,
        load_registry(snakemake.params.models_file)[snakemake.wildcards.model],
        snakemake.params.style,
        snakemake.params.images_per_shard,
    )
    write_table(
        snakemake.output.requests,
        requests,
        REQUESTS,
        manifest={"prompts": prompts.digest(), "prompt_style": snakemake.params.style},
    )
