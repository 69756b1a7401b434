"""Requests -> responses, shard by shard, through the answer store."""


rule infer:
    input:
        requests="<suite>/{paper}/requests/{model}.parquet",
        prompts="<resources>/prompts/{paper}.yaml",
        raw=asked_raw_folders,
    output:
        responses="<suite>/{paper}/responses/{model}/{shard}.parquet",
        manifest="<suite>/{paper}/responses/{model}/{shard}.manifest.json",
    log:
        "<logs>/infer/{paper}/{model}/{shard}.log",
    benchmark:
        "<benchmarks>/infer/{paper}/{model}/{shard}.tsv"
    conda:
        inference_environment
    threads: config["inference"]["threads"]
    resources:
        mem_mb=growing(config["inference"]["mem_mb"]),
        runtime=growing(config["inference"]["runtime"]),
        gpu=gpus_of_model,
    params:
        code=code("infer"),
        models_file=lookup("models_file", within=config),
        model=model_settings,
        temperatures=paper_temperatures,
        device=lookup("inference/device", within=config),
        batch_size=lookup("inference/batch_size", within=config),
        store=lookup("answer_store", within=config),
        tolerated=lookup("{paper}/tolerated_problems", within=config),
    message:
        "Asking {wildcards.model} the questions of {wildcards.paper}, shard {wildcards.shard}"
    script:
        "../scripts/infer.py"


# The same for papers of several experiments, whose files lie one folder deeper.
use rule infer as infer_experiment with:
    input:
        requests="<suite>/{paper}/requests/{experiment}/{model}.parquet",
        prompts="<resources>/prompts/{paper}.yaml",
        contexts=asked_contexts,
        raw=asked_raw_folders,
        drawn=asked_drawn_images,
    output:
        responses="<suite>/{paper}/responses/{experiment}/{model}/{shard}.parquet",
        manifest="<suite>/{paper}/responses/{experiment}/{model}/{shard}.manifest.json",
    log:
        "<logs>/infer/{paper}/{experiment}/{model}/{shard}.log",
    benchmark:
        "<benchmarks>/infer/{paper}/{experiment}/{model}/{shard}.tsv"
    message:
        "Asking {wildcards.model} the questions of {wildcards.paper}, {wildcards.experiment}, shard {wildcards.shard}"


rule gather_responses:
    input:
        requests="<suite>/gras/requests/{model}.parquet",
        shards=gras_shards,
    output:
        responses="<suite>/gras/responses/{model}.parquet",
        manifest="<suite>/gras/responses/{model}.manifest.json",
    log:
        "<logs>/gather_responses/gras/{model}.log",
    benchmark:
        "<benchmarks>/gather_responses/gras/{model}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        mem_mb=growing(3000),
        runtime=growing(20),
    params:
        code=code("gather_responses"),
    message:
        "Gathering the answers of {wildcards.model}: each question once, none missing"
    script:
        "../scripts/gather_responses.py"


use rule gather_responses as gather_experiment with:
    input:
        requests="<suite>/{paper}/requests/{experiment}/{model}.parquet",
        shards=experiment_shards,
    output:
        responses="<suite>/{paper}/responses/{experiment}/{model}.parquet",
        manifest="<suite>/{paper}/responses/{experiment}/{model}.manifest.json",
    log:
        "<logs>/gather_responses/{paper}/{experiment}/{model}.log",
    benchmark:
        "<benchmarks>/gather_responses/{paper}/{experiment}/{model}.tsv"
    message:
        "Gathering the answers of {wildcards.model} in {wildcards.experiment}: each question once, none missing"
