"""The Datalog programs of the papers' experiments run unchanged as files, in the forms that engines publish."""

import re

import numpy as np
import pytest

from kpg.bench import programs
from kpg.query.datalog import parse
from kpg.query.datalog.run_files import run
from kpg.testing.datalog_oracle import evaluate

PUBLISHED = {
    "reach": """
        .decl Arc(x: number, y: number)
        .decl Id(x: number)
        .input Arc(filename="Arc.csv", delimiter=",")
        .input Id(filename="Id.csv", delimiter=",")
        .decl Reach(x: number)
        Reach(y) :- Id(y).
        Reach(y) :- Reach(x), Arc(x, y).
        .output Reach
    """,
    "transitive closure, right-linear": """
        .decl edge(x: number, y: number)
        .input edge
        .decl path(x: number, y: number)
        .output path
        path(x, y) :- edge(x, y).
        path(x, z) :- edge(x, y), path(y, z).
    """,
    "transitive closure, nonlinear, in components": """
        .comp Graph {
            .decl edge(x: number, y: number)
            .decl path(x: number, y: number)
            path(x, y) :- edge(x, y).
            path(x, z) :- path(x, y), path(y, z).
        }
        .init g = Graph
        .input g.edge(filename="edge.facts")
        .output g.path
    """,
    "same generation": """
        .type Person <: number
        .decl parent(child: Person, parent: Person)
        .input parent
        .decl sg(x: Person, y: Person)
        .output sg
        sg(x, y) :- parent(x, p), parent(y, p), x != y.
        sg(x, y) :- parent(x, a), sg(a, b), parent(y, b).
    """,
    "same generation, asked": """
        .pragma "magic-transform" "*"
        .decl person(x: number)
        .decl parent(child: number, parent: number)
        .input person, parent
        .decl samegen(x: number, y: number)
        samegen(x, x) :- person(x).
        samegen(x, y) :- parent(x, a), samegen(a, b), parent(y, b).
        .decl query(y: number)
        .output query
        query(y) :- samegen(3, y).
    """,
    "null pointers": """
        .decl nullEdge(x: number, y: number)
        .decl arc(x: number, y: number)
        .input nullEdge, arc
        .decl null(x: number, y: number)
        .output null
        null(x, y) :- nullEdge(x, y).
        null(x, y) :- null(x, w), arc(w, y).
    """,
    "aliases": """
        .decl Assign(x: int32, y: int32)
        .decl Dereference(x: int32, y: int32)
        .input Assign
        .input Dereference
        .decl ValueFlow(x: int32, y: int32)
        .decl MemoryAlias(x: int32, y: int32)
        .decl ValueAlias(x: int32, y: int32)
        ValueFlow(y, x) :- Assign(y, x).
        ValueFlow(x, y) :- Assign(x, z), MemoryAlias(z, y).
        ValueFlow(x, y) :- ValueFlow(x, z), ValueFlow(z, y).
        MemoryAlias(x, w) :- Dereference(y, x), ValueAlias(y, z), Dereference(z, w).
        ValueAlias(x, y) :- ValueFlow(z, x), ValueFlow(z, y).
        ValueAlias(x, y) :- ValueFlow(z, x), MemoryAlias(z, w), ValueFlow(w, y).
        ValueFlow(x, x) :- Assign(x, _).
        ValueFlow(x, x) :- Assign(_, x).
        MemoryAlias(x, x) :- Assign(_, x).
        MemoryAlias(x, x) :- Assign(x, _).
        .output ValueFlow, MemoryAlias, ValueAlias
    """,
    "points-to": """
        .decl addressOf(y: number, x: number)
        .decl assign(y: number, z: number)
        .decl load(y: number, x: number)
        .decl store(y: number, x: number)
        .input addressOf, assign, load, store
        .decl pointsTo(y: number, x: number)
        .output pointsTo
        pointsTo(y, x) :- addressOf(y, x).
        pointsTo(y, x) :- assign(y, z), pointsTo(z, x).
        pointsTo(y, w) :- load(y, x), pointsTo(x, z), pointsTo(z, w).
        pointsTo(z, w) :- store(y, x), pointsTo(y, z), pointsTo(x, w).
    """,
    "components": """
        .decl Arc(x: number, y: number)
        .input Arc
        .decl Least(x: number, y: number)
        Least(x, MIN(x)) :- Arc(x, _).
        Least(y, MIN(z)) :- Least(x, z), Arc(x, y).
        .decl Component(x: number)
        .output Component
        Component(y) :- Least(_, y).
    """,
    "shortest paths": """
        .decl Arc(x: number, y: number, d: number)
        .decl Id(x: number)
        .input Arc, Id
        .decl Distance(x: number, d: number)
        Distance(x, MIN(0)) :- Id(x).
        Distance(y, MIN(d + e)) :- Distance(x, d), Arc(x, y, e).
        .output Distance
    """,
    **{f"{name}.dl of the experiments": programs.path(name).read_text() for name in
       ("tc", "sg", "dataflow", "points_to", "points_to_optimised")},
}  # fmt: skip
NODES, ROWS = 12, 16


def rows_of(arity, seed):
    """Return distinct random rows."""
    rows = np.random.default_rng(seed).integers(0, NODES, (ROWS, arity)).tolist()
    return sorted({tuple(row) for row in rows})


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_program_has_the_answers_of_the_oracle(tmp_path, name):
    text = PUBLISHED[name]
    program, inputs, insert_only = parse(text), {}, len(name) % 2 == 0
    relations = program.by_name()
    for number, directive in enumerate(one for one in program.directives if one.kind == "input"):
        rows = inputs[directive.relation] = rows_of(relations[directive.relation].arity, number)
        file = directive.option("filename", f"{directive.relation}.facts")
        separator = directive.option("delimiter", "\t")
        (tmp_path / file).write_text("".join(separator.join(map(str, row)) + "\n" for row in rows))
    (tmp_path / "program.dl").write_text(text)
    run(tmp_path / "program.dl", facts=tmp_path, out=tmp_path, insert_only=insert_only)
    expected = evaluate(parse(text.replace("MIN(", "min(")), inputs)
    outputs = [one.relation for one in program.directives if one.kind == "output"]
    assert outputs and re.search(r"\.input", text)
    for name in outputs:
        lines = (tmp_path / f"{name}.csv").read_text().splitlines()
        assert {tuple(map(int, line.split("\t"))) for line in lines} == expected[name], name
