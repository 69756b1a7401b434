"""Which datasets are there, and the counts that a paper prints of them."""


# The list is a job of its own, so that it stays when the verdict is a failure.
rule list_datasets:
    input:
        sheet=config["datasets_file"],
        samples=files_of_readable("samples"),
        problems=files_of_readable("problems"),
    output:
        table="<suite>/check.csv",
        text="<suite>/check.md",
    log:
        "<logs>/list_datasets.log",
    retries: 0
    conda:
        "../../envs/analysis.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        code=code("list_datasets"),
        datasets=datasets_to_check(),
        readable=readable_datasets(),
        asked=ASKED_DATASETS,
        drawn=raw_files_are_drawn(),
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
    message:
        "Checking that the datasets are there and as the papers count them"
    script:
        "../scripts/check.py"
