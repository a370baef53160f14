"""Draw the graph of an explanation as SVG: boxes in layers, data flows down, an edge that closes a loop is dashed.

The drawing loads nothing, runs no script, and escapes all names. A graph of more than MAX_BOXES boxes is not drawn.
"""

from __future__ import annotations

from html import escape

from kpg.api.explanation import ExplainedGraph, GraphBox
from kpg.notebook.layered_layout import BoxLayout, Point, layered_layout

MAX_BOXES = 150  # more cannot be read, and take long to place
MAX_LINES, MAX_CHARACTERS = 8, 42  # of a box
CHARACTER_WIDTH, LINE_HEIGHT, PADDING = 7.0, 16.0, 8.0  # pixels, of the font below
MARGIN = 10.0
FILLS = {"operators": "#eef2fb", "arrangement": "#eaf6ea", "dataflow": "#eef2fb"}
BUSY_FILL = "#fde9c9"
STROKE, TEXT = "#5b6b8c", "#1c2333"


def draw(graph: ExplainedGraph) -> str | None:
    """Return the drawing; None if the graph is too large for one."""
    if not graph.boxes or len(graph.boxes) > MAX_BOXES:
        return None
    texts = [box_lines(box) for box in graph.boxes]
    layout = layered_layout([box_size(lines) for lines in texts], graph.edges)
    width, height = layout.width + 2 * MARGIN, layout.height + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{-MARGIN:.0f} {-MARGIN:.0f} {width:.0f} {height:.0f}" '
        'font-family="ui-monospace, monospace" font-size="12" role="img" aria-label="dataflow graph">',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{STROKE}"/></marker></defs>',
        f'<rect x="{-MARGIN:.0f}" y="{-MARGIN:.0f}" width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
    ]
    parts += [draw_edge(layout, edge) for edge in dict.fromkeys(graph.edges) if edge in layout.paths]
    parts += [draw_box(box, lines, place) for box, lines, place in zip(graph.boxes, texts, layout.places, strict=True)]
    return "".join([*parts, "</svg>"])


def box_lines(box: GraphBox) -> list[str]:
    """Return the lines of a box, shortened."""
    lines = [line if len(line) <= MAX_CHARACTERS else line[: MAX_CHARACTERS - 1] + "…" for line in box.lines]
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - 2], f"… {len(lines) - MAX_LINES + 1} more", lines[-1]]
    return lines


def box_size(lines: list[str]) -> tuple[float, float]:
    """Return the width and height of a box with some lines."""
    return max(map(len, lines)) * CHARACTER_WIDTH + 2 * PADDING, len(lines) * LINE_HEIGHT + 2 * PADDING


def draw_box(box: GraphBox, lines: list[str], place: Point) -> str:
    """Draw one box; its tooltip has the whole names."""
    (left, top), (width, height) = place, box_size(lines)
    fill = BUSY_FILL if box.busy else FILLS[box.kind]
    rounding = 10 if box.kind == "arrangement" else 3
    rows = "".join(
        f'<text x="{left + PADDING:.1f}" y="{top + PADDING + (number + 0.75) * LINE_HEIGHT:.1f}" fill="{TEXT}">'
        f"{escape(line)}</text>"
        for number, line in enumerate(lines)
    )
    title = escape("\n".join(box.lines))
    return (
        f'<g><title>{title}</title><rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="{rounding}" fill="{fill}" stroke="{STROKE}"/>{rows}</g>'
    )


def draw_edge(layout: BoxLayout, edge: tuple[int, int]) -> str:
    """Draw one edge as a curve through its points."""
    points = layout.paths[edge]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in zip(points, points[1:], strict=False):
        middle = (y0 + y1) / 2
        path += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    dashes = ' stroke-dasharray="5 4"' if edge in layout.backward else ""
    return f'<path d="{path}" fill="none" stroke="{STROKE}"{dashes} marker-end="url(#head)"/>'
