"""Classify the images of FACET with CLIP or ViT, which are asked nothing."""

from vlmfair.contracts import JUDGEMENTS, SAMPLES, read_table, write_table
from vlmfair.logs import rule_log
from vlmfair.models.encoders import load_clip
from vlmfair.papers.lvlm_fairness.baselines import clip_zero_shot, vit_classifier
from vlmfair.papers.lvlm_fairness.questions import load_classes, load_prompts, load_wordnet

with rule_log(snakemake.log[0]):
    samples = read_table(snakemake.input.samples, SAMPLES)
    baseline = snakemake.wildcards.baseline
    encoder = dict(snakemake.params.encoder[0])
    if baseline == "clip":
        classes = load_classes(snakemake.input.classes)
        prompts = load_prompts(snakemake.input.prompts, classes)
        clip = load_clip(encoder["model"], encoder.get("weights"))
        judged = clip_zero_shot(samples, clip, prompts, classes, name=baseline)
    else:
        wordnet = load_wordnet(snakemake.input.wordnet)
        judged = vit_classifier(samples, encoder["path"], wordnet, name=baseline)
    write_table(snakemake.output.judgements, judged, JUDGEMENTS)
