"""Aggregates in heads: group the rows that a relation's rules derive, and keep one row for each group.

    sssp(y, min(d + w)) :- sssp(x, d), edge(x, y, w).
becomes
    @sssp.rows(y, d + w) :- sssp(x, d), edge(x, y, w).        the rows without the aggregate, each once
    @sssp.1(y, v) = min of @sssp.rows by y                    an AggregateReduction
    sssp(y, v) :- @sssp.1(y, v).

The group of a row are its other columns. All rules of a relation contribute to the same groups. Rules and facts without
an aggregate may stand beside `min` and `max`: their rows are candidates like the others. A recursive `min` or `max`
also has its own earlier rows as candidates, so that a value never moves back:

    @sssp.rows(y, v) :- sssp(y, v).
"""

from __future__ import annotations

from dataclasses import replace

from kpg.errors import ProgramError, TypeMismatch
from kpg.query.ir.infer_column_kinds import ColumnKinds, add_rule
from kpg.query.ir.literals import Atom, Conjunction
from kpg.query.ir.program import AggregateReduction, Program, Relation, RelationColumn, Rule, part_of
from kpg.query.ir.rewrites.single_head import single_head
from kpg.query.ir.rewrites.stratify import strongly_connected
from kpg.query.ir.terms import NUMBERS, CallTerm, Kind, Term, VariableTerm
from kpg.query.ir.verify import atoms_of
from kpg.query.source_text import Position, failure

# The spellings of aggregates in heads: those of bodies, and those of FlowLog.
HEAD_AGGREGATES = {
    "count": "count", "sum": "sum", "min": "min", "max": "max", "mean": "mean", "average": "mean", "avg": "mean",
    "COUNT": "count", "SUM": "sum", "MIN": "min", "MAX": "max", "AVG": "mean",
}  # fmt: skip
MONOTONE = ("min", "max")
SPECIAL = {"equivalence": "an equivalence relation", "choice": "a relation with a choice domain"}
RESULT_KINDS: dict[str, Kind] = {"count": "number", "mean": "float"}  # of aggregates with results of another kind
Operations = dict[int, tuple[str, Position]]  # by column: the aggregate, and where it is written


def aggregate_heads(program: Program) -> Program:
    """Return the program without aggregates in heads."""
    if not any(operations_of(head) for rule in program.rules for head in rule.heads):
        return program
    program = single_head(program)
    relations = program.by_name()
    for name in dict.fromkeys(rule.head.relation for rule in program.rules if operations_of(rule.head)):
        heads = [rule.head for rule in program.rules_of(name) if operations_of(rule.head)]
        if name in relations and all(len(head.arguments) == relations[name].arity for head in heads):
            check_agreement(program, name, heads)
            program = reduce_columns(program, name, operations_of(heads[0]))
    return program


def operations_of(head: Atom) -> Operations:
    """Return the aggregates of a head. `min(x)` is one; `min(x, y)` is a functor."""
    return {
        column: (HEAD_AGGREGATES[term.functor], term.at)
        for column, term in enumerate(head.arguments)
        if isinstance(term, CallTerm) and term.functor in HEAD_AGGREGATES and len(term.arguments) == 1
    }


def check_agreement(program: Program, name: str, heads: list[Atom]) -> None:
    """Raise ProgramError if the rules of a relation do not all aggregate in the same way."""
    first = operations_of(heads[0])
    kind = program.by_name()[name].kind
    if kind in SPECIAL:
        what = f"{name} cannot have aggregates in its heads: it is {SPECIAL[kind]}"
        raise failure(ProgramError, what, heads[0].at, hint="Aggregate in a relation of its own.")
    subsumptive = next((rule for rule in program.rules_of(name) if rule.subsumes), None)
    if subsumptive is not None:
        what = f"rows of {name} cannot be subsumed: it has aggregates in its heads"
        raise failure(ProgramError, what, subsumptive.at, hint="Subsume in a relation of its own.")
    for head in heads[1:]:
        other = operations_of(head)
        if {column: op for column, (op, _) in other.items()} != {column: op for column, (op, _) in first.items()}:
            raise failure(
                ProgramError, f"the rules of {name} have different aggregates in their heads", head.at,
                hint=f"Use the aggregates of {heads[0].at} in all of them.",
            )  # fmt: skip
    for column, (op, at) in first.items():
        declared = program.by_name()[name].columns[column]
        if op in RESULT_KINDS and declared.kind not in NUMBERS:
            what = f"the {op} is {RESULT_KINDS[op]}, not {declared.kind}"
            hint = f"Declare {declared.name} of {name} as {RESULT_KINDS[op]}."
            raise failure(TypeMismatch, what, at, hint=hint)
        plain = next((rule.at for rule in program.rules_of(name) if not operations_of(rule.head)), None)
        plain = plain or next((fact.at for fact in program.facts if fact.relation == name), None)
        inputs = (item.at for item in program.directives if item.kind == "input" and item.relation == name)
        plain = plain or next(inputs, None)
        if plain is not None and op not in MONOTONE:
            raise failure(
                ProgramError, f"{name} has a {op} in its head, and rows without one", plain,
                detail=f"The {op} is at {at}.",
                hint="Give these rows a relation of their own. Beside min and max they would be candidates.",
            )  # fmt: skip


def reduce_columns(program: Program, name: str, operations: Operations, kind: str = "aggregated") -> Program:
    """Return a program in which some columns of a relation are aggregates of the rows that its rules derive."""
    relation = program.by_name()[name]
    keys = [column for column in range(relation.arity) if column not in operations]
    order = [*keys, *operations]
    recursive = is_recursive(program, name)
    monotone = all(op in MONOTONE for op, _ in operations.values())
    rows = rows_relation(program, relation, order, operations)
    rules = [rows_rule(rule, rows.name, order) if rule.head.relation == name else rule for rule in program.rules]
    generated = [rows]
    if has_outside_rows(program, name):
        given = replace(relation, name=part_of(name, "given"), generated=True, kind="plain", input_of=name)
        generated.append(given)
        rules.append(copy_rule(given, rows, order))
    if recursive and monotone:
        rules.append(copy_rule(relation, rows, order))
    reductions, atoms = [], []
    for number, (column, (op, at)) in enumerate(operations.items()):
        value = len(keys) + number
        part = part_of(name, str(column))
        columns = (*rows.columns[: len(keys)], result_column(relation.columns[column], op))
        generated.append(Relation(part, columns, at, generated=True))
        reductions.append(
            AggregateReduction(
                part, rows.name, len(keys), op, None if op == "count" else value, at, monotone=op in MONOTONE
            )
        )
        atoms.append(Atom(part, tuple(variable_of(relation, key) for key in (*keys, column)), at))
    head = Atom(name, tuple(head_term(relation, column, operations) for column in range(relation.arity)), relation.at)
    rules.append(Rule((head,), Conjunction(tuple(atoms), relation.at), relation.at))
    return replace(
        program,
        relations=(*with_kind(program, name, kind), *generated),
        rules=tuple(rules),
        reductions=(*program.reductions, *reductions),
    )


def result_column(column: RelationColumn, op: str) -> RelationColumn:
    """Return the column for the results of an aggregate: a count is a number and a mean a float, as computed."""
    kind = RESULT_KINDS.get(op, column.kind)
    return column if kind == column.kind else RelationColumn(column.name, kind, kind, column.at)


def head_term(relation: Relation, column: int, operations: Operations) -> Term:
    """Return the argument of a head for a column; a result is converted to the declared kind of number."""
    op, at = operations.get(column, ("", relation.at))
    variable, kind = replace(variable_of(relation, column), at=at), relation.columns[column].kind
    if op in RESULT_KINDS and kind != RESULT_KINDS[op] and kind in NUMBERS:
        return CallTerm(f"to_{kind}", (variable,), None, at)
    return variable


def rows_relation(program: Program, relation: Relation, order: list[int], operations: Operations) -> Relation:
    """Return the relation of the rows before aggregation: the groups' columns first, then what is aggregated."""
    inferred: ColumnKinds = {}
    declared = {(other.name, n): column.kind for other in program.relations for n, column in enumerate(other.columns)}
    name = part_of(relation.name, "rows")
    for rule in program.rules_of(relation.name):
        kinds = dict(declared)
        add_rule(rows_rule(rule, name, order), kinds, program.signatures())
        inferred |= {column: kind for column, kind in kinds.items() if column[0] == name}
    columns = []
    for position, number in enumerate(order):
        column = relation.columns[number]
        if operations.get(number, ("", None))[0] in ("count", "mean"):  # the result has another type than the values
            kind = inferred.get((name, position), column.kind)
            column = RelationColumn(column.name, kind, kind, column.at)
        columns.append(column)
    return Relation(name, tuple(columns), relation.at, generated=True)


def rows_rule(rule: Rule, name: str, order: list[int]) -> Rule:
    """Return a rule that derives the rows before aggregation."""

    def target(term: Term, column: int) -> Term:
        return term.arguments[0] if column in operations and isinstance(term, CallTerm) else term

    operations = operations_of(rule.head)
    arguments = tuple(target(rule.head.arguments[column], column) for column in order)
    return replace(rule, heads=(replace(rule.head, relation=name, arguments=arguments),))


def copy_rule(source: Relation, target: Relation, order: list[int]) -> Rule:
    """Return a rule that copies the rows of a relation into another one, its columns in another order."""
    arguments = tuple(variable_of(source, column) for column in range(source.arity))
    head = Atom(target.name, tuple(arguments[column] for column in order), source.at)
    return Rule((head,), Conjunction((Atom(source.name, arguments, source.at),), source.at), source.at)


def variable_of(relation: Relation, column: int) -> VariableTerm:
    """Return the variable for a column in generated rules."""
    return VariableTerm(relation.columns[column].name, relation.at)


def has_outside_rows(program: Program, name: str) -> bool:
    """Return whether a relation has facts or is read from a file."""
    return any(fact.relation == name for fact in program.facts) or any(
        directive.kind == "input" and directive.relation == name for directive in program.directives
    )


def is_recursive(program: Program, name: str) -> bool:
    """Return whether a relation depends on itself."""
    graph: dict[str, list[str]] = {relation.name: [] for relation in program.relations}
    for rule in program.rules:
        for head in rule.heads:
            read_by_rule = atoms_of(rule)[len(rule.heads) :]
            graph.setdefault(head.relation, []).extend(atom.relation for atom in read_by_rule)
    for reduction in program.reductions:
        graph.setdefault(reduction.relation, []).append(reduction.source)
    for read in list(graph.values()):
        for other in read:
            graph.setdefault(other, [])
    component = next(part for part in strongly_connected(graph) if name in part)
    return len(component) > 1 or name in graph[name]


def with_kind(program: Program, name: str, kind: str) -> tuple[Relation, ...]:
    """Return the relations of a program with one of them of another kind."""
    return tuple(
        replace(relation, kind=kind) if relation.name == name else relation  # type: ignore[arg-type]
        for relation in program.relations
    )
