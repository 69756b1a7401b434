"""A table as HTML: a fragment for the report page, or a page of its own."""

from __future__ import annotations

from functools import cache

import jinja2
from markupsafe import Markup

from vlmfair.render.table import Table, cells, spanners

# Pixels of a character in a cell, of one in a heading, which is bold, and beside a cell.
_CHARACTER, _BOLD_CHARACTER, _PADDING = 8.0, 9.0, 17.0
_WRAPPED = 24  # characters that text which wraps gets at least

_HTML = """\
{% macro kind(cell) %}{{ cell.align }}{% if cell.wraps %} wraps{% endif %}{% endmacro %}\
<table class="numbers" data-rows="{{ rows | length }}" data-width="{{ width }}">
<caption>{{ title }}</caption>
<thead>
{% if spanners %}<tr>{% for text, width in spanners %}\
{% if text %}<th colspan="{{ width }}" scope="colgroup" class="spanner">{{ text }}</th>\
{% else %}<td colspan="{{ width }}"></td>{% endif %}{% endfor %}</tr>
{% endif %}<tr>{% for column in columns %}\
<th scope="col" class="{{ column.align }}">{{ column.label }}</th>{% endfor %}</tr>
</thead>
<tbody>
{% for row in rows %}<tr>{% for cell in row if cell.span %}\
{% if cell.stub %}<th scope="{{ 'row' if cell.span == 1 else 'rowgroup' }}"\
{% if cell.span > 1 %} rowspan="{{ cell.span }}"{% endif %} class="{{ kind(cell) }}">\
{{ cell.text }}</th>{% else %}<td class="{{ kind(cell) }}">{{ cell.text }}</td>{% endif %}\
{% endfor %}</tr>
{% endfor %}</tbody>
{% if notes %}<tfoot><tr><td colspan="{{ columns | length }}">\
{% for note in notes %}<p>{{ note }}</p>{% endfor %}</td></tr></tfoot>
{% endif %}</table>
"""

TABLE_STYLE = """\
table.numbers { border-collapse: collapse; font-variant-numeric: tabular-nums; }
table.numbers caption { text-align: left; font-weight: 600; padding: 0 0 .5em; }
table.numbers th, table.numbers td { padding: .22em .6em; vertical-align: top; }
table.numbers thead { border-top: 2px solid #222; border-bottom: 1px solid #222; }
table.numbers thead th { vertical-align: bottom; font-weight: 600; max-width: 9em; }
table.numbers thead .spanner { text-align: center; border-bottom: 1px solid #999; max-width: none; }
table.numbers tbody { border-bottom: 2px solid #222; }
table.numbers tbody th { font-weight: normal; }
table.numbers tbody th, table.numbers tbody td { white-space: nowrap; }
table.numbers tbody .wraps { white-space: normal; }
table.numbers th[rowspan], table.numbers th[rowspan] ~ * { border-top: 1px solid #ccc; }
table.numbers .left { text-align: left; }
table.numbers .center { text-align: center; }
table.numbers .right { text-align: right; }
table.numbers tfoot td { font-size: .86em; color: #444; padding-top: .6em; }
table.numbers tfoot p { margin: 0 0 .25em; width: 0; min-width: 100%; }
"""

_HTML_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; color: #111; background: #fff; margin: 1.5em; }
{{ style }}</style>
</head>
<body>
{{ table }}</body>
</html>
"""


@cache
def _templates() -> tuple[jinja2.Template, jinja2.Template]:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(_HTML), environment.from_string(_HTML_PAGE)


def table_html(table: Table) -> str:
    """Return the table as an HTML fragment, everything escaped, to be put into a page."""
    fragment, _ = _templates()
    return fragment.render(
        width=_estimated_width(table),
        title=table.title,
        spanners=spanners(table.columns),
        columns=table.columns,
        rows=cells(table),
        notes=table.notes,
    )


def _estimated_width(table: Table) -> int:
    """Return about how many pixels wide the table is shown at a font size of 14 pixels."""
    width = 0.0
    for position, column in enumerate(table.columns):
        longest = max((len(row[position]) for row in table.rows), default=0)
        word = max(map(len, column.label.split()), default=0)
        cells = min(longest, _WRAPPED) if column.width is not None else longest
        width += max(cells * _CHARACTER, word * _BOLD_CHARACTER) + _PADDING
    return round(width)


def table_page(table: Table) -> str:
    """Return the table as a whole HTML page that loads nothing from elsewhere."""
    _, page = _templates()
    return page.render(
        title=table.title, style=Markup(TABLE_STYLE), table=Markup(table_html(table))
    )
