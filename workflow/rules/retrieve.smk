"""Raw files: drawn for the demo."""


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
