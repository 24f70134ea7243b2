# SPDX-License-Identifier: Apache-2.0
# Tables of fields in a decoder's source (ctrl/res/fields.h), and what docs/xds.md shows of them.
import itertools
import re
from typing import NamedTuple

TABLE = re.compile(r"^static const struct res_field (\w+)\[\] = \{\n(.*?)^\};", re.M | re.S)
ROW = re.compile(r'^\t\{([A-Z_]+)\(((?:[^"()]|"[^"]*")*)\)\},$', re.M)
IGNORED = "ignored"


class Row(NamedTuple):
    field: str
    kind: str  # READ, INSIDE, IGNORED, REFUSED or REFUSED_UNLESS
    how: str  # it is read; "" = not at all
    refused: str  # when it is; "" = never


def message_name(table):
    return "".join(word.title() for word in table.split("_"))


def row_of(kind, arguments):
    """None = it has not what its kind has."""
    names = re.findall(r"\w+", re.sub(r'"[^"]*"', "", arguments))
    literals = re.findall(r'"[^"]*"|,', arguments)
    texts = ["".join(text.strip('"') for text in group)
             for comma, group in itertools.groupby(literals, ",".__eq__) if not comma]
    if kind == "IGNORED" and (len(names), len(texts)) == (1, 0):
        return Row(names[0], kind, IGNORED, "")
    if kind == "REFUSED" and (len(names), len(texts)) == (1, 1):
        return Row(names[0], kind, "", *texts)
    if kind in ("READ", "INSIDE", "REFUSED_UNLESS") and (len(names), len(texts)) == (2, 2):
        return Row(names[0], kind, *texts)
    return None


def tables(source):
    """{message: [Row]} of a source, those first that others are inside of; ValueError = a row is none."""
    found = {}
    for table, body in TABLE.findall(source):
        rows = [row_of(*m) for m in ROW.findall(body)]
        if None in rows or len(rows) != body.count("\t{"):
            raise ValueError(f"{table} has a row that is not understood")
        found[message_name(table)] = rows
    return dict(reversed(found.items()))


def page(source):
    """Tables in Markdown, one a message; fields that stand together and are treated alike share a row."""
    parts = []
    for message, rows in tables(source).items():
        lines = [f"| of `{message}` | read as | refused (NACK) |", "|---|---|---|"]
        for (how, refused), group in itertools.groupby(rows, lambda row: (row.how, row.refused)):
            cells = [", ".join(f"`{row.field}`" for row in group), how, refused]
            lines.append("|" + "".join(f" {cell} |" if cell else " |" for cell in cells))
        parts.append("\n".join(lines))
    return "\n\n".join(parts).replace("](docs/", "](")  # as links of a page in docs


def proto_fields(proto):
    """{message: [field]} of a .proto file, messages inside of others too, those of a oneof as the rest."""
    found, open_messages = {}, []
    for line in proto.split("\n"):
        m = re.match(r"\s*(message|enum|oneof) (\w+) \{", line)
        if m:
            open_messages.append(m[2] if m[1] == "message" else None if m[1] == "enum" else open_messages[-1])
            if m[1] == "message":
                found.setdefault(m[2], [])
        elif line.strip() == "}":
            open_messages.pop()
        else:
            m = re.match(r"\s*(?:repeated )?[\w.]+ (\w+) = \d+;", line)
            if m and open_messages and open_messages[-1]:
                found[open_messages[-1]].append(m[1])
    return found
