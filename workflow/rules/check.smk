"""Which datasets are there, and the counts that a paper prints of them."""


# The list is a job of its own, so that it stays when the verdict is a failure. It looks into the raw folders itself,
# without opening an image: what is missing is to be known before anything is read for good.
rule list_datasets:
    input:
        sheet=config["datasets_file"],
        drawn=drawn_files_to_check(),
    output:
        table="<suite>/check.csv",
        text="<suite>/check.md",
    log:
        "<logs>/list_datasets.log",
    benchmark:
        "<benchmarks>/list_datasets.tsv"
    retries: 0
    conda:
        "../../envs/analysis.yaml"
    threads: 2
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        code=code("list_datasets"),
        datasets=datasets_to_check(),
        asked=ASKED_DATASETS,
        drawn=raw_files_are_drawn(),
        state=state_of_raw_files,
    message:
        "Listing the datasets and counting their groups"
    script:
        "../scripts/list_datasets.py"


rule check:
    input:
        table="<suite>/check.csv",
        text="<suite>/check.md",
    log:
        "<logs>/check.log",
    retries: 0
    localrule: True
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("check"),
        models_file=lookup("models_file", within=config),
        models=asked_models(),
        components=asked_components(),
    message:
        "Checking that datasets and models are there, and datasets as the papers count them"
    script:
        "../scripts/check.py"
