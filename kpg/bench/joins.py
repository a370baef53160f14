"""One rule over several relations, joined in different ways: what X23 to X28 compare.

    rule([("name", "p n"), ("place", "p c")], "p n c")      relations with their variables, and what the head says
    joined = Joined(db, rule, "delta")                      binary, delta or hector
    joined.insert({"name": rows, ...}); joined.advance()

Rows are int64[n, 2]. The answer is kept as rows, or as a count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kpg.api.collection import Collection
from kpg.api.contracts import Database, Output
from kpg.bench.clocks import Clock
from kpg.bench.data.graphs import Ints
from kpg.query.datalog import parse
from kpg.query.ir.compile import compile
from kpg.query.lower.lower_program import LoweredProgram

Atoms = Sequence[tuple[str, str]]  # relation, its variables


@dataclass(frozen=True, slots=True)
class Rule:
    """The body and the head of a rule, by variables."""

    atoms: tuple[tuple[str, str], ...]
    head: str

    @property
    def text(self) -> str:
        """As Datalog."""
        declared = [
            f".decl {name}({', '.join(f'c{each}: number' for each in range(len(words.split())))})\n.input {name}\n"
            for name, words in dict(self.atoms).items()
        ]
        head = ", ".join(f"{word}: number" for word in self.head.split())
        body = ", ".join(f"{name}({', '.join(words.split())})" for name, words in self.atoms)
        answer = f".decl answer({head})\n.output answer\nanswer({', '.join(self.head.split())}) :- {body}."
        return "".join(declared) + answer


def rule(atoms: Atoms, head: str) -> Rule:
    """A rule whose head is `answer`."""
    return Rule(tuple(atoms), head)


class Joined:
    """A rule that is kept up to date in a db."""

    def __init__(self, db: Database, rule: Rule, way: str, count: bool = False) -> None:
        lowered = LoweredProgram(db, compile(parse(rule.text)), distinct_inputs=False, joins=way)
        answer: Collection = lowered.collections["answer"]
        self.db = db
        self.inputs = lowered.inputs_of_db()
        self.output: Output = (answer.count() if count else answer).output("the answer")

    def insert(self, rows: Mapping[str, Ints]) -> None:
        """Rows of some of the relations."""
        for name, each in rows.items():
            if len(each):
                self.inputs[name].insert(each)

    def advance(self) -> None:
        """One transaction of all that was inserted."""
        self.db.advance()

    def rows(self) -> Ints:
        """The answer, int64[columns, n], sorted by its columns."""
        table = self.output.snapshot()
        columns = np.stack([column.to_numpy() for column in table.columns])
        return columns[:, np.lexsort(columns[::-1])]


def epochs(relations: Mapping[str, Ints], tuples: int) -> list[dict[str, Ints]]:
    """The rows of all relations, side by side, in pieces of about so many tuples."""
    pieces = max(1, -(-sum(map(len, relations.values())) // tuples))
    cuts = {name: np.linspace(0, len(rows), pieces + 1).astype(np.int64) for name, rows in relations.items()}
    return [
        {name: rows[cuts[name][each] : cuts[name][each + 1]] for name, rows in relations.items()}
        for each in range(pieces)
    ]


def stream(joined: Joined, pieces: Sequence[Mapping[str, Ints]]) -> Clock:
    """Insert piece by piece; how long each takes until its answer is complete."""
    clock = Clock()
    for piece in pieces:
        with clock:
            joined.insert(piece)
            joined.advance()
    return clock


def attribute(ids: Ints, values: Ints) -> Ints:
    """Pairs (entity, value), int64[n, 2]."""
    return np.stack([ids, values], axis=1)
