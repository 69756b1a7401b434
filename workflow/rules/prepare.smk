"""Raw files -> samples and problems."""


rule prepare_dataset:
    input:
        raw=raw_folder,
        only=listed_images_file,
    output:
        samples="<suite>/samples/{dataset}/samples.parquet",
        samples_manifest="<suite>/samples/{dataset}/samples.manifest.json",
        problems="<suite>/samples/{dataset}/problems.parquet",
        problems_manifest="<suite>/samples/{dataset}/problems.manifest.json",
        funnel="<suite>/samples/{dataset}/funnel.csv",
    log:
        "<logs>/prepare_dataset/{dataset}.log",
    benchmark:
        "<benchmarks>/prepare_dataset/{dataset}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 2
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        code=code("prepare_dataset"),
        raw=lookup("datasets/{dataset}/raw", within=config),
        how_to_get=dataset_advice,
        options=dataset_options,
        only=listed_images,
        how_to_get_list=list_advice,
    message:
        "Reading the raw files of {wildcards.dataset}"
    script:
        "../scripts/prepare_dataset.py"
