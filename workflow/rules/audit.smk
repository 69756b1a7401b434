"""What the papers' own numbers imply, recomputed."""


rule audit:
    input:
        published=expand("resources/published/{paper}.csv", paper=["gras"]),
        gras_results=evaluation_results,
    output:
        "results/audit/audit.csv",
    log:
        "<logs>/audit.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("audit"),
        gras_evaluation_results=lookup("gras_evaluation_results", within=config),
    message:
        "Recomputing what the published numbers imply"
    script:
        "../scripts/audit.py"
