"""Raw files: drawn for the demo, or downloaded."""


rule draw_raw:
    output:
        directory("<suite>/raw/{dataset}"),
    log:
        "<logs>/draw_raw/{dataset}.log",
    benchmark:
        "<benchmarks>/draw_raw/{dataset}.tsv"
    wildcard_constraints:
        dataset="|".join(config["datasets"]),
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("draw_raw"),
        seed=lookup("drawn_seed", within=config),
        sizes=drawn_sizes,
    message:
        "Drawing the raw download of {wildcards.dataset}"
    script:
        "../scripts/draw_raw.py"


rule draw_selection:
    output:
        fairface="<suite>/raw/gras/selected_images_fairface.csv",
        ai_face="<suite>/raw/gras/selected_images_aiface.csv",
    log:
        "<logs>/draw_selection.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("draw_selection"),
        seed=lookup("drawn_seed", within=config),
        per_cell=lookup("gras/per_cell", within=config),
        per_tone=lookup("gras/per_tone", within=config),
    message:
        "Drawing the two lists of selected images"
    script:
        "../scripts/draw_selection.py"


# Downloads run where snakemake itself runs: compute nodes often have no way into the internet. The raw folder is no
# output, because snakemake deletes the outputs of a job that fails, and what has come would be lost.
rule retrieve_dataset:
    output:
        "<suite>/retrieved/{source}.json",
    log:
        "<logs>/retrieve_dataset/{source}.log",
    benchmark:
        "<benchmarks>/retrieve_dataset/{source}.tsv"
    wildcard_constraints:
        source="|".join(sources()),
    localrule: True
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("retrieve_dataset"),
        entry=source_params,
        raw=lambda wildcards: source_folder(wildcards.source),
        downloads=lookup("downloads", within=config),
        lost=is_lost,
    message:
        "Downloading what may be downloaded of {wildcards.source}"
    script:
        "../scripts/retrieve_dataset.py"


rule retrieve_photographs:
    input:
        "<suite>/retrieved/visogender.json",
    output:
        "<suite>/retrieved/visogender_photographs.csv",
    log:
        "<logs>/retrieve_photographs.log",
    benchmark:
        "<benchmarks>/retrieve_photographs.tsv"
    localrule: True
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("retrieve_photographs"),
        raw=lookup("datasets/visogender/raw", within=config),
        version=lookup("datasets/visogender/version", within=config),
    message:
        "Asking for the photographs that the tables of VisoGender name"
    script:
        "../scripts/retrieve_photographs.py"


rule retrieve:
    input:
        lambda wildcards: [file for name in sources() for file in retrieved_files(name)],
    log:
        "<logs>/retrieve.log",
    retries: 0
    localrule: True
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("retrieve"),
        sources=shown_sources(sources()),
        stop=False,
    message:
        "What was downloaded, and what has to be fetched by hand"
    script:
        "../scripts/retrieve.py"


for source in sources():

    rule:
        name:
            f"retrieve_{source}"
        input:
            lambda wildcards, source=source: retrieved_files(source),
        log:
            f"<logs>/retrieve_{source}.log",
        retries: 0
        localrule: True
        conda:
            "../../envs/analysis.yaml"
        params:
            code=code("retrieve"),
            sources=shown_sources([source]),
            stop=True,
        message:
            "What was downloaded, and what has to be fetched by hand"
        script:
            "../scripts/retrieve.py"
