"""A table as LaTeX with booktabs rules: a float that fits the text width, or a longtable."""

from __future__ import annotations

import re
import textwrap
from functools import cache

import jinja2

from vlmfair.render.table import Column, Table, cells, spanners

LONGEST_ON_ONE_PAGE = 45
# How many average characters fit on a line of 6.5 inches, per font size, from large to small.
_SIZES = (("small", 100), ("footnotesize", 113), ("scriptsize", 130))
_INCH = 16.0  # characters per inch at the smaller sizes
_LONG_NAME = 16

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
_TEX = r"""% Needs \usepackage{array,booktabs}<% if long %> and \usepackage{longtable}<% endif %>.
<% if long %>{\<< size >>\setlength{\tabcolsep}{<< padding >>pt}
\begin{longtable}{<< layout >>}
\caption{<< title | tex >>}\label{<< label >>}\tabularnewline
\toprule
<% else %>\begin{table}[tbp]
\centering\<< size >>\setlength{\tabcolsep}{<< padding >>pt}
\caption{<< title | tex >>}\label{<< label >>}
\begin{tabular}{<< layout >>}
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
<% else %>\end{tabular}\par\smallskip
<% endif %><% if notes %>\begin{minipage}{0.97\linewidth}\footnotesize
<% for note in notes %><< note | tex >>\par
<% endfor %>\end{minipage}
<% endif %><% if long %>}
<% else %>\end{table}
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
    """Return the table as a LaTeX float with booktabs rules, or a longtable if it is long."""
    shown = cells(table)
    headings = [_heading_lines(table, i) for i in range(len(table.columns))]
    widths = [
        _width(table, column, i, lines)
        for i, (column, lines) in enumerate(zip(table.columns, headings))
    ]
    size, wrapped = _fit(table, widths)
    spanner_line, spanner_rules = _spanner_lines(table, widths)
    return _template().render(
        title=table.title,
        label=re.sub(r"[^A-Za-z0-9:.-]", "-", label),
        long=len(table.rows) > LONGEST_ON_ONE_PAGE,
        size=size,
        padding=6 if size == "small" else 3,
        layout="".join(_layout(column, i in wrapped) for i, column in enumerate(table.columns)),
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


def _heading_lines(table: Table, position: int) -> list[str]:
    """Return a heading broken so that it is not much wider than the column's cells."""
    column = table.columns[position]
    if column.width is not None:
        return textwrap.wrap(column.label, round(column.width * _INCH)) or [""]
    longest = max((len(row[position]) for row in table.rows), default=0)
    return textwrap.wrap(column.label, max(longest, 7), break_long_words=False) or [""]


def _width(table: Table, column: Column, position: int, heading: list[str]) -> float:
    if column.width is not None:
        return column.width * _INCH
    texts = [*heading, *(row[position] for row in table.rows)]
    return max(map(len, texts))


def _fit(table: Table, widths: list[float]) -> tuple[str, set[int]]:
    """Return the font size and the columns of row names that must wrap to fit the text width."""
    long_names = {i for i in range(table.stubs) if widths[i] > _LONG_NAME}
    for wrapped in (set(), long_names):
        total = sum(_LONG_NAME if i in wrapped else width for i, width in enumerate(widths))
        for size, capacity in _SIZES[:2] if not wrapped else _SIZES:
            if total + len(widths) * (2.6 if size == "small" else 1.5) <= capacity:
                return size, wrapped
    return _SIZES[-1][0], long_names


def _layout(column: Column, wrapped: bool) -> str:
    if not wrapped and column.width is None:
        return column.align[0]
    ragged = "raggedleft" if column.align == "right" else "raggedright"
    width = column.width if column.width is not None else _LONG_NAME / _INCH
    return rf">{{\{ragged}\arraybackslash}}p{{{width:g}in}}"


def _stack(lines: list[str], align: str) -> str:
    if len(lines) == 1:
        return escape_tex(lines[0])
    joined = r"\\".join(escape_tex(line) for line in lines)
    return rf"\shortstack[{align}]{{{joined}}}"


def _spanner_lines(table: Table, widths: list[float]) -> tuple[str, str]:
    line, rules, position = [], [], 0
    for text, count in spanners(table.columns):
        end = position + count
        room = max(round(sum(widths[position:end])) + 2 * count, 12)
        lines = textwrap.wrap(text, room) or [""]
        line.append(rf"\multicolumn{{{count}}}{{c}}{{{_stack(lines, 'c')}}}")
        if text:
            rules.append(rf"\cmidrule(lr){{{position + 1}-{end}}}")
        position = end
    return " & ".join(line), "".join(rules)
