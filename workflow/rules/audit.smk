"""What the papers' own numbers imply, recomputed."""


rule audit:
    input:
        gras="<resources>/published/gras.csv",
        gras_significance="<resources>/published/gras_significance.csv",
        lvlm_fairness="<resources>/published/lvlm_fairness.csv",
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
