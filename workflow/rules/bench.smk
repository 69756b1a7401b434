"""Speed against the plain form, in one run."""


rule measure_engine:
    input:
        tokens="<resources>/bench/llava_tokens.json",
        prompts=collect(
            "<resources>/prompts/{paper}.yaml", paper=("gras", "lvlm_fairness")
        ),
        words=collect(
            "<resources>/words/{name}",
            name=("gras_traits.csv", "facet_classes.csv", "lvlm_sub_questions.yaml"),
        ),
    output:
        "results/bench/engine.json",
    log:
        "<logs>/measure_engine.log",
    conda:
        "../../envs/inference.yaml"
    resources:
        mem_mb=growing(6000),
        runtime=growing(30),
    params:
        code=code("measure_engine"),
    message:
        "Measuring the engine against the plain form"
    script:
        "../scripts/measure_engine.py"


rule measure_statistics:
    output:
        "results/bench/statistics.json",
    log:
        "<logs>/measure_statistics.log",
    conda:
        "../../envs/analysis.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        code=code("measure_statistics"),
    message:
        "Measuring the statistics against the libraries' plain loops"
    script:
        "../scripts/measure_statistics.py"


rule bench:
    input:
        engine="results/bench/engine.json",
        statistics="results/bench/statistics.json",
    output:
        figures="results/bench/bench.json",
        table="results/bench/bench.md",
    log:
        "<logs>/bench.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("bench"),
        document="docs/performance.md",
    message:
        "Checking the figures of the bench against their bars"
    script:
        "../scripts/bench.py"


if config["gras_selection"]:

    # Within this run the raw files are those of the authors' lists.
    ruleorder: take_selection > draw_selection
    ruleorder: draw_listed > draw_raw

    rule take_selection:
        input:
            **authors_lists(),
        output:
            fairface="<suite>/raw/gras/selected_images_fairface.csv",
            ai_face="<suite>/raw/gras/selected_images_aiface.csv",
        log:
            "<logs>/take_selection.log",
        benchmark:
            "<benchmarks>/take_selection.tsv"
        conda:
            "../../envs/analysis.yaml"
        params:
            code=code("take_selection"),
            images=lookup("full_size_images", within=config),
            sha256=as_param(config["gras"]["selection_sha256"]),
        message:
            "Taking the authors' lists of selected images"
        script:
            "../scripts/take_selection.py"

    rule draw_listed:
        input:
            listed_images_file,
        output:
            directory("<suite>/raw/{dataset}"),
        log:
            "<logs>/draw_listed/{dataset}.log",
        benchmark:
            "<benchmarks>/draw_listed/{dataset}.tsv"
        wildcard_constraints:
            dataset="fairface|ai_face",
        conda:
            "../../envs/analysis.yaml"
        params:
            code=code("draw_listed"),
            seed=lookup("drawn_seed", within=config),
        message:
            "Drawing the listed images of {wildcards.dataset}"
        script:
            "../scripts/draw_listed.py"

    rule compare_speed:
        input:
            requests="<suite>/gras/requests/{model}.parquet",
            prompts="<resources>/prompts/gras.yaml",
            raw=drawn_raw_folders("gras"),
        output:
            "<suite>/speed/{model}.json",
        log:
            "<logs>/compare_speed/{model}.log",
        benchmark:
            "<benchmarks>/compare_speed/{model}.tsv"
        conda:
            "../../envs/inference.yaml"
        resources:
            mem_mb=growing(3000),
            runtime=growing(60),
        params:
            code=code("compare_speed"),
            models_file=lookup("models_file", within=config),
            model=model_settings,
            temperatures=as_param(config["gras"]["temperatures"]),
            batch_size=lookup("inference/batch_size", within=config),
            sample=speed_sample(),
        message:
            "Comparing the speed of {wildcards.model} with the plain form"
        script:
            "../scripts/compare_speed.py"

    rule gras_full_size:
        input:
            tables=artefact_files("gras", "table"),
            images="<suite>/gras/images.parquet",
            speed=f"<suite>/speed/{config['gras']['models'][0]}.json",
        output:
            figures=f"results/bench/{config['suite']}.json",
            table=f"results/bench/{config['suite']}.md",
        log:
            "<logs>/gras_full_size.log",
        conda:
            "../../envs/analysis.yaml"
        params:
            code=code("gras_full_size"),
            suite=suite_folder,
            store=lookup("answer_store", within=config),
            document="" if config["full_size_images"] else "docs/performance.md",
        message:
            "Collecting the figures of the full-size run"
        script:
            "../scripts/gras_full_size.py"

else:

    rule gras_full_size:
        input:
            authors_lists_are_missing,
