"""Read one model's answers with one judge: what each answers, and whether that is right."""

from vlmfair.contracts import JUDGEMENTS, REQUESTS, RESPONSES, read_table, write_table
from vlmfair.logs import rule_log
from vlmfair.papers.lvlm_fairness.judge import judge_responses
from vlmfair.papers.lvlm_fairness.judges import open_judge
from vlmfair.papers.lvlm_fairness.questions import load_classes, load_prompts

with rule_log(snakemake.log[0]):
    prompts = load_prompts(snakemake.input.prompts, load_classes(snakemake.input.classes))
    encoder, _ = snakemake.params.encoder
    judge = open_judge(snakemake.wildcards.judge, prompts, dict(encoder))
    files = (snakemake.input.requests, snakemake.input.responses, snakemake.output.judgements)
    for requests, responses, judgements in zip(*files, strict=True):
        judged = judge_responses(
            read_table(requests, REQUESTS),
            read_table(responses, RESPONSES),
            judge=judge,
            prompts=prompts,
        )
        write_table(judgements, judged, JUDGEMENTS)
