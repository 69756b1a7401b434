"""Tables, figures, problems and provenance -> one page."""


rule build_report:
    input:
        files=[file for paper in PAPERS for file in artefact_files(paper)],
        registry=own_path("config/artefacts.yaml"),
        template="<resources>/templates/report.html.j2",
        captions=caption_files(),
        gras="<suite>/gras/metrics.parquet",
        lvlm_fairness="<suite>/lvlm_fairness/metrics.parquet",
        vl_bicle=[
            "<suite>/vl_bicle/metrics.parquet",
            "<suite>/vl_bicle/claims.parquet",
        ],
        problems=[
            "<suite>/gras/image_problems.parquet",
            "<suite>/samples/facet/problems.parquet",
            "<suite>/samples/utkface/problems.parquet",
            *[f"<suite>/samples/{name}/problems.parquet" for name in BICLE_DATASETS],
        ],
        manifests=GRAS_FACTS["manifests"] + LVLM_FAIRNESS_MANIFESTS + VL_BICLE_MANIFESTS,
    output:
        "<suite>/report/index.html",
    log:
        "<logs>/build_report.log",
    localrule: True
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("build_report"),
        suite=lookup("suite", within=config),
        gras=report_params("gras"),
        lvlm_fairness=report_params("lvlm_fairness"),
        vl_bicle=report_params("vl_bicle"),
        config=CONFIG_TEXT,
    message:
        "Writing the report"
    script:
        "../scripts/build_report.py"
