"""Metrics -> tables and figures; one rule an artefact, driven by config/artefacts.yaml."""

for artefact in single_artefacts("gras", "table"):

    rule:
        name:
            f"tabulate_{artefact.id}"
        input:
            **GRAS_FACTS,
        output:
            report(
                multiext(f"<suite>/{artefact.folder}/{artefact.stem}", html=".html"),
                caption=f"../../{artefact.caption}",
                category="GRAS",
                subcategory="Tables",
                labels={"number": artefact.label, "title": artefact.title},
            ),
            multiext(
                f"<suite>/{artefact.folder}/{artefact.stem}", csv=".csv", tex=".tex"
            ),
        log:
            f"<logs>/tabulate_gras/{artefact.stem}.log",
        conda:
            "../../envs/analysis.yaml"
        params:
            **gras_facts_params(),
            code=code("tabulate_gras"),
            artefact=artefact.stem,
            title=artefact.title,
        message:
            f"Writing {artefact.label} of GRAS"
        script:
            "../scripts/tabulate_gras.py"


for artefact in single_artefacts("gras", "figure"):

    rule:
        name:
            f"plot_{artefact.id}"
        input:
            **GRAS_FACTS,
        output:
            report(
                multiext(f"<suite>/{artefact.folder}/{artefact.stem}", png=".png"),
                caption=f"../../{artefact.caption}",
                category="GRAS",
                subcategory="Figures",
                labels={"number": artefact.label, "title": artefact.title},
            ),
            multiext(
                f"<suite>/{artefact.folder}/{artefact.stem}", pdf=".pdf", csv=".csv"
            ),
        log:
            f"<logs>/plot_gras/{artefact.stem}.log",
        conda:
            "../../envs/analysis.yaml"
        params:
            **gras_facts_params(),
            code=code("plot_gras"),
            artefact=artefact.stem,
        message:
            f"Drawing {artefact.label} of GRAS"
        script:
            "../scripts/plot_gras.py"


for artefact in figure_families("gras"):

    rule:
        name:
            f"plot_{artefact.id.replace('-', '_')}"
        input:
            **GRAS_FACTS,
        output:
            report(
                f"<suite>/{artefact.folder}/{artefact.stem}_{{model}}_{{page}}.png",
                caption=f"../../{artefact.caption}",
                category="GRAS",
                subcategory="Appendix figures",
                labels={
                    "number": artefact.label,
                    "title": f"{artefact.title}: {{model}}, part {{page}}",
                },
            ),
            f"<suite>/{artefact.folder}/{artefact.stem}_{{model}}_{{page}}.pdf",
            f"<suite>/{artefact.folder}/{artefact.stem}_{{model}}_{{page}}.csv",
        log:
            f"<logs>/plot_gras/{artefact.stem}_{{model}}_{{page}}.log",
        conda:
            "../../envs/analysis.yaml"
        params:
            **gras_facts_params(),
            code=code("plot_gras"),
            artefact=artefact.stem,
        message:
            f"Drawing {artefact.label} of GRAS: {{wildcards.model}}, part {{wildcards.page}}"
        script:
            "../scripts/plot_gras.py"
