"""The demo's models, trained anew; only on request, because their weights are committed."""


rule train_demo_models:
    input:
        planted="resources/demo/planted.yaml",
        prompts="resources/prompts/gras.yaml",
    output:
        planted=directory("results/demo_models/tiny-planted"),
        control=directory("results/demo_models/tiny-control"),
    log:
        "<logs>/train_demo_models.log",
    benchmark:
        "<benchmarks>/train_demo_models.tsv"
    conda:
        "../../envs/inference.yaml"
    threads: 2
    resources:
        mem_mb=growing(8000),
        runtime=growing(240),
    params:
        code=code("train_demo_models"),
    message:
        "Training the demo's two models with fixed steps and seed"
    script:
        "../scripts/train_demo_models.py"
