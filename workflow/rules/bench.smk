"""Speed against the plain form, in one run."""


rule bench:
    output:
        "results/bench/bench.json",
    log:
        "<logs>/bench.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("bench"),
    message:
        "Measuring speed against the plain form"
    script:
        "../scripts/bench.py"
