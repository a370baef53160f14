"""Infer the kinds of all variables, constants and calls from the declared types of the relations.

    .decl a(x: number)   .decl b(x: symbol)
    p(x) :- a(x), b(x).       raises TypeMismatch: x cannot be both number and symbol

Each variable starts with every kind possible; each occurrence narrows the set, until nothing changes. An integer
literal can be any kind of number; a variable with several kinds left becomes a number. Declared subtypes are checked
as well: see kpg/query/ir/subtypes.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from kpg.errors import TypeMismatch
from kpg.query.ir.constructors import Signatures, is_constructor
from kpg.query.ir.functors import TESTS
from kpg.query.ir.literals import Atom, Comparison, Formula, Test, aggregates, all_variables, atoms, subformulas
from kpg.query.ir.program import NamedType, Program, Relation, Rule, written_name
from kpg.query.ir.resolve_kinds import (
    KindResolver,
    common_kinds,
    constant_kinds,
    in_preference,
    kinds_in_words,
    resolve_fact,
    written_kinds,
)
from kpg.query.ir.subtypes import check_subtypes
from kpg.query.ir.terms import NUMBERS, AggregateTerm, CallTerm, ConstantTerm, Kind, Term, VariableTerm
from kpg.query.source_text import failure


def infer_types(program: Program) -> Program:
    """Return the program with the kinds of all variables, constants and calls."""
    relations, types = program.by_name(), {type_.name: type_ for type_ in program.types}
    signatures = program.signatures()
    columns = {column.kind for relation in program.relations for column in relation.columns}
    every = frozenset(signatures.kinds) | columns
    rules = tuple(infer_rule(rule, relations, types, signatures, every) for rule in program.rules)
    facts = tuple(resolve_fact(fact, relations[fact.relation]) for fact in program.facts)
    return replace(program, rules=rules, facts=facts)


@dataclass(slots=True)
class Inference:
    """The possible kinds of the variables of one rule; `every` are all kinds of the program."""

    signatures: Signatures
    every: frozenset[Kind]
    kinds: dict[str, frozenset[Kind]] = field(default_factory=dict)
    first_uses: dict[str, tuple[frozenset[Kind], str]] = field(
        default_factory=dict
    )  # the first use that narrowed each variable
    narrowed: dict[str, None] = field(default_factory=dict)  # variables whose kinds have changed, in that order
    narrowings: int = 0  # of variables so far
    _settled: dict[tuple[int, frozenset[Kind]], tuple[int, frozenset[Kind]]] = field(default_factory=dict)

    def narrow(self, term: Term, allowed: frozenset[Kind], where: str) -> frozenset[Kind]:
        """Narrow a term to the kinds allowed at its position and return those left; raise TypeMismatch if none is."""
        match term:
            case VariableTerm():
                before = self.kinds.get(term.name, self.every)
                common = before & allowed
                if not common:
                    raise self.conflict(term, before, allowed, where)
                if common != before or term.name not in self.kinds:
                    self.kinds[term.name], self.narrowed[term.name] = common, None
                    self.narrowings += 1
                    if common != self.every:
                        self.first_uses.setdefault(term.name, (common, where))
                return common
            case ConstantTerm():
                kinds = constant_kinds(term)
                kinds = kinds if kinds & allowed else kinds | written_kinds(term, self.every)
                return common_kinds(kinds, allowed, term.at, f"{term.value!r}", where)
            case CallTerm():
                return self.narrow_call_once(term, allowed, where)
            case AggregateTerm():
                return self.narrow_aggregate(term, allowed, where)
        return allowed

    def narrow_call_once(self, term: CallTerm, allowed: frozenset[Kind], where: str) -> frozenset[Kind]:
        """Narrow a call; if no variable was narrowed since the last time, return the last result.

        `narrow_call` visits each argument twice. Without this, the time would be exponential in the nesting depth.
        """
        key = (id(term), allowed)
        narrowings, common = self._settled.get(key, (-1, allowed))
        if narrowings != self.narrowings:
            before = self.narrowings
            common = self.narrow_call(term, allowed, where)
            if before == self.narrowings:
                self._settled[key] = (before, common)
        return common

    def narrow_call(self, term: CallTerm, allowed: frozenset[Kind], where: str) -> frozenset[Kind]:
        """Narrow the arguments of a call to the alternatives that fit; return the possible kinds of its result."""
        functor = self.signatures.of(term)
        assert functor is not None, "check_names has passed"
        options = functor.alternatives
        inside = f"in {term.functor}" if is_constructor(term) else f"as an argument of {term.functor}"
        for position, argument in enumerate(term.arguments):
            fitting = frozenset(
                functor.argument_kind(position, kinds) for kinds, result in options if result in allowed
            )
            every = frozenset(functor.argument_kind(position, kinds) for kinds, _ in options)
            possible = self.narrow(argument, fitting or every, inside)
            options = tuple(option for option in options if functor.argument_kind(position, option[0]) in possible)
        results = frozenset(result for _, result in options)
        common = common_kinds(results, allowed, term.at, f"the result of {term.functor}", where)
        options = tuple(option for option in options if option[1] in common)
        for position, argument in enumerate(term.arguments):
            self.narrow(argument, frozenset(functor.argument_kind(position, kinds) for kinds, _ in options), inside)
        return common

    def narrow_aggregate(self, term: AggregateTerm, allowed: frozenset[Kind], where: str) -> frozenset[Kind]:
        """Narrow the target of an aggregate; return the possible kinds of its result."""
        self.visit(term.body)
        if term.op == "count":
            return common_kinds(frozenset({"number", "unsigned"}), allowed, term.at, "a count", where)
        assert term.target is not None
        inside = f"as the argument of {term.op}"
        numeric = term.op in ("sum", "mean")
        possible = self.narrow(term.target, NUMBERS if numeric else self.every - {"bool"} - self.unordered(), inside)
        if term.op == "mean":
            return common_kinds(frozenset({"float"}), allowed, term.at, "a mean", where)
        common = common_kinds(possible, allowed, term.at, f"the {term.op}", where)
        return self.narrow(term.target, common, inside)

    def visit(self, formula: Formula) -> None:
        """Narrow the terms of the comparisons and tests in a formula."""
        for part in subformulas(formula):
            self.visit_part(part)

    def visit_part(self, part: Formula) -> None:
        """Narrow the terms of a comparison or test."""
        if isinstance(part, Comparison):
            fitting = self.every if part.op in ("=", "!=") else self.every - self.unordered()
            both = self.narrow(part.left, fitting, f"beside {part.op}")
            both = self.narrow(part.right, both, f"beside {part.op}")
            self.narrow(part.left, both, f"beside {part.op}")
        elif isinstance(part, Test):
            for term, kind in zip(part.arguments, TESTS[part.name], strict=True):
                self.narrow(term, frozenset({kind}), f"as an argument of {part.name}")

    def unordered(self) -> frozenset[Kind]:
        """Return the kinds without an order: records and algebraic types."""
        return frozenset(self.signatures.records)

    def visit_atom(self, atom: Atom, relation: Relation) -> None:
        """Narrow the arguments of an atom to the kinds of its columns."""
        for term, column in zip(atom.arguments, relation.columns, strict=True):
            self.narrow(term, frozenset({column.kind}), f"as {column.name} of {written_name(atom.relation)}")

    def conflict(
        self, term: VariableTerm, before: frozenset[Kind], allowed: frozenset[Kind], where: str
    ) -> TypeMismatch:
        """Return the error for a variable of which two uses need different kinds."""
        first, first_use = self.first_uses.get(term.name, (before, ""))
        return failure(
            TypeMismatch,
            f"{term.written} cannot be both {kinds_in_words(first)} and {kinds_in_words(allowed)}",
            term.at,
            detail=f"It is {kinds_in_words(first)} {first_use} and {kinds_in_words(allowed)} {where}.",
            hint="Convert with to_number, to_unsigned, to_float or to_string, or use another variable.",
        )


@dataclass(frozen=True, slots=True)
class Visit:
    """A part of a rule that narrows variables: the function to call, and the variables that it depends on."""

    narrow: Callable[[], None]
    variables: tuple[str, ...]


def visits(inference: Inference, formula: Formula, relations: dict[str, Relation]) -> Iterator[Visit]:
    """Return the visits of a formula: first its atoms, those inside aggregates included, then all other parts."""
    yield from atom_visits(inference, formula, relations)
    for part in subformulas(formula):
        if isinstance(part, (Comparison, Test)):
            yield Visit(partial(inference.visit_part, part), names_in(part))


def atom_visits(inference: Inference, formula: Formula, relations: dict[str, Relation]) -> Iterator[Visit]:
    """Return the visits of the atoms of a formula."""
    for atom, _ in atoms(formula):
        yield Visit(partial(inference.visit_atom, atom, relations[atom.relation]), names_in(atom))
    for aggregate in aggregates(formula):
        yield from atom_visits(inference, aggregate.body, relations)


def names_in(formula: Formula) -> tuple[str, ...]:
    """Return the names of the variables of a formula, including those inside aggregates."""
    return tuple(dict.fromkeys(variable.name for variable in all_variables(formula)))


def settle(inference: Inference, visits: list[Visit]) -> None:
    """Narrow all variables until nothing changes, and decide those that several kinds are left for.

    A visit is repeated only if a variable that it depends on was narrowed. A variable is narrowed at most as often as
    there are kinds, so the time is linear in the length of the rule.
    """
    readers: dict[str, list[int]] = {}
    for number, visit in enumerate(visits):
        for name in visit.variables:
            readers.setdefault(name, []).append(number)
    repeat(inference, visits, readers, dict.fromkeys(range(len(visits))))
    for name in list(inference.kinds):
        if len(inference.kinds[name]) > 1:
            inference.kinds[name] = frozenset([in_preference(inference.kinds[name])[0]])
            inference.narrowings += 1
            repeat(inference, visits, readers, dict.fromkeys(readers[name]))


def repeat(inference: Inference, visits: list[Visit], readers: dict[str, list[int]], due: dict[int, None]) -> None:
    """Make the visits that are due, then those that depend on what they have narrowed, and so on."""
    while due:
        inference.narrowed.clear()
        for number in due:
            visits[number].narrow()
        due = dict.fromkeys(sorted({number for name in inference.narrowed for number in readers.get(name, ())}))


def infer_rule(
    rule: Rule,
    relations: dict[str, Relation],
    types: dict[str, NamedType],
    signatures: Signatures,
    every: frozenset[Kind],
) -> Rule:
    """Return a rule with its kinds."""
    inference = Inference(signatures, every)
    settle(inference, [visit for part in (*rule.heads, rule.body) for visit in visits(inference, part, relations)])
    kinds = {name: next(iter(possible)) for name, possible in inference.kinds.items()}
    check_subtypes(rule, relations, types, signatures)
    resolver = KindResolver(kinds, relations, signatures)
    heads = tuple(resolver.atom(head) for head in rule.heads)
    return replace(rule, heads=heads, body=resolver.formula(rule.body), kinds=tuple(sorted(kinds.items())))
