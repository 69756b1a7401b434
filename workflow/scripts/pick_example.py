"""Pick the image that the worked example of one model tells of."""

import json
from pathlib import Path

from vlmfair.contracts import JUDGEMENTS, REQUESTS, RESPONSES, read_table
from vlmfair.logs import rule_log
from vlmfair.papers.lvlm_fairness.examples import worked_example
from vlmfair.papers.lvlm_fairness.questions import load_classes, load_prompts
from vlmfair.provenance import write_json

with rule_log(snakemake.log[0]):
    files, params = snakemake.input, snakemake.params

    def by_experiment(names, paths, contract):
        """Read one table for each experiment."""
        return {name: read_table(path, contract) for name, path in zip(names, paths, strict=True)}

    example = worked_example(
        by_experiment(params.experiments, files.requests, REQUESTS),
        by_experiment(params.experiments, files.responses, RESPONSES),
        by_experiment(params.judged, files.judgements, JUDGEMENTS),
        load_prompts(files.prompts, load_classes(files.classes)),
        json.loads(Path(files.sub_questions).read_text(encoding="utf-8")),
        model=snakemake.wildcards.model,
        prompt=params.prompt,
    )
    write_json(snakemake.output[0], example)
