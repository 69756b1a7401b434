"""What a run will cost, before it starts."""


rule estimate_cost:
    input:
        prompts=collect("<resources>/prompts/{paper}.yaml", paper=list(PAPERS)),
        words=collect(
            "<resources>/words/{name}",
            name=(
                "gras_traits.csv",
                "facet_classes.csv",
                "lvlm_sub_questions.yaml",
                "gender_words.yaml",
            ),
        ),
        assumptions="<resources>/cost/assumptions.yaml",
        architectures="<resources>/cost/architectures.yaml",
        samples=drawn_samples(),
    output:
        table="<suite>/plan_cost.csv",
        page="<suite>/plan_cost.html",
        text="<suite>/plan_cost.md",
    log:
        "<logs>/estimate_cost.log",
    benchmark:
        "<benchmarks>/estimate_cost.tsv"
    localrule: True
    conda:
        "../../envs/analysis.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        code=code("estimate_cost"),
        models_file=lookup("models_file", within=config),
        models=as_param({name: MODELS[name] for name in asked_models()}),
        settings=as_param({name: config[name] for name in COST_SECTIONS}),
        announced=announced_numbers(),
        samples=samples_to_count(),
        jobs=inference_jobs(),
        drawings=announced_drawings(),
    message:
        "Estimating what the run costs"
    script:
        "../scripts/estimate_cost.py"


rule plan_cost:
    input:
        "<suite>/plan_cost.md",
    log:
        "<logs>/plan_cost.log",
    localrule: True
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("plan_cost"),
        page=f"{SUITE_FOLDER}/plan_cost.html",
    message:
        "Showing what the run costs"
    script:
        "../scripts/plan_cost.py"
