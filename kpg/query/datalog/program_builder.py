"""Collect the statements of a program, then build it: types, arities and facts are resolved when all are known.

The builder of a component's body is an outline: it holds the statements as written, and no program is built from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace

from kpg.errors import ProgramError
from kpg.query.datalog.components import Component, Instantiation, check_clashes
from kpg.query.datalog.declarations import DeclaredTypes
from kpg.query.datalog.execution_plans import ExecutionPlan, check_plans
from kpg.query.datalog.source_files import SourceFiles
from kpg.query.ir.literals import Atom, Conjunction, Truth
from kpg.query.ir.program import Directive, Fact, Program, Relation, Rule, SizeLimit
from kpg.query.ir.terms import CallTerm, ConstantTerm, Kind, Value, subterms
from kpg.query.source_text import Position, failure


class ProgramBuilder:
    """Collects the statements of one file and of the files it includes, then builds the program."""

    def __init__(self, files: SourceFiles) -> None:
        self.files = files
        self.types = DeclaredTypes()
        self.relations: list[Relation] = []
        self.rules: list[Rule] = []
        self.facts: list[Atom] = []  # heads without a body
        self.type_positions: dict[Position, Position] = {}  # position of a column's name -> position of its type
        self.directives: list[Directive] = []
        self.insert_only = False
        self.joins = ""  # the join strategy of the pragma
        # relations that demand must or must not restrict
        self.magic: dict[str, list[str]] = {"magic": [], "no_magic": []}
        self.plans: list[ExecutionPlan] = []
        self.limits: list[SizeLimit] = []
        self.components: dict[str, Component] = {}
        self.instantiations: list[Instantiation] = []
        self.overridable: set[str] = set()  # relations of a component whose rules may be overridden
        self.overrides: dict[str, Position] = {}  # relations of which a component leaves out the inherited rules

    def instance(self) -> ProgramBuilder:
        """Return a builder for an instance of a component; rules and facts, which may be overridden, stay apart."""
        instance = copy(self)
        instance.facts, instance.rules = [], []
        return instance

    def add_instance(self, instance: ProgramBuilder, overridden: set[str]) -> None:
        """Add the rules and facts of an instance, without those of the overridden relations."""
        self.facts += [fact for fact in instance.facts if fact.relation not in overridden]
        for rule in instance.rules:
            heads = tuple(head for head in rule.heads if head.relation not in overridden)
            self.rules += [replace(rule, heads=heads)] if heads else []

    def program(self) -> Program:
        """Build the program. Types and arities are resolved here, since declarations may follow their uses."""
        relations = tuple(self.with_kinds(relation) for relation in self.relations)
        check_plans(self.plans, self.rules)
        check_clashes(self.types.declared, self.relations, self.components, self.instantiations)
        by_name = {relation.name: relation for relation in relations}
        rules, facts = list(self.rules), list[Fact]()
        for head in self.facts:
            fact = constant_fact(head, by_name)
            if fact is not None:
                facts.append(fact)
            else:  # an argument must be computed, or the rewrites will report an error
                refuse_counters(head)
                rules.append(Rule((head,), Conjunction((Truth(True, head.at),), head.at), head.at))
        types = tuple(self.types.resolved().values())
        program = Program(relations, tuple(rules), tuple(facts), tuple(self.directives), types)
        program = replace(program, limits=tuple(self.limits))
        magic, no_magic = (tuple(dict.fromkeys(self.magic[word])) for word in ("magic", "no_magic"))
        return replace(
            program,
            insert_only=self.insert_only,
            joins=self.joins,
            magic=magic,
            no_magic=no_magic,
            constructors=self.types.constructors(),
            functors=self.types.user_functors(),
        )

    def with_kinds(self, relation: Relation) -> Relation:
        """Return the relation with the kinds of its columns' types."""
        columns = (
            replace(
                column,
                kind=self.types.kind(column.type, self.type_positions[column.at]),
                range=self.types.range(column.type),
            )
            for column in relation.columns
        )
        return replace(relation, columns=tuple(columns))


def refuse_counters(head: Atom) -> None:
    """Raise ProgramError if a fact has a counter: a fact states one row."""
    for term in head.arguments:
        for part in subterms(term):
            if isinstance(part, CallTerm) and part.functor == "autoinc":
                raise failure(ProgramError, "a fact cannot have a counter", part.at, hint="A fact has only constants.")


def constant_fact(head: Atom, relations: Mapping[str, Relation]) -> Fact | None:
    """Return a head without body as a row, if all arguments are constants of the columns' kinds.

    Other heads become rules: type inference then reports a wrong constant at its position.
    """
    relation = relations.get(head.relation)
    if relation is None or relation.arity != len(head.arguments):
        return None
    values: list[Value] = []
    for term, column in zip(head.arguments, relation.columns, strict=True):
        if not isinstance(term, ConstantTerm) or not is_plain_value(term, column.kind):
            return None
        values.append(term.value)
    return Fact(head.relation, tuple(values), head.at)


def is_plain_value(term: ConstantTerm, kind: Kind) -> bool:
    """Return whether a constant is of a column's kind without doubt."""
    if isinstance(term.value, int) and not isinstance(term.value, bool):
        is_marked = term.kind == "unsigned"
        match kind:
            case "number":
                return not is_marked and -(2**63) <= term.value < 2**63
            case "unsigned":
                return 0 <= term.value < 2**63
        return kind == "float" and not is_marked
    return term.kind == kind
