"""Plan every question of GRAS to one model."""

from vlmfair.contracts import REQUESTS, SAMPLES, read_table, write_table
from vlmfair.errors import ConfigError
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
    planned = int(requests["shard"].to_numpy().max()) + 1
    if planned > snakemake.params.shards:
        raise ConfigError(
            f"the image set needs {planned} shards, and gras.per_cell and gras.per_tone announce "
            f"images for {snakemake.params.shards}. Correct these two to what the lists have."
        )
    write_table(
        snakemake.output.requests,
        requests,
        REQUESTS,
        manifest={"prompts": prompts.digest(), "prompt_style": snakemake.params.style},
    )
