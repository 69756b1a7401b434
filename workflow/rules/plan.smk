"""Samples -> the images of an experiment -> requests."""


rule select_gras_images:
    input:
        fairface="<suite>/samples/fairface/samples.parquet",
        fairface_problems="<suite>/samples/fairface/problems.parquet",
        ai_face="<suite>/samples/ai_face/samples.parquet",
        ai_face_problems="<suite>/samples/ai_face/problems.parquet",
        lists=selection_lists,
    output:
        images="<suite>/gras/images.parquet",
        images_manifest="<suite>/gras/images.manifest.json",
        problems="<suite>/gras/image_problems.parquet",
        problems_manifest="<suite>/gras/image_problems.manifest.json",
        statistics="<suite>/gras/selection.csv",
    log:
        "<logs>/select_gras_images.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("select_gras_images"),
        selection=lookup("gras/selection", within=config),
        lists=lookup("gras/selection_lists", within=config),
        sha256=as_param(config["gras"]["selection_sha256"]),
        per_cell=lookup("gras/per_cell", within=config),
        per_tone=lookup("gras/per_tone", within=config),
        seed=lookup("gras/seed", within=config),
        tolerated=lookup("gras/tolerated_problems", within=config),
    message:
        "Selecting the balanced image set of GRAS"
    script:
        "../scripts/select_gras_images.py"


rule plan_gras:
    input:
        images="<suite>/gras/images.parquet",
        traits="resources/words/gras_traits.csv",
        prompts="resources/prompts/gras.yaml",
    output:
        requests="<suite>/gras/requests/{model}.parquet",
        manifest="<suite>/gras/requests/{model}.manifest.json",
    log:
        "<logs>/plan_gras/{model}.log",
    benchmark:
        "<benchmarks>/plan_gras/{model}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        mem_mb=growing(3000),
        runtime=growing(20),
    params:
        code=code("plan_gras"),
        models_file=lookup("models_file", within=config),
        model=model_entry,
        style=lookup("gras/prompt_style", within=config),
        traits=as_param(config["gras"]["traits"]),
        images_per_shard=lookup("gras/images_per_shard", within=config),
        shards=gras_shard_count(),
    message:
        "Planning the questions of GRAS to {wildcards.model}"
    script:
        "../scripts/plan_gras.py"
