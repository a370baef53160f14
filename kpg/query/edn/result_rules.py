"""Rules that compute the results of `:find` from the clauses of a query.

variables only      query(results) :- clauses                             a multiset
aggregates          solutions(keys, others) :- clauses                    a set; wildcards count like variables
                    aggregate(keys, value) = a reduction of solutions     one for each aggregate
                    query(results) :- aggregate 1, aggregate 2, ...       joined on the keys
a pull              solutions(keys, e) :- clauses
                    query(keys, e, path, value) :- solutions, attributes along the path      one for each path
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kpg.errors import UnsafeRule
from kpg.query.edn.clauses import names_in
from kpg.query.edn.edn_reader import Form
from kpg.query.edn.find_section import FindSection, Found, FoundAggregate, FoundPull, FoundVariable
from kpg.query.edn.pull_patterns import ENTITY, PullPath
from kpg.query.ir.body_variables import bound_by
from kpg.query.ir.literals import Atom, Conjunction, Formula
from kpg.query.ir.program import AggregateReduction, Relation, RelationColumn, Rule
from kpg.query.ir.terms import CallTerm, ConstantTerm, Kind, Term, VariableTerm, WildcardTerm
from kpg.query.source_text import failure


@dataclass(slots=True)
class ResultRules:
    """The relations, rules and reductions of one query's results."""

    name: str
    attributes: Mapping[str, tuple[Kind, ...]]
    body: Conjunction
    form: Form
    relations: list[Relation] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    reductions: list[AggregateReduction] = field(default_factory=list)

    def add(self, find: FindSection, term: Callable[[Form], Term]) -> ResultRules:
        """Add the rules for all results; `term` parses a variable, which may be a parameter."""
        if any(isinstance(result, FoundAggregate) for result in find.results):
            self.add_aggregates(find)
        elif any(isinstance(result, FoundPull) for result in find.results):
            self.add_pull(find)
        else:
            variables = [result for result in find.results if isinstance(result, FoundVariable)]
            terms = tuple(
                VariableTerm(variable.name, variable.form.at) if variable.form.is_symbol("...") else term(variable.form)
                for variable in variables
            )
            self.add_result(terms, unique_names(find.results), self.body)
        return self

    def add_result(self, terms: tuple[Term, ...], names: tuple[str, ...], body: Conjunction) -> None:
        """Add the result relation and a rule for it."""
        at = self.form.at
        if all(relation.name != self.name for relation in self.relations):
            self.relations.append(Relation(self.name, columns(len(terms), names), at, bag=True))
        self.rules.append(Rule((Atom(self.name, terms, at),), body, at))

    def add_generated(self, name: str, names: list[str], body: Conjunction) -> Atom:
        """Add a generated relation of these variables, defined by a body; return its atom."""
        atom = Atom(name, variables_of(names, self.form), self.form.at)
        self.relations.append(Relation(name, columns(len(names), tuple(names)), self.form.at, generated=True))
        self.rules.append(Rule((atom,), body, self.form.at))
        return atom

    # Aggregates

    def add_aggregates(self, find: FindSection) -> None:
        """Group the solutions by the variables of `:find`; join several aggregates on their group."""
        keys = find.keys
        formula = name_wildcards(self.body)
        others = [name for name in names_in(formula) if name not in keys and name in bound_by(formula.parts)]
        solutions = self.add_generated(f"@solutions of {self.name}", [*keys, *others], formula)
        terms: list[Term] = []
        atoms: list[Formula] = []
        for number, result in enumerate(find.results):
            if isinstance(result, FoundVariable):
                terms.append(VariableTerm(result.name, result.form.at))
            elif isinstance(result, FoundAggregate):
                value = VariableTerm(f"{result.op}#{number}", result.form.at)
                relation = self.add_aggregate(result, number, keys, solutions)
                atoms.append(Atom(relation, (*variables_of(keys, self.form), value), result.form.at))
                terms.append(value)
        self.add_result(tuple(terms), unique_names(find.results), Conjunction(tuple(atoms), self.form.at))

    def add_aggregate(self, result: FoundAggregate, number: int, keys: list[str], solutions: Atom) -> str:
        """Add the reduction of one aggregate; return its relation."""
        at = result.form.at
        names = [variable.name for variable in solutions.arguments if isinstance(variable, VariableTerm)]
        if result.variable not in names:
            hint = "Use it in a clause of :where."
            raise failure(UnsafeRule, f"variable ?{result.variable} of the {result.op} is not bound", at, hint=hint)
        source, op, column = solutions.relation, result.op, names.index(result.variable)
        if op == "count-distinct":
            values = self.add_generated(
                f"@values {number} of {self.name}", [*keys, f"{result.variable}#"], Conjunction((renamed(
                    solutions, result.variable, f"{result.variable}#"),), at)
            )  # fmt: skip
            source, op, column = values.relation, "count", len(keys)
        relation = f"@{result.op} {number} of {self.name}"
        self.relations.append(Relation(relation, columns(len(keys) + 1), at, generated=True))
        self.reductions.append(
            AggregateReduction(relation, source, len(keys), op, None if op == "count" else column, at, result.limit)
        )
        return relation

    # Pulls

    def add_pull(self, find: FindSection) -> None:
        """Add a rule for each path of a pull."""
        (pull,) = (result for result in find.results if isinstance(result, FoundPull))
        keys = [name for name in find.keys if name != pull.variable]
        if pull.variable not in bound_by(self.body.parts):
            hint = "Use it in a clause of :where."
            raise failure(UnsafeRule, f"variable ?{pull.variable} of the pull is not bound", pull.form.at, hint=hint)
        solutions = self.add_generated(f"@solutions of {self.name}", [*keys, pull.variable], self.body)
        kinds = {self.kind_at_end(path) for path in pull.paths}
        for path in pull.paths:
            body, text, value = self.follow(path, VariableTerm(pull.variable, path.at))
            if len(kinds) > 1:
                value = CallTerm("to_string", (value,), None, path.at)
            terms = (*solutions.arguments, text, value)
            self.add_result(terms, (*keys, pull.variable, "path", "value"), Conjunction((solutions, *body), path.at))

    def kind_at_end(self, path: PullPath) -> Kind | None:
        """Return the kind of the values at the end of a path; None for an entity of unknown kind."""
        step = path.steps[-1]
        if step.attribute != ENTITY:
            return self.attributes[step.attribute][0 if step.reverse else 1]
        if len(path.steps) == 1:
            return None
        before = path.steps[-2]
        return self.attributes[before.attribute][0 if before.reverse else 1]

    def follow(self, path: PullPath, entity: Term) -> tuple[list[Formula], Term, Term]:
        """Return the atoms along a path from an entity, the text of the path, and the term of the value."""
        atoms: list[Formula] = []
        parts: list[Term] = []
        for number, step in enumerate(path.steps):
            if number:
                parts += [text(" ", path), CallTerm("to_string", (entity,), None, path.at), text(" ", path)]
            parts.append(text(step.written, path))
            if step.attribute != ENTITY:
                value = VariableTerm(f"value#{number}", path.at)
                ends = (value, entity) if step.reverse else (entity, value)
                atoms.append(Atom(step.attribute, ends, path.at))
                entity = value
        return atoms, CallTerm("cat", tuple(parts), None, path.at) if len(parts) > 1 else parts[0], entity


def text(value: str, path: PullPath) -> ConstantTerm:
    """Return a text as a term."""
    return ConstantTerm(value, "symbol", path.at)


def renamed(atom: Atom, old: str, new: str) -> Atom:
    """Return an atom with another name for one of its variables."""
    return Atom(
        atom.relation,
        tuple(
            VariableTerm(new, term.at) if isinstance(term, VariableTerm) and term.name == old else term
            for term in atom.arguments
        ),
        atom.at,
    )


def columns(size: int, names: tuple[str, ...] = ()) -> tuple[RelationColumn, ...]:
    """Return columns with kinds that are not inferred yet."""
    return tuple(RelationColumn(names[number] if names else f"c{number}", "", "number") for number in range(size))


def unique_names(results: tuple[Found, ...]) -> tuple[str, ...]:
    """Return a unique name for each result of `:find`."""
    names: list[str] = []
    for result in results:
        if isinstance(result, FoundVariable):
            name = result.name
        else:
            name = " ".join(str(part.value) for part in result.form.value)
        names.append(name if name not in names else f"{name} {len(names)}")
    return tuple(names)


def variables_of(names: list[str], form: Form) -> tuple[VariableTerm, ...]:
    """Return variables with these names, at the position of a form."""
    return tuple(VariableTerm(name, form.at) for name in names)


def name_wildcards(body: Conjunction) -> Conjunction:
    """Return a body with variables in place of wildcards in atoms, because each solution counts."""
    parts: list[Formula] = []
    for number, part in enumerate(body.parts):
        if isinstance(part, Atom):
            terms = (
                VariableTerm(f"_{number}.{column}", term.at) if isinstance(term, WildcardTerm) else term
                for column, term in enumerate(part.arguments)
            )
            part = Atom(part.relation, tuple(terms), part.at)
        parts.append(part)
    return Conjunction(tuple(parts), body.at)
