"""Questions with arguments, as given on the command line: `path("a", _)`.

    asked = questions(program, ['path("a", _)', 'path("b", _)'])
    asked.program      the program, with the relations in question as its only outputs
    asked.bound        {"path": ("x",)}
    asked.arguments    {"path": [("a",), ("b",)]}

Constants bind columns; variables and `_` leave them free. All questions about one relation must bind the same columns,
because one dataflow answers them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kpg.errors import ParseError, ProgramError, TypeMismatch, UndefinedName
from kpg.query.datalog.goal_parser import parse_atom
from kpg.query.datalog.record_facts import canonical_record
from kpg.query.ir.constructors import Signatures, is_known_record
from kpg.query.ir.literals import Atom
from kpg.query.ir.program import Directive, Program, Relation
from kpg.query.ir.show import show_term
from kpg.query.ir.terms import AggregateTerm, CallTerm, ConstantTerm, Term, Value
from kpg.query.source_text import did_you_mean, failure


@dataclass(slots=True)
class Questions:
    """A program and the questions about it."""

    program: Program
    bound: dict[str, tuple[str, ...]] = field(default_factory=dict)
    arguments: dict[str, list[tuple[Value, ...]]] = field(default_factory=dict)

    def add(self, atom: Atom, text: str) -> None:
        """Add a question."""
        relation = self._relation(atom, text)
        for term in atom.arguments:
            if isinstance(term, AggregateTerm) or (isinstance(term, CallTerm) and not is_known_record(term)):
                hint = 'For example path("a", _).'
                raise failure(
                    ParseError, "an argument of a question is a constant, a variable or _", term.at, hint=hint
                )
        constants = [
            (column, term)
            for column, term in zip(relation.columns, atom.arguments, strict=True)
            if isinstance(term, ConstantTerm | CallTerm)
        ]
        columns = tuple(column.name for column, _ in constants)
        if self.bound.setdefault(relation.name, columns) != columns:
            raise ProgramError(
                f"questions about {relation.name} with constants in different columns",
                detail=f"{text} binds {', '.join(columns) or 'no column'}, another question binds "
                f"{', '.join(self.bound[relation.name]) or 'no column'}.",
                hint="Ask them in separate runs.",
            )
        signatures = self.program.signatures()
        row = tuple(value_of(term, column.kind, text, signatures) for column, term in constants)
        rows = self.arguments.setdefault(relation.name, [])
        if row and row not in rows:
            rows.append(row)

    def _relation(self, atom: Atom, text: str) -> Relation:
        relations = self.program.by_name()
        if atom.relation not in relations:
            raise UndefinedName(f"no relation is called {atom.relation!r}", hint=did_you_mean(atom.relation, relations))
        relation = relations[atom.relation]
        if len(atom.arguments) != relation.arity:
            columns = ", ".join(column.name for column in relation.columns)
            raise ProgramError(
                f"{relation.name} has {relation.arity} columns, {text} has {len(atom.arguments)}",
                hint=f"The columns are {columns}; write _ for those that you do not bind.",
            )
        return relation


def questions(program: Program, texts: list[str]) -> Questions:
    """Parse questions about a program."""
    asked = Questions(program)
    for text in texts:
        asked.add(parse_atom(text.strip().rstrip("."), "question"), text)
    outputs = [
        directive
        for directive in program.directives
        if directive.kind == "output" and directive.relation in asked.bound
    ]
    missing = [name for name in asked.bound if name not in {directive.relation for directive in outputs}]
    inputs = [directive for directive in program.directives if directive.kind == "input"]
    directives = (*inputs, *outputs, *(Directive("output", name) for name in missing))
    return replace(asked, program=replace(program, directives=directives))


def value_of(term: Term, kind: str, text: str, signatures: Signatures) -> Value:
    """Return a constant as a value of its column's kind."""
    if kind in signatures.records:
        try:
            return canonical_record(show_term(term), kind, signatures)
        except ValueError:
            raise TypeMismatch(f"{show_term(term)} in {text} is not a {kind}") from None
    if not isinstance(term, ConstantTerm):
        raise TypeMismatch(f"{show_term(term)} in {text} is not a {kind}")
    value = float(term.value) if kind == "float" and isinstance(term.value, int) else term.value
    type_ = {"symbol": str, "float": float, "bool": bool}.get(kind, int)
    if not isinstance(value, type_):
        hint = "Write a symbol in double quotes." if kind == "symbol" else f"Write a constant of type {kind}."
        raise TypeMismatch(f"{value!r} in {text} is not a {kind}", hint=hint)
    return value
