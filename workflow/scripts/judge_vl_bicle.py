"""Judge one model's answers in one task: pronouns, captions, or visual questions."""

from vlmfair.contracts import JUDGEMENTS, REQUESTS, RESPONSES, SAMPLES, read_table, write_table
from vlmfair.logs import rule_log
from vlmfair.models.encoders import load_clip
from vlmfair.papers.vl_bicle.items import load_wording, read_items
from vlmfair.papers.vl_bicle.judge import judge_captions, judge_pronouns
from vlmfair.papers.vl_bicle.judge_answers import judge_answers
from vlmfair.papers.vl_bicle.tasks import CAPTIONING, PRONOUN, task_named
from vlmfair.papers.vl_bicle.verdicts import read_verdicts
from vlmfair.text.captions import bleu_signature

with rule_log(snakemake.log[0]):
    inputs, params = snakemake.input, snakemake.params
    task = task_named(snakemake.wildcards.experiment)
    answers = (read_table(inputs.requests, REQUESTS), read_table(inputs.responses, RESPONSES))
    manifest = {"task": task.name}
    if task.experiment == PRONOUN:
        judged = judge_pronouns(*answers, temperatures=params.temperatures)
    elif task.experiment == CAPTIONING:
        samples = read_table(inputs.samples, SAMPLES)
        wording = load_wording(inputs.prompts, inputs.words, params.word_list)
        encoder = dict(params.encoder[0])
        captions = zip(samples["sample_id"].to_pylist(), samples["captions"].to_pylist())
        references = {sample: own or [] for sample, own in captions}
        judged = judge_captions(
            *answers,
            references,
            wording.words,
            items=read_items(samples, task, wording),
            encoder=load_clip(encoder["model"], encoder.get("weights")),
        )
        manifest |= {
            "words": wording.words.name,
            "bleu": bleu_signature(references.values()),
            "clipscore": encoder,
        }
    else:
        verdicts = None
        if inputs.get("verdicts"):
            asked = read_table(inputs.asked, REQUESTS)
            verdicts = read_verdicts(asked, read_table(inputs.verdicts, RESPONSES))
        judged = judge_answers(*answers, verdicts=verdicts)
        manifest["judge"] = "lexical" if verdicts is None else "llm"
    write_table(snakemake.output.judgements, judged, JUDGEMENTS, manifest=manifest)
