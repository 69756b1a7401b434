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


rule measure_lvlm_fairness:
    input:
        judgements=judgements_of_model,
        facet="<suite>/samples/facet/samples.parquet",
        utkface="<suite>/samples/utkface/samples.parquet",
    output:
        metrics="<suite>/lvlm_fairness/metrics/{model}.parquet",
        manifest="<suite>/lvlm_fairness/metrics/{model}.manifest.json",
    log:
        "<logs>/measure_lvlm_fairness/{model}.log",
    benchmark:
        "<benchmarks>/measure_lvlm_fairness/{model}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        mem_mb=growing(3000),
        runtime=growing(30),
    params:
        code=code("measure_lvlm_fairness"),
        rationale_prompt=config["lvlm_fairness"]["choice_prompts"][0],
        resample_sizes=as_param(config["lvlm_fairness"]["resample_sizes"]),
        resample_draws=lookup("lvlm_fairness/resample_draws", within=config),
        bootstraps=lookup("lvlm_fairness/bootstraps", within=config),
        seed=lookup("lvlm_fairness/seed", within=config),
        small_cell=lookup("lvlm_fairness/small_cell", within=config),
    message:
        "Measuring recall and disparities of {wildcards.model}"
    script:
        "../scripts/measure_lvlm_fairness.py"


rule measure_lvlm_fairness_data:
    input:
        facet="<suite>/samples/facet/samples.parquet",
        utkface="<suite>/samples/utkface/samples.parquet",
    output:
        metrics="<suite>/lvlm_fairness/metrics/data.parquet",
        manifest="<suite>/lvlm_fairness/metrics/data.manifest.json",
    log:
        "<logs>/measure_lvlm_fairness_data.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("measure_lvlm_fairness_data"),
    message:
        "Counting the images of each group"
    script:
        "../scripts/measure_lvlm_fairness_data.py"


ruleorder: measure_lvlm_fairness_data > measure_lvlm_fairness


rule collect_metrics:
    input:
        models=metrics_of_paper,
    output:
        metrics="<suite>/{paper}/metrics.parquet",
        manifest="<suite>/{paper}/metrics.manifest.json",
    log:
        "<logs>/collect_metrics/{paper}.log",
    benchmark:
        "<benchmarks>/collect_metrics/{paper}.tsv"
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("collect_metrics"),
    message:
        "Collecting the metrics of all models of {wildcards.paper}"
    script:
        "../scripts/collect_metrics.py"
