"""Datalog rules of a notebook on a db of its own: each relation that they define becomes an output.

    install_rules(db, "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).")      ("path",)
    db["path"].rows()

Rules read the inputs and outputs of the db and the tables and views of SQL, by name and as sets. A relation that is
only declared becomes an input. Rules that are installed again take the place of the outputs that they had; queries
that read these keep the old ones until they are installed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kpg.errors import TypeMismatch
from kpg.query.datalog import parse
from kpg.query.ir.compile import compile
from kpg.query.ir.program import Relation, RelationColumn
from kpg.query.lower.lower_program import LoweredProgram, base_relations, schema_of
from kpg.query.lower.value_expressions import kind_of_type
from kpg.service.languages import read_rules
from kpg.service.rules import RuleStore
from kpg.sql.catalog.database_catalog import catalog_of

if TYPE_CHECKING:
    from kpg.api.collection import Collection
    from kpg.api.contracts import Database


def install_rules(db: Database, text: str) -> tuple[str, ...]:
    """Install the relations that rules define as outputs; return their names."""
    collections = collections_of(db, text)
    for name, collection in collections.items():
        collection.output(name, replace=True)
    return tuple(collections)


def collections_of(db: Database, text: str) -> dict[str, Collection]:
    """Return the relations that rules define, as collections; nothing is installed."""
    parsed = parse(text, includes=False)
    own = {head.relation for rule in parsed.rules for head in rule.heads} | {fact.relation for fact in parsed.facts}
    sources = {name: source for name, source in sources_of(db).items() if name not in own or name in db.inputs}
    existing = {name: relation for name, source in sources.items() if (relation := relation_of(name, source))}
    rules = read_rules("datalog", text, None, existing)
    for declared in rules.bases:
        sources[declared.name] = db.input(declared.name, schema_of(declared), exist_ok=True)
    base = existing | {declared.name: declared for declared in rules.bases}
    program = compile(RuleStore().program(rules.names, base, unregistered=rules))
    relations = program.by_name()
    inputs = {name: db.installer.shared(sources[name], schema_of(relations[name])) for name in base_relations(program)}
    lowered = LoweredProgram(db, program, inputs=inputs)
    return {name: lowered.collections[name] for name in rules.names}


def sources_of(db: Database) -> Mapping[str, Any]:
    """Return the inputs, the outputs and the materialized views of a db by name."""
    outputs = {name: output for name, output in db.outputs.items() if output.is_named}
    views = {name: view.arrangement for name, view in catalog_of(db).installed.items()}
    return {**outputs, **views, **db.inputs}


def relation_of(name: str, source: Any) -> Relation | None:
    """Return a source as rules see it; None if it has a type that rules do not have."""
    try:
        columns = tuple(
            RelationColumn(column, kind, kind)
            for column, kind in zip(source.schema.names, map(kind_of_type, source.schema.types), strict=True)
        )
    except TypeMismatch:
        return None
    return Relation(name, columns)
