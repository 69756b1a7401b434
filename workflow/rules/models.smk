"""Models of the hub: downloaded and locked."""


# It has no output: a failed job's outputs are deleted, and these would be the downloads. What is there is only compared.
rule fetch_models:
    log:
        "<logs>/fetch_models.log",
    retries: 0
    localrule: True
    conda:
        "../../envs/inference.yaml"
    params:
        code=code("fetch_models"),
        models_file=lookup("models_file", within=config),
        models=asked_models(),
        components=asked_components(),
    message:
        "Fetching models that are not there, and comparing the others with the lock"
    script:
        "../scripts/fetch_models.py"
