"""Judgements -> metrics."""


rule measure_gras:
    input:
        judgements="<suite>/gras/judgements/{model}.parquet",
        images="<suite>/gras/images.parquet",
        traits="resources/words/gras_traits.csv",
    output:
        metrics="<suite>/gras/metrics/{model}.parquet",
        manifest="<suite>/gras/metrics/{model}.manifest.json",
    log:
        "<logs>/measure_gras/{model}.log",
    benchmark:
        "<benchmarks>/measure_gras/{model}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        code=code("measure_gras"),
        traits=as_param(config["gras"]["traits"]),
        alpha=lookup("gras/alpha", within=config),
        temperatures=as_param(config["gras"]["temperatures"]),
        permutations=lookup("gras/permutations", within=config),
        bootstraps=lookup("gras/bootstraps", within=config),
        seed=lookup("gras/seed", within=config),
    message:
        "Measuring the bias of {wildcards.model}"
    script:
        "../scripts/measure_gras.py"


rule collect_metrics:
    input:
        models=expand(
            "<suite>/gras/metrics/{model}.parquet", model=config["gras"]["models"]
        ),
    output:
        metrics="<suite>/gras/metrics.parquet",
        manifest="<suite>/gras/metrics.manifest.json",
    log:
        "<logs>/collect_metrics/gras.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("collect_metrics"),
    message:
        "Collecting the metrics of all models of GRAS"
    script:
        "../scripts/collect_metrics.py"
