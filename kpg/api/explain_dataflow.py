"""Explanations as plain text: one block for each arrangement, then the operators of a query.

    edges by src
      columns    src: int64, dst: int64; key src
      holds      2 rows in 1 batch, 48 bytes, since 0, complete to 1
      shared by  answer
      pinned by  input edges         at 0
                 answer: join (left) at 1

    answer · 22 operators · idle
      output answer ← arrange at, root ← join
      ├─ arrange root, at ← ...

A tree reads from the answer back to its inputs; `#7` refers to a branch that was shown before, or closes a loop. On
several workers, `(by key)` follows an operator that receives rows from all of them by their key, and `(broadcast)` one
that receives all rows of all of them. The cost is one visit of every operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kpg.api.database_description import ArrangementInfo, HandleInfo, indexes, state_of
from kpg.api.explanation import ExplainedGraph, Explanation, GraphBox
from kpg.api.times import show_frontier
from kpg.dataflow.channel import BroadcastPact, ExchangePact
from kpg.dataflow.graph import Dataflow
from kpg.dataflow.operator import Operator

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase

LINE_WIDTH = 116  # characters: fits a terminal of 120 columns with its margins
MAX_NAMES = 12  # of sharing dataflows that are listed; the others are counted
CHAIN_WIDTH = LINE_WIDTH - 30  # leaves room for the branches of a tree to the left
UNITS = ("bytes", "kB", "MB", "GB", "TB")


def explain_database(db: EmbeddedDatabase) -> Explanation:
    """Describe all arrangements, then each dataflow in a line."""
    shown = [index for index in indexes(db) if not is_empty_error_index(index)]
    total = sum(index.nbytes for index in shown)
    at = f"open at {show_frontier(db.time)}"
    title = f"db · {at} · {count(len(shown), 'arrangement')}, {size(total)} · {count(len(db.symbols), 'symbol')}"
    dataflows = [dataflow for _, dataflow in sorted(db.worker.dataflows.items())]
    lines = [[dataflow.name, count(len(dataflow.operators), "operator"), state_of(dataflow)] for dataflow in dataflows]
    blocks = [title, *map(block, shown)]
    text = "\n\n".join(blocks + ["\n".join(align_rows(["dataflow", "", ""], lines))] if lines else blocks)
    return Explanation(text, database_graph(shown, dataflows))


def explain_dataflow(db: EmbeddedDatabase, dataflow: Dataflow) -> Explanation:
    """Describe the arrangements that a query keeps or shares, then its operators."""
    shown = [index for index in indexes(db, dataflow) if not is_empty_error_index(index)]
    title = f"{dataflow.name} · {count(len(dataflow.operators), 'operator')} · {state_of(dataflow)}"
    lines = [f"  {line}" for line in (*dict.fromkeys(dataflow.notes), *tree(dataflow))]
    text = "\n\n".join([*map(block, shown), "\n".join([title, *lines])])
    return Explanation(text, dataflow_graph(dataflow))


def is_empty_error_index(index: ArrangementInfo) -> bool:
    """Return whether an arrangement holds the errors of a dataflow and is empty. Explanations leave it out."""
    return not index.rows and index.name.startswith("errors of ")


# Arrangements


def block(index: ArrangementInfo) -> str:
    """Describe one arrangement: its columns, size, readers and handles."""
    lines = [f"{index.name} (of {index.dataflow})" if index.private else index.name]
    lines.append(f"  columns    {', '.join(index.columns)}; key {', '.join(index.keys) or 'none'}")
    lines.append(
        f"  holds      {count(index.rows, 'row')} in {count(index.batches, 'batch', 'batches')}, {size(index.nbytes)}, "
        f"since {show_frontier(index.since)}, complete to {show_frontier(index.upper)}"
    )
    lines += fold_names("  shared by  ", index.shared_by)
    width = max((len(pin.by) for pin in index.pins), default=0)
    for number, pin in enumerate(index.pins):
        lines.append(f"  {'pinned by' if not number else '':<9}  {pin.by:<{width}} at {position(pin)}")
    return "\n".join(lines)


def position(pin: HandleInfo) -> str:
    """Return how far back a handle holds times, and from where on it keeps batches apart, if it does."""
    apart = f", batches apart from {show_frontier(pin.physical)} on" if pin.apart else ""
    return show_frontier(pin.since) + apart


def fold_names(start: str, names: Sequence[str]) -> list[str]:
    """Write names after a label, on several lines if needed; count the names beyond the first few."""
    if not names:
        return []
    shown = list(names[:MAX_NAMES]) + ([f"and {len(names) - MAX_NAMES:,} more"] if len(names) > MAX_NAMES else [])
    lines, indent = [start], " " * len(start)
    for number, name in enumerate(shown, 1):
        text = name + (", " if number < len(shown) else "")
        if len(lines[-1]) + len(text) > LINE_WIDTH and lines[-1].strip():
            lines.append(indent)
        lines[-1] += text
    return [line.rstrip() for line in lines]


def align_rows(head: list[str], rows: list[list[str]]) -> list[str]:
    """Write rows under a head, in columns."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return ["  ".join(f"{text:<{n}}" for text, n in zip(row, widths, strict=True)).rstrip() for row in [head, *rows]]


# Operators

Senders = dict[Operator, list[Operator]]
Ways = dict[Operator, str]


def tree(dataflow: Dataflow) -> list[str]:
    """Draw the operators of a dataflow, from its ends back to its sources."""
    senders, ways = senders_of(dataflow), ways_of(dataflow)
    ends = [operator for operator in dataflow.operators if not any(operator.channels)]
    drawn: set[Operator] = set()
    return [line for end in reversed(ends) for line in branch(end, senders, ways, drawn)]


def senders_of(dataflow: Dataflow) -> Senders:
    """Return, for each operator, the operators that send to it."""
    senders: Senders = {operator: [] for operator in dataflow.operators}
    for operator in dataflow.operators:
        for port in operator.channels:
            for channel in port:
                senders[channel.target].append(operator)
    return senders


def branch(operator: Operator, senders: Senders, ways: Ways, drawn: set[Operator]) -> Iterator[str]:
    """Draw an operator and its predecessors: a chain on one line, then a branch for each input of the chain's start."""
    chain = [operator]
    while len(senders[chain[-1]]) == 1 and senders[chain[-1]][0] not in drawn.union(chain):
        chain.append(senders[chain[-1]][0])
    drawn.update(chain)
    yield from wrap_names([label(member) + ways.get(member, "") for member in chain])
    inputs = senders[chain[-1]]
    for number, source in enumerate(inputs, 1):
        corner, side = ("└─ ", "   ") if number == len(inputs) else ("├─ ", "│  ")
        lines = [f"see #{source.index}"] if source in drawn else branch(source, senders, ways, drawn)
        for row, line in enumerate(lines):
            yield (side if row else corner) + line


def label(operator: Operator) -> str:
    """Return the name of an operator, with its number if several read it: its branch is drawn once."""
    return operator.name + (f" #{operator.index}" if sum(map(len, operator.channels)) > 1 else "")


def ways_of(dataflow: Dataflow) -> Ways:
    """Return how rows of other workers reach each operator that receives some."""
    ways: Ways = {}
    if dataflow.worker.peers > 1:
        for channel in dataflow.channels:
            if isinstance(channel.pact, BroadcastPact):
                ways[channel.target] = " (broadcast)"
            elif isinstance(channel.pact, ExchangePact):
                ways[channel.target] = " (by key)"
    return ways


def wrap_names(names: list[str]) -> list[str]:
    """Write the names of a chain on lines of bounded length."""
    lines = [names[0]]
    for name in names[1:]:
        if len(lines[-1]) + len(name) > CHAIN_WIDTH:
            lines.append("  ")
        lines[-1] += f" ← {name}" if lines[-1].strip() else f"← {name}"
    return lines


# Graphs


def database_graph(shown: Sequence[ArrangementInfo], dataflows: Sequence[Dataflow]) -> ExplainedGraph:
    """Return a box for each dataflow and each arrangement, with edges from its dataflow and to those that share it."""
    boxes = [GraphBox((dataflow.name,), "dataflow", dataflow.is_busy) for dataflow in dataflows]
    numbers = {dataflow.name: number for number, dataflow in enumerate(dataflows)}
    edges: list[tuple[int, int]] = []
    for index in shown:
        if index.private and not index.shared_by:
            continue
        number = len(boxes)
        boxes.append(GraphBox((index.name, f"{count(index.rows, 'row')}, {size(index.nbytes)}"), "arrangement"))
        edges.append((numbers[index.dataflow], number))
        edges += [(number, numbers[name]) for name in index.shared_by if name in numbers]
    return ExplainedGraph(tuple(boxes), tuple(edges))


def dataflow_graph(dataflow: Dataflow) -> ExplainedGraph:
    """Return a box for each chain of operators, with edges in the direction of the data."""
    senders = senders_of(dataflow)
    receivers = {operator: [c.target for port in operator.channels for c in port] for operator in dataflow.operators}
    box_of: dict[Operator, int] = {}
    chains: list[list[Operator]] = []
    for operator in dataflow.operators:
        before = senders[operator]
        follows = len(before) == 1 and len(receivers[before[0]]) == 1 and before[0] in box_of
        if follows and chains[box_of[before[0]]][-1] is before[0]:
            chains[box_of[before[0]]].append(operator)
            box_of[operator] = box_of[before[0]]
        else:
            box_of[operator] = len(chains)
            chains.append([operator])
    edges = [
        (box_of[source], box_of[target])
        for source, targets in receivers.items()
        for target in targets
        if box_of[source] != box_of[target] or chains[box_of[source]][-1] is source
    ]
    boxes = (GraphBox(tuple(o.name for o in chain), "operators", any(o.scheduled for o in chain)) for chain in chains)
    return ExplainedGraph(tuple(boxes), tuple(dict.fromkeys(edges)))


# Words


def count(n: int, singular: str, plural: str | None = None) -> str:
    """Write a number with its noun."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def size(nbytes: float) -> str:
    """Write a number of bytes in a unit that keeps it short."""
    for unit in UNITS[:-1]:
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}" if unit == "bytes" or nbytes >= 100 else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} {UNITS[-1]}"
