"""Metrics -> tables and figures; one rule an artefact, driven by config/artefacts.yaml.

Each takes seconds: on a cluster they are made where snakemake runs.
"""

for artefact in single_artefacts("table"):

    rule:
        name:
            f"tabulate_{artefact.id}"
        input:
            **FACTS[artefact.paper],
        output:
            report(
                multiext(f"<suite>/{artefact.folder}/{artefact.stem}", html=".html"),
                caption=f"../../{artefact.caption}",
                category=PAPERS[artefact.paper],
                subcategory="Tables",
                labels={"number": artefact.label, "title": artefact.title},
            ),
            multiext(
                f"<suite>/{artefact.folder}/{artefact.stem}", csv=".csv", tex=".tex"
            ),
        log:
            f"<logs>/tabulate_{artefact.paper}/{artefact.stem}.log",
        benchmark:
            f"<benchmarks>/tabulate_{artefact.paper}/{artefact.stem}.tsv"
        localrule: True
        conda:
            "../../envs/analysis.yaml"
        params:
            **FACTS_PARAMS[artefact.paper],
            code=code(f"tabulate_{artefact.paper}"),
            paper=artefact.paper,
            artefact=artefact.stem,
            title=artefact.title,
        message:
            f"Writing {artefact.label} of {PAPERS[artefact.paper]}"
        script:
            "../scripts/tabulate_{params.paper}.py"


for artefact in artefact_families("table"):

    rule:
        name:
            f"tabulate_{artefact.id.replace('-', '_')}"
        input:
            **FACTS[artefact.paper],
        output:
            report(
                multiext(
                    f"<suite>/{artefact.folder}/{artefact.stem}_{{model}}",
                    html=".html",
                ),
                caption=f"../../{artefact.caption}",
                category=PAPERS[artefact.paper],
                subcategory="Appendix tables",
                labels={
                    "number": artefact.label,
                    "title": f"{artefact.title}: {{model}}",
                },
            ),
            multiext(
                f"<suite>/{artefact.folder}/{artefact.stem}_{{model}}",
                csv=".csv",
                tex=".tex",
            ),
        log:
            f"<logs>/tabulate_{artefact.paper}/{artefact.stem}_{{model}}.log",
        benchmark:
            f"<benchmarks>/tabulate_{artefact.paper}/{artefact.stem}_{{model}}.tsv"
        localrule: True
        conda:
            "../../envs/analysis.yaml"
        params:
            **FACTS_PARAMS[artefact.paper],
            code=code(f"tabulate_{artefact.paper}"),
            paper=artefact.paper,
            artefact=artefact.stem,
            title=artefact.title,
        message:
            f"Writing {artefact.label} of {PAPERS[artefact.paper]}: {{wildcards.model}}"
        script:
            "../scripts/tabulate_{params.paper}.py"


for artefact in single_artefacts("figure"):

    rule:
        name:
            f"plot_{artefact.id}"
        input:
            **FACTS[artefact.paper],
            raw=shown_raw_folders(artefact),
        output:
            report(
                multiext(f"<suite>/{artefact.folder}/{artefact.stem}", png=".png"),
                caption=f"../../{artefact.caption}",
                category=PAPERS[artefact.paper],
                subcategory="Figures",
                labels={"number": artefact.label, "title": artefact.title},
            ),
            multiext(
                f"<suite>/{artefact.folder}/{artefact.stem}", pdf=".pdf", csv=".csv"
            ),
        log:
            f"<logs>/plot_{artefact.paper}/{artefact.stem}.log",
        localrule: True
        conda:
            "../../envs/analysis.yaml"
        params:
            **FACTS_PARAMS[artefact.paper],
            code=code(f"plot_{artefact.paper}"),
            paper=artefact.paper,
            artefact=artefact.stem,
        message:
            f"Drawing {artefact.label} of {PAPERS[artefact.paper]}"
        script:
            "../scripts/plot_{params.paper}.py"


for artefact in artefact_families("figure"):

    rule:
        name:
            f"plot_{artefact.id.replace('-', '_')}"
        input:
            **FACTS[artefact.paper],
        output:
            report(
                f"<suite>/{artefact.folder}/{artefact.stem}_{{model}}_{{page}}.png",
                caption=f"../../{artefact.caption}",
                category=PAPERS[artefact.paper],
                subcategory="Appendix figures",
                labels={
                    "number": artefact.label,
                    "title": f"{artefact.title}: {{model}}, part {{page}}",
                },
            ),
            f"<suite>/{artefact.folder}/{artefact.stem}_{{model}}_{{page}}.pdf",
            f"<suite>/{artefact.folder}/{artefact.stem}_{{model}}_{{page}}.csv",
        log:
            f"<logs>/plot_{artefact.paper}/{artefact.stem}_{{model}}_{{page}}.log",
        localrule: True
        conda:
            "../../envs/analysis.yaml"
        params:
            **FACTS_PARAMS[artefact.paper],
            code=code(f"plot_{artefact.paper}"),
            paper=artefact.paper,
            artefact=artefact.stem,
        message:
            f"Drawing {artefact.label} of {PAPERS[artefact.paper]}: {{wildcards.model}}, part {{wildcards.page}}"
        script:
            "../scripts/plot_{params.paper}.py"
