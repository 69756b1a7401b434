"""Samples -> in-context demonstrations: drawn by gender, or retrieved by CLIP's features."""


rule draw_contexts:
    input:
        **BICLE_WORDING,
        samples=samples_of_task,
        drawn=drawn_image_tables,
    output:
        contexts="<suite>/vl_bicle/contexts/{experiment}/sampled.parquet",
        manifest="<suite>/vl_bicle/contexts/{experiment}/sampled.manifest.json",
    log:
        "<logs>/draw_contexts/{experiment}.log",
    benchmark:
        "<benchmarks>/draw_contexts/{experiment}.tsv"
    wildcard_constraints:
        experiment="|".join(BICLE_TASKS),
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("draw_contexts"),
        word_list=lookup("vl_bicle/words", within=config),
        sources=tuple(GENERATORS),
        settings=as_param(config["vl_bicle"]["synthesis"]["settings"]),
        shots=as_param(config["vl_bicle"]["shots"]),
        runs=lookup("vl_bicle/runs", within=config),
        seed=lookup("vl_bicle/seed", within=config),
    message:
        "Drawing the demonstrations of {wildcards.experiment}: RS, MS, FS, BS"
    script:
        "../scripts/draw_contexts.py"


# The same sequences of men and of women, with drawn images in place of photographs.
rule draw_synthetic_contexts:
    input:
        **BICLE_WORDING,
        samples=samples_of_task,
        drawn=drawn_image_tables,
    output:
        contexts="<suite>/vl_bicle/contexts/{experiment}/synthetic.parquet",
        manifest="<suite>/vl_bicle/contexts/{experiment}/synthetic.manifest.json",
    log:
        "<logs>/draw_synthetic_contexts/{experiment}.log",
    benchmark:
        "<benchmarks>/draw_synthetic_contexts/{experiment}.tsv"
    wildcard_constraints:
        experiment="|".join(BICLE_TASKS),
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("draw_synthetic_contexts"),
        word_list=lookup("vl_bicle/words", within=config),
        sources=tuple(GENERATORS),
        settings=as_param(config["vl_bicle"]["synthesis"]["settings"]),
        shots=as_param(config["vl_bicle"]["shots"]),
        runs=lookup("vl_bicle/runs", within=config),
        seed=lookup("vl_bicle/seed", within=config),
    message:
        "Drawing the demonstrations of {wildcards.experiment} with synthetic images"
    script:
        "../scripts/draw_synthetic_contexts.py"


rule retrieve_contexts:
    input:
        **BICLE_WORDING,
        samples=samples_of_task,
        raw=raw_folders_of_captions,
    output:
        contexts="<suite>/vl_bicle/contexts/{experiment}/retrieved.parquet",
        manifest="<suite>/vl_bicle/contexts/{experiment}/retrieved.manifest.json",
    log:
        "<logs>/retrieve_contexts/{experiment}.log",
    benchmark:
        "<benchmarks>/retrieve_contexts/{experiment}.tsv"
    wildcard_constraints:
        experiment="|".join(BICLE_TASKS),
    conda:
        "../../envs/inference.yaml"
    threads: config["inference"]["threads"]
    resources:
        mem_mb=growing(config["inference"]["mem_mb"]),
        runtime=growing(120),
    params:
        code=code("retrieve_contexts"),
        word_list=lookup("vl_bicle/words", within=config),
        encoder=clip_settings,
        settings=as_param(config["vl_bicle"]["retrieval"]),
        shots=as_param(config["vl_bicle"]["shots"]),
        seed=lookup("vl_bicle/seed", within=config),
    message:
        "Retrieving the demonstrations of {wildcards.experiment} by similarity"
    script:
        "../scripts/retrieve_contexts.py"
