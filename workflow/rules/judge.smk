"""Responses -> judgements."""


rule judge_gras:
    input:
        requests="<suite>/gras/requests/{model}.parquet",
        responses="<suite>/gras/responses/{model}.parquet",
        prompts="resources/prompts/gras.yaml",
    output:
        judgements="<suite>/gras/judgements/{model}.parquet",
        manifest="<suite>/gras/judgements/{model}.manifest.json",
    log:
        "<logs>/judge_gras/{model}.log",
    conda:
        "../../envs/analysis.yaml"
    resources:
        mem_mb=growing(3000),
        runtime=growing(20),
    params:
        code=code("judge_gras"),
        models_file=lookup("models_file", within=config),
        model=model_entry,
        temperatures=as_param(config["gras"]["temperatures"]),
    message:
        "Turning the label logits of {wildcards.model} into P(Yes)"
    script:
        "../scripts/judge_gras.py"
