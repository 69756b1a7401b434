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
    benchmark:
        "<benchmarks>/select_gras_images.tsv"
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
        traits="<resources>/words/gras_traits.csv",
        prompts="<resources>/prompts/gras.yaml",
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


rule plan_lvlm_fairness:
    input:
        samples=samples_of_experiment,
        prompts="<resources>/prompts/lvlm_fairness.yaml",
        classes="<resources>/words/facet_classes.csv",
        sub_questions=sub_questions_of_experiment,
    output:
        requests="<suite>/lvlm_fairness/requests/{experiment}/{model}.parquet",
        manifest="<suite>/lvlm_fairness/requests/{experiment}/{model}.manifest.json",
    log:
        "<logs>/plan_lvlm_fairness/{experiment}/{model}.log",
    benchmark:
        "<benchmarks>/plan_lvlm_fairness/{experiment}/{model}.tsv"
    wildcard_constraints:
        experiment="facet|utkface|sub_questions",
    conda:
        "../../envs/analysis.yaml"
    resources:
        mem_mb=growing(3000),
        runtime=growing(20),
    params:
        code=code("plan_lvlm_fairness"),
        models_file=lookup("models_file", within=config),
        model=model_entry,
        style=lookup("lvlm_fairness/prompt_style", within=config),
        prompts=asked_prompts,
        max_new_tokens=lookup("lvlm_fairness/max_new_tokens", within=config),
        shards=planned_shards,
    message:
        "Planning the questions of lvlm_fairness, {wildcards.experiment}, to {wildcards.model}"
    script:
        "../scripts/plan_lvlm_fairness.py"


rule plan_generation:
    input:
        prompts="<resources>/prompts/lvlm_fairness.yaml",
        classes="<resources>/words/facet_classes.csv",
    output:
        requests="<suite>/lvlm_fairness/requests/generation/{model}.parquet",
        manifest="<suite>/lvlm_fairness/requests/generation/{model}.manifest.json",
    log:
        "<logs>/plan_generation/{model}.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("plan_generation"),
        prompt=config["lvlm_fairness"]["choice_prompts"][0],
        max_new_tokens=lookup("lvlm_fairness/max_new_tokens", within=config),
    message:
        "Planning what {wildcards.model} is asked for sub-questions"
    script:
        "../scripts/plan_generation.py"


rule collect_sub_questions:
    input:
        unpack(generated_sub_questions),
        classes="<resources>/words/facet_classes.csv",
    output:
        "<suite>/lvlm_fairness/rationale/sub_questions.json",
    log:
        "<logs>/collect_sub_questions.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("collect_sub_questions"),
    message:
        "Collecting the sub-questions of the rationales"
    script:
        "../scripts/collect_sub_questions.py"


rule plan_rationale:
    input:
        samples="<suite>/samples/facet/samples.parquet",
        prompts="<resources>/prompts/lvlm_fairness.yaml",
        classes="<resources>/words/facet_classes.csv",
        sub_questions="<suite>/lvlm_fairness/rationale/sub_questions.json",
        requests="<suite>/lvlm_fairness/requests/sub_questions/{model}.parquet",
        responses="<suite>/lvlm_fairness/responses/sub_questions/{model}.parquet",
    output:
        requests="<suite>/lvlm_fairness/requests/rationale/{model}.parquet",
        manifest="<suite>/lvlm_fairness/requests/rationale/{model}.manifest.json",
    log:
        "<logs>/plan_rationale/{model}.log",
    benchmark:
        "<benchmarks>/plan_rationale/{model}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        mem_mb=growing(3000),
        runtime=growing(20),
    params:
        code=code("plan_rationale"),
        models_file=lookup("models_file", within=config),
        model=model_entry,
        style=lookup("lvlm_fairness/prompt_style", within=config),
        prompt=config["lvlm_fairness"]["choice_prompts"][0],
        max_new_tokens=lookup("lvlm_fairness/max_new_tokens", within=config),
        shards=planned_shards,
    message:
        "Planning the questions with rationales to {wildcards.model}"
    script:
        "../scripts/plan_rationale.py"


rule plan_vl_bicle:
    input:
        **BICLE_WORDING,
        samples=samples_of_task,
        contexts=contexts_of_task,
    output:
        requests="<suite>/vl_bicle/requests/{experiment}/{model}.parquet",
        manifest="<suite>/vl_bicle/requests/{experiment}/{model}.manifest.json",
        skipped="<suite>/vl_bicle/requests/{experiment}/{model}.skipped.json",
    log:
        "<logs>/plan_vl_bicle/{experiment}/{model}.log",
    benchmark:
        "<benchmarks>/plan_vl_bicle/{experiment}/{model}.tsv"
    wildcard_constraints:
        experiment="|".join(BICLE_TASKS),
    conda:
        "../../envs/analysis.yaml"
    resources:
        mem_mb=growing(6000),
        runtime=growing(30),
    params:
        code=code("plan_vl_bicle"),
        models_file=lookup("models_file", within=config),
        model=model_entry,
        most_images=most_images,
        word_list=lookup("vl_bicle/words", within=config),
        shots=as_param(config["vl_bicle"]["shots"]),
        max_new_tokens=lambda wildcards: bicle.token_limit(wildcards.experiment, BICLE),
        chunks=bicle_chunks,
        groups_per_shard=lookup("vl_bicle/groups_per_shard", within=config),
    message:
        "Planning the questions of vl_bicle, {wildcards.experiment}, to {wildcards.model}"
    script:
        "../scripts/plan_vl_bicle.py"


rule plan_verdicts:
    input:
        requests=answers_of_questions("requests"),
        responses=answers_of_questions("responses"),
        prompts="<resources>/prompts/vl_bicle.yaml",
    output:
        requests="<suite>/vl_bicle/requests/verdicts/{model}.parquet",
        manifest="<suite>/vl_bicle/requests/verdicts/{model}.manifest.json",
        contexts="<suite>/vl_bicle/contexts/verdicts.{model}.parquet",
        contexts_manifest="<suite>/vl_bicle/contexts/verdicts.{model}.manifest.json",
    log:
        "<logs>/plan_verdicts/{model}.log",
    conda:
        "../../envs/analysis.yaml"
    resources:
        mem_mb=growing(6000),
        runtime=growing(30),
    params:
        code=code("plan_verdicts"),
        shards=verdict_shard_count(),
        max_new_tokens=lookup("vl_bicle/judge_tokens", within=config),
    message:
        "Planning which answers {wildcards.model} compares with the right ones"
    script:
        "../scripts/plan_verdicts.py"
