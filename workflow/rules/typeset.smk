"""Tables -> one PDF for each paper; on request, because it needs LaTeX."""


rule typeset_tables:
    input:
        tex_files,
    output:
        "<suite>/{paper}/tables.pdf",
    log:
        "<logs>/typeset_tables/{paper}.log",
    retries: 0
    localrule: True
    conda:
        "../../envs/analysis.yaml"
    params:
        code=code("typeset_tables"),
        title=title_of_tables,
    message:
        "Typesetting the tables of {wildcards.paper}"
    script:
        "../scripts/typeset_tables.py"


rule pdf:
    input:
        collect("<suite>/{paper}/tables.pdf", paper=PAPERS),
