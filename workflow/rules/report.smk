"""Tables, figures, problems and provenance -> one page."""


rule build_report:
    input:
        files=artefact_files("gras"),
        registry="config/artefacts.yaml",
        template="resources/templates/report.html.j2",
        captions=caption_files("gras"),
        metrics="<suite>/gras/metrics.parquet",
        problems="<suite>/gras/image_problems.parquet",
        manifests=expand(
            "<suite>/gras/responses/{model}.manifest.json",
            model=config["gras"]["models"],
        ),
    output:
        "<suite>/report/index.html",
    log:
        "<logs>/build_report.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("build_report"),
        suite=lookup("suite", within=config),
        models=as_param(config["gras"]["models"]),
        titles=gras_facts_params()["titles"],
        config=CONFIG_TEXT,
    message:
        "Writing the report"
    script:
        "../scripts/build_report.py"
