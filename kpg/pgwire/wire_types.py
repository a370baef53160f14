"""PostgreSQL's numbers for types: the OID, size and modifier of each SQL type, and the type of each OID.

OIDs are those of PostgreSQL's own catalog, which clients know by heart. A type that kpg does not have (json, xml, …) is
refused by its OID as a parameter, and never sent.
"""

from __future__ import annotations

from typing import Final

from kpg.errors import NotSupported
from kpg.pgwire.wire_format import WireColumn
from kpg.sql import sql_types
from kpg.sql.catalog.system_types import SHOWN_NAMES, TYPE_FIELDS, TYPE_ROWS, modifier_of
from kpg.sql.functions.cast_rules import DEFAULT_NUMERIC, NUMERIC
from kpg.sql.sql_states import with_sqlstate
from kpg.sql.sql_types import SqlType, array_of

TYPE_NAMES: Final = frozenset({
    "boolean", "bytea", "name", "bigint", "smallint", "integer", "text", "oid", "real", "double precision", "character",
    "character varying", "date", "time without time zone", "timestamp without time zone", "timestamp with time zone",
    "interval", "numeric", "uuid", "jsonb",
})  # fmt: skip
OIDS: Final[
    dict[str, tuple[int, int, int]]
] = {  # of a type and of its arrays, and the bytes of a value, -1 if they vary
    shown: (row["oid"], row["typarray"], row["typlen"])
    for row in (dict(zip(TYPE_FIELDS, values, strict=True)) for values in TYPE_ROWS)
    if (shown := SHOWN_NAMES.get(row["typname"], row["typname"])) in TYPE_NAMES
}
OIDS["unknown"] = OIDS["text"]  # a result without a type is text
UNSPECIFIED: Final = frozenset({0, 705})  # parameters whose type their place decides
ACCEPTED_AS: Final = {18: sql_types.TEXT, 114: sql_types.JSONB}  # "char", json


def _types() -> dict[int, SqlType]:
    types: dict[int, SqlType] = {}
    for name, (oid, array_oid, _) in OIDS.items():
        if name != "unknown":
            types[oid] = NUMERIC if name == "numeric" else SqlType(name)
            types[array_oid] = array_of(DEFAULT_NUMERIC if name == "numeric" else types[oid])
    return types | ACCEPTED_AS


TYPES: Final = _types()


def oid_of(type_: SqlType) -> int:
    """Return the OID of a type."""
    return OIDS[type_.name][0] if type_.element is None else OIDS[type_.element.name][1]


def type_of(oid: int) -> SqlType | None:
    """Return the type of an OID; None if it leaves the type open."""
    if oid in UNSPECIFIED:
        return None
    if oid not in TYPES:
        what = f"parameters of the type with OID {oid} are not supported"
        raise with_sqlstate("0A000", NotSupported(what, hint="Pass the value as text, and cast it in the statement."))
    return TYPES[oid]


def wire_column(name: str, type_: SqlType) -> WireColumn:
    """Return the description of a column."""
    size = -1 if type_.element is not None else OIDS[type_.name][2]
    return WireColumn(name, oid_of(type_), size, modifier_of(type_))
