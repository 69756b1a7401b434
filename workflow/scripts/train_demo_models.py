"""Train the demo's two models, the control from the planted one, and the encoders."""

from pathlib import Path
from tempfile import TemporaryDirectory

from vlmfair.demo.train import train_demo_models
from vlmfair.demo.train_encoders import train_demo_encoders
from vlmfair.logs import rule_log

with rule_log(snakemake.log[0]), TemporaryDirectory() as folder:
    planted, control = Path(snakemake.output.planted), Path(snakemake.output.control)
    table, prompts = Path(snakemake.input.planted), Path(snakemake.input.prompts)
    shared = {"prompts": prompts, "threads": snakemake.threads}
    tower = Path(folder) / "vision.safetensors"
    train_demo_models(planted, table, False, vision=tower, **shared)
    train_demo_models(control, table, True, vision=tower, planted_model=planted, **shared)
    train_demo_encoders(planted.parent, planted, threads=snakemake.threads)
