"""Plan the captions of demonstrations that images are drawn from."""

from vlmfair.contracts import SAMPLES, read_table, write_table
from vlmfair.logs import rule_log
from vlmfair.papers.vl_bicle.items import load_wording, read_items
from vlmfair.papers.vl_bicle.synthetic_items import plan_prompts
from vlmfair.papers.vl_bicle.tasks import task_named
from vlmfair.synthesis.table import PROMPTS

with rule_log(snakemake.log[0]):
    inputs, params = snakemake.input, snakemake.params
    wording = load_wording(inputs.prompts, inputs.words, params.word_list)
    items = read_items(read_table(inputs.samples, SAMPLES), task_named("coco_bias"), wording)
    prompts = plan_prompts(items, seed=params.seed, shards=params.shards)
    write_table(snakemake.output.prompts, prompts, PROMPTS, manifest={"seed": params.seed})
