"""PostgreSQL's numbers for types: the OID, size and modifier of each SQL type, and the type of each OID.

OIDs are those of PostgreSQL's own catalog, which clients know by heart. A type that kpg does not have (json, xml, …) is
refused by its OID as a parameter, and never sent.
"""

from __future__ import annotations

from typing import Final

from kpg.errors import NotSupported
from kpg.pgwire.wire_format import WireColumn
from kpg.sql import sql_types
from kpg.sql.functions.cast_rules import DEFAULT_NUMERIC, NUMERIC
from kpg.sql.sql_states import with_sqlstate
from kpg.sql.sql_types import SqlType, array_of

OIDS: Final = {  # the OID of each type, that of its arrays, and the bytes of a value, -1 if they vary
    "boolean": (16, 1000, 1),
    "bytea": (17, 1001, -1),
    "name": (19, 1003, 64),
    "bigint": (20, 1016, 8),
    "smallint": (21, 1005, 2),
    "integer": (23, 1007, 4),
    "text": (25, 1009, -1),
    "oid": (26, 1028, 4),
    "real": (700, 1021, 4),
    "double precision": (701, 1022, 8),
    "unknown": (25, 1009, -1),  # a result without a type is text
    "character": (1042, 1014, -1),
    "character varying": (1043, 1015, -1),
    "date": (1082, 1182, 4),
    "time without time zone": (1083, 1183, 8),
    "timestamp without time zone": (1114, 1115, 8),
    "timestamp with time zone": (1184, 1185, 8),
    "interval": (1186, 1187, 16),
    "numeric": (1700, 1231, -1),
    "uuid": (2950, 2951, 16),
    "jsonb": (3802, 3807, -1),
}
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


def modifier_of(type_: SqlType) -> int:
    """Return the modifier that PostgreSQL gives a type: its length or digits, -1 if there are none."""
    scalar = type_ if type_.element is None else type_.element
    if scalar.length is not None:
        return scalar.length + 4
    if scalar.name == "numeric" and scalar.precision is not None:
        return ((scalar.precision << 16) | (scalar.scale or 0)) + 4
    return -1


def wire_column(name: str, type_: SqlType) -> WireColumn:
    """Return the description of a column."""
    size = -1 if type_.element is not None else OIDS[type_.name][2]
    return WireColumn(name, oid_of(type_), size, modifier_of(type_))
