"""Train the demo's two text-to-image pipelines."""

from pathlib import Path

from vlmfair.demo.diffusion_train import train_demo_pipelines
from vlmfair.logs import rule_log

with rule_log(snakemake.log[0]):
    train_demo_pipelines(Path(snakemake.output.sd3).parent, threads=snakemake.threads)
