"""The demo's models and pipelines, trained anew; only on request: their weights are committed."""


rule train_demo_models:
    input:
        planted="<resources>/demo/planted.yaml",
        prompts="<resources>/prompts/gras.yaml",
        encoder_texts=[
            "<resources>/prompts/lvlm_fairness.yaml",
            "<resources>/words/facet_classes.csv",
            "<resources>/words/facet_wordnet.csv",
        ],
    output:
        planted=directory("results/demo_models/tiny-planted"),
        control=directory("results/demo_models/tiny-control"),
        encoders=[
            directory("results/demo_models/clip"),
            directory("results/demo_models/sentence-t5"),
            directory("results/demo_models/vit"),
        ],
    log:
        "<logs>/train_demo_models.log",
    benchmark:
        "<benchmarks>/train_demo_models.tsv"
    retries: 0
    conda:
        "../../envs/inference.yaml"
    threads: 2
    resources:
        mem_mb=growing(8000),
        runtime=growing(240),
    params:
        code=code("train_demo_models"),
    message:
        "Training the demo's two models and its encoders with fixed steps and seed"
    script:
        "../scripts/train_demo_models.py"


rule train_demo_pipelines:
    output:
        sd3=directory("results/demo_models/tiny-sd3"),
        flux=directory("results/demo_models/tiny-flux"),
    log:
        "<logs>/train_demo_pipelines.log",
    benchmark:
        "<benchmarks>/train_demo_pipelines.tsv"
    retries: 0
    conda:
        "../../envs/synthesis.yaml"
    threads: 2
    resources:
        mem_mb=growing(6000),
        runtime=growing(180),
    params:
        code=code("train_demo_pipelines"),
    message:
        "Training the demo's two text-to-image pipelines with fixed steps and seed"
    script:
        "../scripts/train_demo_pipelines.py"
