# SPDX-License-Identifier: Apache-2.0
"""The rows of tools/compare as a table, and as a chart in SVG."""

BAR_WIDTH, BAR_HEIGHT, LABEL_WIDTH = 420, 18, 330
COLOR, PEER_COLOR = "#2a6fbb", "#b0b0b0"


def figure(value):
    """-: too few were counted."""
    return "-" if value is None else f"{value:,.2f}"


def table(rows):
    """Its lines; what is told of one thing stands together."""
    head = ["what", "transport", "subject", "median", "unit", "least", "most", "of best peer"]
    cells = [[r["what"], r["transport"], r["subject"], figure(r["value"]), r["unit"],
              figure(min(r["samples"], default=None)), figure(max(r["samples"], default=None)),
              "-" if r["ratio_to_best_peer"] is None else f"{r['ratio_to_best_peer']:.3f}"] for r in rows]
    widths = [max(len(line[i]) for line in [head, *cells]) for i in range(len(head))]
    before = None
    for line in [head, *cells]:
        if before not in (None, line[0]):
            yield ""
        before = line[0]
        yield "  ".join(c.rjust(w) if i in (3, 5, 6, 7) else c.ljust(w)
                        for i, (c, w) in enumerate(zip(line, widths))).rstrip()


def svg(rows):
    """A bar for each row, in groups; each group has its own scale."""
    parts, y = [], 10
    for what in dict.fromkeys(r["what"] for r in rows):
        group = [r for r in rows if r["what"] == what]
        top = max(r["value"] or 0 for r in group)
        parts.append(f'<text x="10" y="{y + 14}" font-weight="bold">{what}{", " * bool(group[0]["unit"])}'
                     f'{group[0]["unit"]}</text>')
        y += BAR_HEIGHT + 6
        for r in group:
            width = BAR_WIDTH * max(0.0, r["value"] or 0) / top if top > 0 else 0.0
            color = COLOR if r["subject"] == "shunt" else PEER_COLOR
            parts.append(f'<text x="{LABEL_WIDTH - 8}" y="{y + 13}" text-anchor="end">{r["subject"]} '
                         f'({r["transport"]})</text><rect x="{LABEL_WIDTH}" y="{y}" width="{width:.1f}" '
                         f'height="{BAR_HEIGHT - 4}" fill="{color}"/><text x="{LABEL_WIDTH + width + 6:.1f}" '
                         f'y="{y + 13}">{figure(r["value"])}</text>')
            y += BAR_HEIGHT
        y += 12
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{LABEL_WIDTH + BAR_WIDTH + 120}" height="{y}" '
            f'font-family="sans-serif" font-size="12">\n' + "\n".join(parts) + "\n</svg>\n")
