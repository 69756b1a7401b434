"""Estimate requests, tokens, operations, hours, money and disk of a run."""

from pathlib import Path

from vlmfair.contracts import SAMPLES, read_table
from vlmfair.cost.counts import asked_by
from vlmfair.cost.drawing import drawing_estimates, load_denoisers
from vlmfair.cost.estimate import Card
from vlmfair.cost.plan import estimates_of, load_resources, notes_on, plan_parts
from vlmfair.cost.table import as_frame, as_table, write_plan
from vlmfair.logs import rule_log
from vlmfair.models.components import load_components
from vlmfair.models.registry import load_registry

with rule_log(snakemake.log[0]):
    config, params = snakemake.config, snakemake.params
    resources = load_resources(Path(snakemake.input.assumptions).parent.parent)
    samples = {name: read_table(path, SAMPLES) for name, path in params.samples}
    asked = asked_by(config, resources, *map(dict, params.announced), samples)
    parts = plan_parts(config, load_registry(params.models_file), resources, asked)
    cost = config["cost"]
    card = Card(cost["card"], cost["peak_tflops"], cost["bandwidth_gb_s"], cost["utilisation"])
    jobs = {(paper, model): number for paper, model, number in params.jobs}
    estimates = estimates_of(parts, card, resources, jobs)
    announced, drawing_jobs = params.drawings
    counted = asked.vl_bicle["coco_bias"].pool if "coco_bias" in asked.vl_bicle else None
    estimates += drawing_estimates(
        config["vl_bicle"]["synthesis"]["generators"],
        load_components(params.models_file),
        load_denoisers(snakemake.input.architectures),
        announced if counted is None else counted,
        card,
        drawing_jobs,
        announced=counted is None,
    )
    money_cap = config["inference"]["money_cap"]
    notes = notes_on(parts, estimates, card, resources, money_cap)
    frame = as_frame(estimates)
    write_plan(as_table(frame, card, notes), Path(snakemake.output.table).with_suffix(""))
