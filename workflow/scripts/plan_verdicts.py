"""Plan what the language model that judges visual questions is asked."""

from vlmfair.contracts import REQUESTS, RESPONSES, read_table, write_table
from vlmfair.inference.queries import CONTEXTS
from vlmfair.logs import rule_log
from vlmfair.papers.vl_bicle.questions import load_prompts
from vlmfair.papers.vl_bicle.verdicts import plan_verdicts

with rule_log(snakemake.log[0]):
    prompts = load_prompts(snakemake.input.prompts)
    files = zip(snakemake.input.requests, snakemake.input.responses, strict=True)
    answers = ((read_table(asked, REQUESTS), read_table(said, RESPONSES)) for asked, said in files)
    requests, contexts = plan_verdicts(
        answers,
        prompts,
        shards=snakemake.params.shards,
        max_new_tokens=snakemake.params.max_new_tokens,
    )
    write_table(snakemake.output.contexts, contexts, CONTEXTS)
    manifest = {"prompts": prompts.digest(), "pairs": len(requests)}
    write_table(snakemake.output.requests, requests, REQUESTS, manifest=manifest)
