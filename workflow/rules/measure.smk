"""Judgements -> metrics."""


rule measure_gras:
    input:
        judgements="<suite>/gras/judgements/{model}.parquet",
        images="<suite>/gras/images.parquet",
        traits="<resources>/words/gras_traits.csv",
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


rule measure_vl_bicle:
    input:
        judgements=judgements_on_tasks,
        skipped=skipped_cells,
    output:
        metrics="<suite>/vl_bicle/metrics/{model}.parquet",
        manifest="<suite>/vl_bicle/metrics/{model}.manifest.json",
    log:
        "<logs>/measure_vl_bicle/{model}.log",
    benchmark:
        "<benchmarks>/measure_vl_bicle/{model}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        code=code("measure_vl_bicle"),
        bootstraps=lookup("vl_bicle/bootstraps", within=config),
        seed=lookup("vl_bicle/seed", within=config),
    message:
        "Measuring errors and their shifts of {wildcards.model}"
    script:
        "../scripts/measure_vl_bicle.py"


rule measure_vl_bicle_data:
    input:
        **BICLE_WORDING,
        samples=samples_of_tasks(),
        contexts=[file for task in BICLE_TASKS for file in context_files(task)],
    output:
        metrics="<suite>/vl_bicle/metrics/data.parquet",
        manifest="<suite>/vl_bicle/metrics/data.manifest.json",
    log:
        "<logs>/measure_vl_bicle_data.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("measure_vl_bicle_data"),
        tasks=tuple(BICLE_TASKS),
        word_list=lookup("vl_bicle/words", within=config),
    message:
        "Counting the images and demonstrations of each gender"
    script:
        "../scripts/measure_vl_bicle_data.py"


ruleorder: measure_vl_bicle_data > measure_vl_bicle


rule check_claims:
    input:
        metrics="<suite>/vl_bicle/metrics.parquet",
        claims="<resources>/published/vl_bicle_claims.yaml",
    output:
        table="<suite>/vl_bicle/claims.csv",
        metrics="<suite>/vl_bicle/claims.parquet",
        manifest="<suite>/vl_bicle/claims.manifest.json",
    log:
        "<logs>/check_claims.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("check_claims"),
        models=as_param(config["vl_bicle"]["claim_models"]),
        titles=model_titles(config["vl_bicle"]["claim_models"]),
    message:
        "Testing the findings of the paper on what was measured"
    script:
        "../scripts/check_claims.py"


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
