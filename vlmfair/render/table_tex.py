"""A table as LaTeX with booktabs rules: a float that fits the text width, or a longtable."""

from __future__ import annotations

import re
from functools import cache

import jinja2

from vlmfair.render.table import Column, Table, cells, spanners
from vlmfair.render.table_fit import Fit, fit_columns, folded_lines, heading_lines, is_too_high

LONGEST_ON_ONE_PAGE = 45

_TEX_CHARACTERS = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # In braces, or they would be read as an argument of the line end before them.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    '"': "''",
    "−": r"\ensuremath{-}",
    "–": r"--",
    "—": r"---",
    "±": r"\ensuremath{\pm}",
    "×": r"\ensuremath{\times}",
    "≤": r"\ensuremath{\leq}",
    "≥": r"\ensuremath{\geq}",
    "∞": r"\ensuremath{\infty}",
    "α": r"\ensuremath{\alpha}",
    "ε": r"\ensuremath{\varepsilon}",
    "η": r"\ensuremath{\eta}",
    "χ": r"\ensuremath{\chi}",
    "ω": r"\ensuremath{\omega}",
    "²": r"\textsuperscript{2}",
    "“": "``",
    "”": "''",
    "’": "'",
    "…": r"\ldots{}",
    "†": r"\textdagger{}",
    "•": r"\textbullet{}",
}


# The letters of Latin-1 that LaTeX's default font encoding can print.
_LATIN_LETTERS = frozenset(chr(c) for c in range(0xC0, 0x100) if chr(c).isalpha()) - set("ÐðÞþ")


def escape_tex(text: str) -> str:
    """Return text that LaTeX prints as it is; a character it cannot print becomes `[U+1F600]`."""
    return "".join(_escape_tex_character(character) for character in text)


def _escape_tex_character(character: str) -> str:
    if character in _TEX_CHARACTERS:
        return _TEX_CHARACTERS[character]
    if character.isspace():
        return " "
    if " " <= character <= "~" or character in _LATIN_LETTERS:
        return character
    return f"{{[}}U+{ord(character):04X}{{]}}"


# Row ends are \tabularnewline, because \\ is unsafe after \raggedright.
_TEX = r"""% Needs \usepackage{<< packages >>}.
<% if long %><% if turned %>\begin{landscape}
<% endif %>{\<< size >>\setlength{\tabcolsep}{<< padding >>pt}
\begin{longtable}{<< layout >>}
\caption{<< title | tex >>}\label{<< label >>}\tabularnewline
\toprule
<% else %>\begin{<< "sidewaystable" if turned else "table" >>}[<< "p" if turned else "tbp" >>]
\centering\<< size >>\setlength{\tabcolsep}{<< padding >>pt}
\caption{<< title | tex >>}\label{<< label >>}
\sbox0{\begin{tabular}{<< layout >>}
\toprule
<% endif %><% if spanner_line %><< spanner_line >> \tabularnewline
<< spanner_rules >>
<% endif %><< heading >> \tabularnewline
\midrule
<% if long %>\endhead
<% endif %><% for row in rows %><% if loop.index0 in gaps %>\addlinespace
<% endif %><< row >> \tabularnewline
<% endfor %>\bottomrule
<% if long %>\end{longtable}
<% else %>\end{tabular}}%
\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi\par\smallskip
<% endif %><% if notes %>\noindent\begin{minipage}{0.97\linewidth}\footnotesize\raggedright
<% for note in notes %><< note | tex >>\par
<% endfor %>\end{minipage}
<% endif %><% if long %>}
<% if turned %>\end{landscape}
<% endif %><% else %>\end{<< "sidewaystable" if turned else "table" >>}
<% endif %>"""


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["tex"] = escape_tex
    return environment.from_string(_TEX)


def table_tex(table: Table, label: str) -> str:
    """Return the table as a LaTeX float with booktabs rules, or a longtable if it is long or high.

    It fits the text of a standard article page: in smaller print where it must, turned by 90
    degrees where that is not enough, and a float that is wider still is scaled down.
    """
    shown = cells(table)
    fit = fit_columns(table)
    long = len(table.rows) > LONGEST_ON_ONE_PAGE or is_too_high(table, fit)
    headings = [
        heading_lines(table, i, width and width / fit.character)
        for i, width in enumerate(fit.fixed)
    ]
    spanner_line, spanner_rules = _spanner_lines(table, fit)
    return _template().render(
        title=table.title,
        label=re.sub(r"[^A-Za-z0-9:.-]", "-", label),
        packages=",".join(_packages(long, fit.turned)),
        long=long,
        turned=fit.turned,
        size=fit.size,
        padding=f"{fit.padding:g}",
        layout="".join(_layout(column, width) for column, width in zip(table.columns, fit.fixed)),
        spanner_line=spanner_line,
        spanner_rules=spanner_rules,
        heading=" & ".join(
            _stack(lines, column.align[0]) for column, lines in zip(table.columns, headings)
        ),
        rows=[
            " & ".join(escape_tex(cell.text) if cell.span else "" for cell in row) for row in shown
        ],
        gaps={i for i, row in enumerate(shown) if i and table.stubs > 1 and row[0].span},
        notes=table.notes,
    )


def _packages(long: bool, turned: bool) -> list[str]:
    names = ["array", "booktabs", "longtable" if long else "graphicx"]
    return [*names, *(["pdflscape" if long else "rotating"] if turned else [])]


def _layout(column: Column, width: float | None) -> str:
    if width is None:
        return column.align[0]
    ragged = "raggedleft" if column.align == "right" else "raggedright"
    return rf">{{\{ragged}\arraybackslash}}p{{{width:.4g}pt}}"


def _stack(lines: list[str], align: str) -> str:
    if len(lines) == 1:
        return escape_tex(lines[0])
    joined = r"\\".join(escape_tex(line) for line in lines)
    return rf"\shortstack[{align}]{{{joined}}}"


def _spanner_lines(table: Table, fit: Fit) -> tuple[str, str]:
    line, rules, position = [], [], 0
    for text, count in spanners(table.columns):
        end = position + count
        room = sum(fit.widths[position:end]) + 2 * fit.padding * (count - 1)
        lines = folded_lines(text, room / fit.character)
        line.append(rf"\multicolumn{{{count}}}{{c}}{{{_stack(lines, 'c')}}}")
        if text:
            rules.append(rf"\cmidrule(lr){{{position + 1}-{end}}}")
        position = end
    return " & ".join(line), "".join(rules)
