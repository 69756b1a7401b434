"""Plan what a language model is asked for sub-questions, once for each occupation."""

from vlmfair.contracts import REQUESTS, write_table
from vlmfair.logs import rule_log
from vlmfair.papers.lvlm_fairness.questions import load_classes, load_prompts
from vlmfair.papers.lvlm_fairness.rationale import plan_generation

with rule_log(snakemake.log[0]):
    classes = load_classes(snakemake.input.classes)
    prompts = load_prompts(snakemake.input.prompts, classes)
    requests = plan_generation(
        classes.evaluated,
        prompts,
        prompt=snakemake.params.prompt,
        max_new_tokens=snakemake.params.max_new_tokens,
    )
    write_table(
        snakemake.output.requests, requests, REQUESTS, manifest={"prompts": prompts.digest()}
    )
