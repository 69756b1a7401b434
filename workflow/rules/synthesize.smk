"""Captions of demonstrations -> drawn images, shard by shard, through the store of images."""


rule plan_synthesis:
    input:
        **BICLE_WORDING,
        samples="<suite>/samples/coco_bias/samples.parquet",
    output:
        prompts="<suite>/vl_bicle/synthesis/prompts.parquet",
        manifest="<suite>/vl_bicle/synthesis/prompts.manifest.json",
    log:
        "<logs>/plan_synthesis.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("plan_synthesis"),
        word_list=lookup("vl_bicle/words", within=config),
        seed=lookup("vl_bicle/synthesis/seed", within=config),
        shards=drawing_shard_count(),
    message:
        "Planning which captions of COCOBias are drawn"
    script:
        "../scripts/plan_synthesis.py"


rule synthesize:
    input:
        prompts="<suite>/vl_bicle/synthesis/prompts.parquet",
    output:
        drawn="<suite>/vl_bicle/synthesis/{generator}/shards/{shard}.parquet",
        manifest="<suite>/vl_bicle/synthesis/{generator}/shards/{shard}.manifest.json",
    log:
        "<logs>/synthesize/{generator}/{shard}.log",
    benchmark:
        "<benchmarks>/synthesize/{generator}/{shard}.tsv"
    conda:
        "../../envs/synthesis.yaml"
    threads: config["vl_bicle"]["synthesis"]["threads"]
    resources:
        mem_mb=growing(config["vl_bicle"]["synthesis"]["mem_mb"]),
        runtime=growing(config["vl_bicle"]["synthesis"]["runtime"]),
        gpu=gpus_for_drawing,
    params:
        code=code("synthesize"),
        generator=generator_settings,
        device=lookup("inference/device", within=config),
        store=lookup("vl_bicle/synthesis/store", within=config),
        tolerated=lookup("vl_bicle/synthesis/tolerated_problems", within=config),
    message:
        "Drawing captions with {wildcards.generator}, shard {wildcards.shard}"
    script:
        "../scripts/synthesize.py"


rule gather_synthesis:
    input:
        prompts="<suite>/vl_bicle/synthesis/prompts.parquet",
        shards=drawn_shards,
    output:
        drawn="<suite>/vl_bicle/synthesis/{generator}/images.parquet",
        manifest="<suite>/vl_bicle/synthesis/{generator}/images.manifest.json",
        images=directory("<suite>/vl_bicle/synthesis/{generator}/images"),
    log:
        "<logs>/gather_synthesis/{generator}.log",
    benchmark:
        "<benchmarks>/gather_synthesis/{generator}.tsv"
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("gather_synthesis"),
        tolerated=lookup("vl_bicle/synthesis/tolerated_problems", within=config),
    message:
        "Gathering the images of {wildcards.generator}: each caption once, none missing"
    script:
        "../scripts/gather_synthesis.py"


rule measure_synthesis:
    input:
        **BICLE_WORDING,
        counterparts="<resources>/words/gender_counterparts.yaml",
        samples="<suite>/samples/coco_bias/samples.parquet",
        raw=drawn_raw_folders("coco_bias"),
        drawn=drawn_files("images.parquet"),
        images=drawn_files("images"),
    output:
        metrics="<suite>/vl_bicle/metrics/synthesis.parquet",
        manifest="<suite>/vl_bicle/metrics/synthesis.manifest.json",
    log:
        "<logs>/measure_synthesis.log",
    benchmark:
        "<benchmarks>/measure_synthesis.tsv"
    conda:
        "../../envs/inference.yaml"
    threads: config["inference"]["threads"]
    resources:
        mem_mb=growing(config["inference"]["mem_mb"]),
        runtime=growing(60),
    params:
        code=code("measure_synthesis"),
        word_list=lookup("vl_bicle/words", within=config),
        encoder=clip_of_run(),
        reader=f"clip:{clip_backbone()}",
        sources=tuple(GENERATORS),
        bootstraps=lookup("vl_bicle/bootstraps", within=config),
        seed=lookup("vl_bicle/seed", within=config),
    message:
        "Measuring how well drawn images fit their captions"
    script:
        "../scripts/measure_synthesis.py"


ruleorder: measure_synthesis > measure_vl_bicle
