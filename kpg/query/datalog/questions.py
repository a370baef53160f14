"""Questions with arguments, as they are asked on the command line: `path("a", _)`.

    asked = questions(program, ['path("a", _)', 'path("b", _)'])
    asked.program      the program with what is asked for as its only outputs
    asked.bound        {"path": ("x",)}
    asked.arguments    {"path": [("a",), ("b",)]}

Constants are arguments; variables and `_` are what is asked for. Questions about one relation have their constants in
the same columns, since they are one dataflow.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kpg.errors import ParseError, ProgramError, TypeMismatch, UndefinedName
from kpg.query.datalog.parser import parse
from kpg.query.ir.literals import Atom, Conjunction
from kpg.query.ir.program import Directive, Program, Relation
from kpg.query.ir.terms import ConstantTerm, Term, Value
from kpg.query.source_text import did_you_mean


@dataclass(slots=True)
class Questions:
    """A program and what is asked of it."""

    program: Program
    bound: dict[str, tuple[str, ...]] = field(default_factory=dict)
    arguments: dict[str, list[tuple[Value, ...]]] = field(default_factory=dict)

    def ask(self, atom: Atom, text: str) -> None:
        """One more question."""
        relation = self._relation(atom, text)
        given = [(c, t) for c, t in zip(relation.columns, atom.arguments, strict=True) if isinstance(t, ConstantTerm)]
        columns = tuple(column.name for column, _ in given)
        if self.bound.setdefault(relation.name, columns) != columns:
            raise ProgramError(
                f"questions about {relation.name} with constants in different columns",
                detail=f"{text} asks by {', '.join(columns) or 'nothing'}, another by "
                f"{', '.join(self.bound[relation.name]) or 'nothing'}.",
                hint="Ask them in runs of their own.",
            )
        row = tuple(converted(term, column.kind, text) for column, term in given)
        rows = self.arguments.setdefault(relation.name, [])
        if row and row not in rows:
            rows.append(row)

    def _relation(self, atom: Atom, text: str) -> Relation:
        relations = self.program.by_name()
        if atom.relation not in relations:
            raise UndefinedName(f"no relation is called {atom.relation!r}", hint=did_you_mean(atom.relation, relations))
        relation = relations[atom.relation]
        if len(atom.arguments) != relation.arity:
            raise ProgramError(f"{relation.name} has {relation.arity} columns, {text} has {len(atom.arguments)}")
        return relation


def questions(program: Program, texts: list[str]) -> Questions:
    """A parsed program with questions about it."""
    asked = Questions(program)
    for text in texts:
        asked.ask(atom_of(text), text)
    outputs = [each for each in program.directives if each.kind == "output" and each.relation in asked.bound]
    missing = [name for name in asked.bound if name not in {each.relation for each in outputs}]
    inputs = [each for each in program.directives if each.kind == "input"]
    made = (*inputs, *outputs, *(Directive("output", name) for name in missing))
    return replace(asked, program=replace(program, directives=made))


def atom_of(text: str) -> Atom:
    """A question as an atom."""
    program = parse(f"question() :- {text.strip().rstrip('.')}.", "question")
    body = program.rules[0].body if len(program.rules) == 1 else None
    parts = body.parts if isinstance(body, Conjunction) else (body,)
    if len(parts) != 1 or not isinstance(parts[0], Atom):
        raise ParseError(f"{text!r} is not a question", hint='Write a relation and its arguments: path("a", _).')
    return parts[0]


def converted(term: Term, kind: str, text: str) -> Value:
    """A constant as a value of its column's kind."""
    assert isinstance(term, ConstantTerm)
    value = float(term.value) if kind == "float" and isinstance(term.value, int) else term.value
    fits = {"symbol": str, "float": float, "bool": bool}.get(kind, int)
    if not isinstance(value, fits):
        raise TypeMismatch(f"{value!r} in {text} is not a {kind}")
    return value
