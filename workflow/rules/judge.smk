"""Responses -> judgements."""


rule judge_gras:
    input:
        requests="<suite>/gras/requests/{model}.parquet",
        responses="<suite>/gras/responses/{model}.parquet",
        prompts="<resources>/prompts/gras.yaml",
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
        prompts="<resources>/prompts/lvlm_fairness.yaml",
        classes="<resources>/words/facet_classes.csv",
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
        prompts="<resources>/prompts/lvlm_fairness.yaml",
        classes="<resources>/words/facet_classes.csv",
        wordnet="<resources>/words/facet_wordnet.csv",
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
        prompts="<resources>/prompts/lvlm_fairness.yaml",
        classes="<resources>/words/facet_classes.csv",
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


rule judge_vl_bicle:
    input:
        unpack(verdicts_of_task),
        **BICLE_WORDING,
        requests="<suite>/vl_bicle/requests/{experiment}/{model}.parquet",
        responses="<suite>/vl_bicle/responses/{experiment}/{model}.parquet",
        samples=samples_of_task,
        raw=raw_folders_of_captions,
    output:
        judgements="<suite>/vl_bicle/judgements/{experiment}/{model}.parquet",
        manifest="<suite>/vl_bicle/judgements/{experiment}/{model}.manifest.json",
    log:
        "<logs>/judge_vl_bicle/{experiment}/{model}.log",
    benchmark:
        "<benchmarks>/judge_vl_bicle/{experiment}/{model}.tsv"
    wildcard_constraints:
        experiment="|".join(BICLE_TASKS),
    conda:
        "../../envs/inference.yaml"
    resources:
        mem_mb=clip_memory,
        runtime=growing(60),
    params:
        code=code("judge_vl_bicle"),
        word_list=lookup("vl_bicle/words", within=config),
        encoder=clip_settings,
        temperatures=as_param(config["vl_bicle"]["temperatures"]),
    message:
        "Judging the answers of {wildcards.model} in {wildcards.experiment}"
    script:
        "../scripts/judge_vl_bicle.py"
