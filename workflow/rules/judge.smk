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
    benchmark:
        "<benchmarks>/judge_gras/{model}.tsv"
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


rule judge_lvlm_fairness:
    input:
        requests=files_of_model("requests", JUDGED),
        responses=files_of_model("responses", JUDGED),
        prompts="resources/prompts/lvlm_fairness.yaml",
        classes="resources/words/facet_classes.csv",
    output:
        judgements=judgement_files(),
        manifests=judgement_files(ending="manifest.json"),
    log:
        "<logs>/judge_lvlm_fairness/{model}/{judge}.log",
    benchmark:
        "<benchmarks>/judge_lvlm_fairness/{model}/{judge}.tsv"
    wildcard_constraints:
        judge="regex|clip_text|sentence_t5|strict",
    conda:
        "../../envs/inference.yaml"
    resources:
        mem_mb=encoder_memory,
        runtime=growing(60),
    params:
        code=code("judge_lvlm_fairness"),
        encoder=encoder_settings,
    message:
        "Reading the answers of {wildcards.model}: {wildcards.judge}"
    script:
        "../scripts/judge_lvlm_fairness.py"


rule judge_baseline:
    input:
        samples="<suite>/samples/facet/samples.parquet",
        prompts="resources/prompts/lvlm_fairness.yaml",
        classes="resources/words/facet_classes.csv",
        wordnet="resources/words/facet_wordnet.csv",
        raw=drawn_raw_folders("facet"),
    output:
        judgements="<suite>/lvlm_fairness/judgements/facet/{baseline}/classifier.parquet",
        manifest="<suite>/lvlm_fairness/judgements/facet/{baseline}/classifier.manifest.json",
    log:
        "<logs>/judge_baseline/{baseline}.log",
    benchmark:
        "<benchmarks>/judge_baseline/{baseline}.tsv"
    wildcard_constraints:
        baseline="clip|vit",
    conda:
        "../../envs/inference.yaml"
    threads: config["inference"]["threads"]
    resources:
        mem_mb=encoder_memory,
        runtime=growing(120),
    params:
        code=code("judge_baseline"),
        encoder=encoder_settings,
    message:
        "Classifying the images of FACET: {wildcards.baseline}"
    script:
        "../scripts/judge_baseline.py"


rule pick_example:
    input:
        requests=files_of_model("requests", EXAMPLE),
        responses=files_of_model("responses", EXAMPLE),
        judgements=judgement_files(judge=config["lvlm_fairness"]["table_judge"]),
        prompts="resources/prompts/lvlm_fairness.yaml",
        classes="resources/words/facet_classes.csv",
        sub_questions="<suite>/lvlm_fairness/rationale/sub_questions.json",
    output:
        "<suite>/lvlm_fairness/examples/{model}.json",
    log:
        "<logs>/pick_example/{model}.log",
    conda:
        "../../envs/inference.yaml"
    params:
        code=code("pick_example"),
        experiments=EXAMPLE,
        judged=JUDGED,
        prompt=config["lvlm_fairness"]["choice_prompts"][0],
    message:
        "Picking an answer of {wildcards.model} that a rationale changed"
    script:
        "../scripts/pick_example.py"
