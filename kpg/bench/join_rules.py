"""One rule over several relations, joined in different ways: what Q4 and X23 to X28 compare.

    rule([("name", "p n"), ("place", "p c")], "p n c")      relations with their variables, and the head
    join = InstalledJoin(db, rule, "delta")                 binary, delta or hector
    join.insert({"name": rows, ...}); join.advance()

Rows are int64[n, 2]. The answer is kept as rows, or as a count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kpg.api.collection import Collection
from kpg.api.contracts import Database, Output
from kpg.bench.data.graphs import Ints
from kpg.bench.measure import Stopwatch
from kpg.query.datalog import parse
from kpg.query.ir.compile import compile
from kpg.query.lower.lower_program import LoweredProgram

RuleAtoms = Sequence[tuple[str, str]]  # relation, its variables


@dataclass(frozen=True, slots=True)
class JoinRule:
    """The body and the head of a rule, as variables."""

    atoms: tuple[tuple[str, str], ...]
    head: str

    @property
    def text(self) -> str:
        """The rule as Datalog, with its declarations."""
        declared = [
            f".decl {name}({', '.join(f'c{index}: number' for index in range(len(words.split())))})\n.input {name}\n"
            for name, words in dict(self.atoms).items()
        ]
        head = ", ".join(f"{word}: number" for word in self.head.split())
        body = ", ".join(f"{name}({', '.join(words.split())})" for name, words in self.atoms)
        answer = f".decl answer({head})\n.output answer\nanswer({', '.join(self.head.split())}) :- {body}."
        return "".join(declared) + answer


def rule(atoms: RuleAtoms, head: str) -> JoinRule:
    """Return a rule with the head `answer`."""
    return JoinRule(tuple(atoms), head)


class InstalledJoin:
    """A rule that a db keeps up to date."""

    def __init__(self, db: Database, rule: JoinRule, joins: str, count: bool = False) -> None:
        lowered = LoweredProgram(db, compile(parse(rule.text)), distinct_inputs=False, joins=joins)
        answer: Collection = lowered.collections["answer"]
        self.db = db
        self.inputs = lowered.inputs_of_db()
        self.output: Output = (answer.count() if count else answer).output("the answer")

    def insert(self, rows: Mapping[str, Ints]) -> None:
        """Insert rows of some of the relations."""
        for name, relation_rows in rows.items():
            if len(relation_rows):
                self.inputs[name].insert(relation_rows)

    def advance(self) -> None:
        """Commit all insertions as one transaction."""
        self.db.advance()

    def rows(self) -> Ints:
        """Return the answer, int64[columns, n], sorted by its columns."""
        table = self.output.snapshot()
        columns = np.stack([column.to_numpy() for column in table.columns])
        return columns[:, np.lexsort(columns[::-1])]


def epochs(relations: Mapping[str, Ints], tuples: int) -> list[dict[str, Ints]]:
    """Divide the rows of all relations into epochs of about `tuples` rows, each with a part of every relation."""
    count = max(1, -(-sum(map(len, relations.values())) // tuples))
    cuts = {name: np.linspace(0, len(rows), count + 1).astype(np.int64) for name, rows in relations.items()}
    return [
        {name: rows[cuts[name][epoch] : cuts[name][epoch + 1]] for name, rows in relations.items()}
        for epoch in range(count)
    ]


def insert_epochs(join: InstalledJoin, epochs: Sequence[Mapping[str, Ints]]) -> Stopwatch:
    """Insert epoch by epoch; measure each until its answer is complete."""
    stopwatch = Stopwatch("an epoch")
    for rows in epochs:
        with stopwatch:
            join.insert(rows)
            join.advance()
    return stopwatch


def attribute(ids: Ints, values: Ints) -> Ints:
    """Return pairs (entity, value), int64[n, 2]."""
    return np.stack([ids, values], axis=1)
