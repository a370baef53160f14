"""Dataflows that answer for arguments: of all tenants of a rule, or of one client alone.

    by columns of a rule         what the arguments demand is computed, and no more; then cut to each tenant's own
    by parameters of a query     the query is one over the relation of parameters
    by constants of a query      likewise: queries of the same shape are one, and their constants are parameters

In each case arguments are rows of an input that begin with the token of a tenant, and so do the rows that come out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from kpg.api.collection import Collection
from kpg.api.input import Input
from kpg.columns.functions import col
from kpg.columns.schema import Schema
from kpg.errors import ProgramError, UndefinedName
from kpg.query.demand import demanded
from kpg.query.ir.program import Relation, RelationColumn
from kpg.query.lower.expressions import TYPES
from kpg.query.lower.lower_program import schema_of
from kpg.query.source_text import did_you_mean
from kpg.service.languages import Text, read_edn
from kpg.service.sharing import Builder
from kpg.service.synthesis import Synthesis
from kpg.service.templates import TOKEN, lift_constants, shape
from kpg.service.tenants import Tenancy

Arguments: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
Row: TypeAlias = tuple[Any, ...]
SCALARS = (bool, int, float, str)
Rows: TypeAlias = Callable[[Synthesis, Input], tuple[Collection, str]]


def listed(name: str, arguments: Any) -> list[Mapping[str, Any]]:
    """One argument or several, as a list; refuses what is neither."""
    hint = 'Give one, as in {"x": 1}, or a list of them.'
    given = [arguments] if isinstance(arguments, Mapping) else arguments
    if not isinstance(given, (list, tuple)) or not given:
        raise ProgramError(f"no argument for {name}", hint=hint)
    for each in given:
        if not isinstance(each, Mapping) or not all(isinstance(value, SCALARS) for value in each.values()):
            raise ProgramError(f"{each!r} is no argument for {name}", hint=hint)
    return list(given)


class Asking:
    """Builds dataflows for arguments, and knows those that tenants share."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.tenancies: dict[tuple[str, ...], Tenancy] = {}  # by rule and bound columns, or by shape
        self.failed: set[tuple[str, ...]] = set()  # where one tenant's arguments took all others down

    def rows(self, name: str, arguments: Arguments) -> tuple[tuple[str, ...], list[Row]]:
        """The columns that arguments bind, in order, and a row of values for each argument."""
        parameters = self.builder.parameters(name)
        relation = self.builder.relation(name)
        known = [column.name for column in (relation.columns if parameters is None else parameters.columns[1:])]
        given = listed(name, arguments)
        for each in given:
            for column in each:
                if column not in known:
                    raise UndefinedName(f"{name} has no argument {column!r}", hint=did_you_mean(column, known))
            if not each or set(each) != set(given[0]):
                raise ProgramError("each argument gives values for the same columns, at least one")
        missing = [] if parameters is None else [column for column in known if column not in given[0]]
        if missing:
            raise ProgramError(f"{name} has no value for its parameter {missing[0]!r}")
        columns = tuple(column for column in known if column in given[0])
        return columns, [tuple(each[column] for column in columns) for each in given]

    def tenancy(self, name: str, columns: tuple[str, ...]) -> Tenancy:
        """The dataflow of all who bind some columns of a rule, built if it is not there.

        Where one has failed, whoever comes gets a dataflow of its own: what cannot be computed for one then fails for
        that one alone.
        """
        key = (name, *columns)
        return self._shared(key, lambda: self.asked(name, columns))

    def _shared(self, key: tuple[str, ...], make: Callable[[], Tenancy]) -> Tenancy:
        found = self.tenancies.get(key)
        if found is not None and not found.living:
            self.failed.add(key)
        if key in self.failed:
            return make()
        if found is None:
            found = self.tenancies[key] = make()
        return found

    def asked(self, name: str, columns: tuple[str, ...], joins: str = "auto") -> Tenancy:
        """A new dataflow for arguments."""
        if self.builder.parameters(name) is not None:
            return self._of_query(name, self.builder.rules.by_name[name].text, None, joins)
        relation = self.builder.relation(name)
        chosen = tuple(column for column in relation.columns if column.name in columns)
        return self._build(name, chosen, joins, lambda made, given: self._of_rule(made, relation, columns, given))

    def lifted(self, name: str) -> tuple[Tenancy, Row]:
        """The dataflow of all queries of the shape of this one, and its constants."""
        text = self.builder.rules.find(name).text
        if text.query is None or text.parameters is not None:
            hint = "Give arguments: without them everybody shares one answer anyway."
            raise ProgramError(f"{name} is no query in EDN whose constants could be lifted", hint=hint)
        template = lift_constants(text.query)
        if not template.values:
            raise ProgramError(f"{name} has no constants", hint="Without them everybody shares one answer anyway.")
        kind = [type(value).__name__ for value in template.values]
        key = ("@shape", shape(template.query), *kind)

        def make() -> Tenancy:
            called = self.builder.label("shape")
            known = self.builder.catalog.relations() | self.builder.rules.relations()
            text = read_edn([template.query], called, {n: r for n, r in known.items() if n != name}, template)
            return self._of_query(called, text, text)

        return self._shared(key, make), template.values

    def forget_unused(self) -> None:
        """Leave out what nobody uses any more; what has failed is remembered."""
        self.failed |= {key for key, tenancy in self.tenancies.items() if not tenancy.living and tenancy.users > 0}
        self.tenancies = {key: tenancy for key, tenancy in self.tenancies.items() if tenancy.users > 0}

    # Inside

    def _of_query(self, name: str, text: Text, beside: Text | None, joins: str = "auto") -> Tenancy:
        """A dataflow for the parameters of a query, registered or beside what is."""
        parameters = text.parameters
        assert parameters is not None

        def rows(made: Synthesis, given: Input) -> tuple[Collection, str]:
            program = self.builder.program(name, beside=beside)
            found = made.collections(program, {parameters.name: given})[name]
            return found, f"{name} is a query over its parameters"

        return self._build(name, parameters.columns[1:], joins, rows)

    def _of_rule(
        self, made: Synthesis, relation: Relation, columns: tuple[str, ...], given: Input
    ) -> tuple[Collection, str]:
        """The rows of a rule with the token of each tenant that asks for them, and how they are computed."""
        rows, reason = self._demanded(made, relation, columns, given)
        mine = rows.join(given, on=columns)
        return mine.select(**{TOKEN: col(TOKEN), **{each: col(each) for each in rows.schema.names}}), reason

    def _demanded(
        self, made: Synthesis, relation: Relation, columns: tuple[str, ...], given: Input
    ) -> tuple[Collection, str]:
        """The rows of a rule that are asked for, at least."""
        name = relation.name
        program = self.builder.program(name)
        if name in self.builder.catalog.facts:
            return made.collections(program)[name], f"{name} is read by its arguments: it is not computed"
        asked = demanded(program, name, columns)
        seeds = schema_of(asked.program.by_name()[asked.seeds]).names
        seeded = given.select(**{seed: col(column) for seed, column in zip(seeds, columns, strict=True)}).distinct()
        return made.collections(asked.program, {asked.seeds: seeded})[asked.answer], asked.reason

    def _build(self, name: str, columns: Sequence[RelationColumn], joins: str, rows: Rows) -> Tenancy:
        builder = self.builder
        builder.limits.check_memory(name)
        label = builder.label(f"{name} by {', '.join(column.name for column in columns)}")
        schema = Schema.of({TOKEN: int, **{column.name: TYPES[column.kind] for column in columns}})
        given = builder.db.input(f"parameters of {label}", schema, keep_on_disk=False)
        given.keep_by(*[column.name for column in columns])
        try:
            with builder.synthesis({}, joins) as made:
                found, reason = rows(made, given)
                output = made.install(found, f"tenants of {label}", keep=False)
        except BaseException:
            given.drop()
            raise
        builder.settle()
        return Tenancy(output, given, made.held, reason)
