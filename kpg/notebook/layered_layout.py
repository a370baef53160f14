"""Positions of boxes in layers: each edge goes down, except those that close a loop.

    layout = layered_layout([(width, height), ...], [(source, target), ...])
    layout.places[box]        the left upper corner of a box
    layout.paths[edge]        the points through which an edge goes, from the source to the target

A box is one layer below its lowest source. Within layers, sweeps move each box towards the mean of its neighbours,
which removes most crossings. An edge over several layers bends around the boxes between. Each of a fixed number of
sweeps costs the boxes and the layers that edges cross; finding loops costs the edges for each edge to an earlier box.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

SWEEPS = 6  # down and up in turn; later ones change little
COLUMN_GAP, LAYER_GAP = 28.0, 44.0  # pixels between boxes, and between layers
BACKWARD_SHIFT = 10.0  # pixels to the right: an edge and its reverse are two lines
BEND_WIDTH = 12.0  # pixels that an edge takes in a layer that it crosses
Point = tuple[float, float]
Edge = tuple[int, int]


@dataclass(slots=True)
class BoxLayout:
    """Where boxes and edges are, and the size of the whole drawing."""

    places: list[Point] = field(default_factory=list)
    paths: dict[Edge, list[Point]] = field(default_factory=dict)
    backward: set[Edge] = field(default_factory=set)  # edges that go up: they close a loop
    width: float = 0.0
    height: float = 0.0


def layered_layout(sizes: Sequence[tuple[float, float]], edges: Sequence[Edge]) -> BoxLayout:
    """Return positions for boxes of these sizes."""
    backward = closing_edges(len(sizes), edges)
    down = {edge: (edge[::-1] if edge in backward else edge) for edge in edges if edge[0] != edge[1]}
    layer_of = longest_paths(len(sizes), set(down.values()))
    widths = [width for width, _ in sizes]
    chains: dict[Edge, list[int]] = {}
    for edge in dict.fromkeys(down.values()):  # a bend in each layer that an edge crosses
        bends = range(len(widths), len(widths) + layer_of[edge[1]] - layer_of[edge[0]] - 1)
        layer_of += [layer_of[edge[0]] + number for number, _ in enumerate(bends, 1)]
        widths += [BEND_WIDTH] * len(bends)
        chains[edge] = [edge[0], *bends, edge[1]]
    centres, layers = arrange(layer_of, widths, chains)
    tops, heights = layer_tops(layers, [height for _, height in sizes])
    left = min((centres[box] - widths[box] / 2 for box in range(len(widths))), default=0.0)
    layout = BoxLayout(backward={edge for edge in edges if edge in backward or edge[0] == edge[1]})
    for box, (width, _) in enumerate(sizes):
        layout.places.append((centres[box] - width / 2 - left, tops[layer_of[box]]))
    for edge in edges:
        if edge[0] == edge[1]:
            continue
        chain = chains[down[edge]]
        points = [(centres[chain[0]] - left, tops[layer_of[chain[0]]] + sizes[chain[0]][1])]
        points += [(centres[bend] - left, tops[layer_of[bend]] + heights[layer_of[bend]] / 2) for bend in chain[1:-1]]
        points.append((centres[chain[-1]] - left, tops[layer_of[chain[-1]]]))
        if edge in backward:
            points = [(x + BACKWARD_SHIFT, y) for x, y in points[::-1]]
        layout.paths[edge] = points
    layout.width = max((centres[box] + widths[box] / 2 - left for box in range(len(widths))), default=0.0)
    layout.height = (tops[-1] + heights[-1]) if tops else 0.0
    return layout


def closing_edges(count: int, edges: Sequence[Edge]) -> set[Edge]:
    """Return edges without which there is no cycle: of a cycle, those that lead to an earlier box where possible."""
    targets: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        targets[source].append(target)
    closing = {edge for edge in edges if edge[1] < edge[0] and edge[0] in reachable(targets, edge[1])}
    for source, target in closing:
        targets[source] = [other for other in targets[source] if other != target]
    return closing | depth_first_closing(targets)


def reachable(targets: Sequence[Sequence[int]], start: int) -> set[int]:
    """Return the boxes that edges lead to from a box, itself included."""
    reached, stack = {start}, [start]
    while stack:
        new = [target for target in targets[stack.pop()] if target not in reached]
        reached.update(new)
        stack += new
    return reached


def depth_first_closing(targets: Sequence[Sequence[int]]) -> set[Edge]:
    """Return the edges that lead back to a box on the path to their source, in a search from the first box on."""
    closing: set[Edge] = set()
    state = [0] * len(targets)  # 1 while on the path, 2 when done
    for root in range(len(targets)):
        stack: list[tuple[int, Iterator[int]]] = []
        if not state[root]:
            state[root] = 1
            stack.append((root, iter(targets[root])))
        while stack:
            box, rest = stack[-1]
            target = next(rest, None)
            if target is None:
                state[box] = 2
                stack.pop()
            elif state[target] == 1:
                closing.add((box, target))
            elif state[target] == 0:
                state[target] = 1
                stack.append((target, iter(targets[target])))
    return closing


def longest_paths(count: int, edges: set[Edge]) -> list[int]:
    """Return the layer of each box: the length of the longest path to it. The edges have no cycle."""
    layer_of, missing = [0] * count, [0] * count
    targets: list[list[int]] = [[] for _ in range(count)]
    for source, target in sorted(edges):
        missing[target] += 1
        targets[source].append(target)
    ready = [box for box in range(count) if not missing[box]]
    for box in ready:
        for target in targets[box]:
            layer_of[target] = max(layer_of[target], layer_of[box] + 1)
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    return layer_of


def arrange(
    layer_of: Sequence[int], widths: Sequence[float], chains: dict[Edge, list[int]]
) -> tuple[list[float], list[list[int]]]:
    """Return the centre of each box, and the boxes of each layer from left to right."""
    layers: list[list[int]] = [[] for _ in range(max(layer_of, default=-1) + 1)]
    for box, layer in enumerate(layer_of):
        layers[layer].append(box)
    above: list[list[int]] = [[] for _ in layer_of]
    below: list[list[int]] = [[] for _ in layer_of]
    for chain in chains.values():
        for upper, lower in zip(chain, chain[1:], strict=False):
            above[lower].append(upper)
            below[upper].append(lower)
    centres = [0.0] * len(layer_of)
    for boxes in layers:
        spread(boxes, [0.0] * len(boxes), widths, centres)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for number in range(len(layers)) if down else reversed(range(len(layers))):
            neighbours = above if down else below
            wanted = {
                box: sum(centres[other] for other in neighbours[box]) / len(neighbours[box])
                if neighbours[box] else centres[box]
                for box in layers[number]
            }  # fmt: skip
            layers[number].sort(key=wanted.__getitem__)
            spread(layers[number], [wanted[box] for box in layers[number]], widths, centres)
    return centres, layers


def spread(layer: Sequence[int], wanted: Sequence[float], widths: Sequence[float], centres: list[float]) -> None:
    """Place the boxes of a layer in order, near the wanted centres and apart from each other."""
    position = -float("inf")
    shifts = []
    for box, centre in zip(layer, wanted, strict=True):
        centres[box] = max(centre, position + widths[box] / 2)
        position = centres[box] + widths[box] / 2 + COLUMN_GAP
        shifts.append(centres[box] - centre)
    if shifts:
        shift = sum(shifts) / len(shifts)  # boxes were only moved to the right
        for box in layer:
            centres[box] -= shift


def layer_tops(layers: Sequence[Sequence[int]], box_heights: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the upper end and the height of each layer; bends have no height."""
    heights = [max((box_heights[box] for box in layer if box < len(box_heights)), default=0.0) for layer in layers]
    tops, top = [], 0.0
    for height in heights:
        tops.append(top)
        top += height + LAYER_GAP
    return tops, heights
