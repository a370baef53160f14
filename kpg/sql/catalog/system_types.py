"""The types of pg_catalog.pg_type: PostgreSQL's own OIDs, names as format_type writes them, and modifiers."""

from __future__ import annotations

from typing import Any, Final

from kpg.sql.sql_types import SqlType

TYPE_FIELDS: Final = (
    "oid", "typname", "typlen", "typbyval", "typcategory", "typispreferred", "typelem", "typarray", "typcollation",
)  # fmt: skip
TYPE_ROWS: Final[tuple[tuple[Any, ...], ...]] = (
    (16, "bool", 1, True, "B", True, 0, 1000, 0),
    (17, "bytea", -1, False, "U", False, 0, 1001, 0),
    (18, "char", 1, True, "Z", False, 0, 1002, 0),
    (19, "name", 64, False, "S", False, 18, 1003, 950),
    (20, "int8", 8, True, "N", False, 0, 1016, 0),
    (21, "int2", 2, True, "N", False, 0, 1005, 0),
    (22, "int2vector", -1, False, "A", False, 21, 1006, 0),
    (23, "int4", 4, True, "N", False, 0, 1007, 0),
    (25, "text", -1, False, "S", True, 0, 1009, 100),
    (26, "oid", 4, True, "N", True, 0, 1028, 0),
    (30, "oidvector", -1, False, "A", False, 26, 1013, 0),
    (700, "float4", 4, True, "N", False, 0, 1021, 0),
    (701, "float8", 8, True, "N", True, 0, 1022, 0),
    (705, "unknown", -2, False, "X", False, 0, 0, 0),
    (1000, "_bool", -1, False, "A", False, 16, 0, 0),
    (1001, "_bytea", -1, False, "A", False, 17, 0, 0),
    (1002, "_char", -1, False, "A", False, 18, 0, 0),
    (1003, "_name", -1, False, "A", False, 19, 0, 950),
    (1005, "_int2", -1, False, "A", False, 21, 0, 0),
    (1007, "_int4", -1, False, "A", False, 23, 0, 0),
    (1009, "_text", -1, False, "A", False, 25, 0, 100),
    (1014, "_bpchar", -1, False, "A", False, 1042, 0, 100),
    (1015, "_varchar", -1, False, "A", False, 1043, 0, 100),
    (1016, "_int8", -1, False, "A", False, 20, 0, 0),
    (1021, "_float4", -1, False, "A", False, 700, 0, 0),
    (1022, "_float8", -1, False, "A", False, 701, 0, 0),
    (1028, "_oid", -1, False, "A", False, 26, 0, 0),
    (1042, "bpchar", -1, False, "S", False, 0, 1014, 100),
    (1043, "varchar", -1, False, "S", False, 0, 1015, 100),
    (1082, "date", 4, True, "D", False, 0, 1182, 0),
    (1083, "time", 8, True, "D", False, 0, 1183, 0),
    (1114, "timestamp", 8, True, "D", False, 0, 1115, 0),
    (1115, "_timestamp", -1, False, "A", False, 1114, 0, 0),
    (1182, "_date", -1, False, "A", False, 1082, 0, 0),
    (1183, "_time", -1, False, "A", False, 1083, 0, 0),
    (1184, "timestamptz", 8, True, "D", True, 0, 1185, 0),
    (1185, "_timestamptz", -1, False, "A", False, 1184, 0, 0),
    (1186, "interval", 16, False, "T", True, 0, 1187, 0),
    (1187, "_interval", -1, False, "A", False, 1186, 0, 0),
    (1231, "_numeric", -1, False, "A", False, 1700, 0, 0),
    (1700, "numeric", -1, False, "N", False, 0, 1231, 0),
    (2205, "regclass", 4, True, "N", False, 0, 2210, 0),
    (2206, "regtype", 4, True, "N", False, 0, 2211, 0),
    (2950, "uuid", 16, False, "U", False, 0, 2951, 0),
    (2951, "_uuid", -1, False, "A", False, 2950, 0, 0),
    (3802, "jsonb", -1, False, "U", False, 0, 3807, 0),
    (3807, "_jsonb", -1, False, "A", False, 3802, 0, 0),
)
SHOWN_NAMES: Final = {  # where format_type writes another name than typname
    "bool": "boolean",
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double precision",
    "char": '"char"',
    "bpchar": "character",
    "varchar": "character varying",
    "time": "time without time zone",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
}
NAMES_BY_OID: Final[dict[int, str]] = {row[0]: row[1] for row in TYPE_ROWS}
OIDS_BY_NAME: Final[dict[str, int]] = {
    **{name: oid for oid, name in NAMES_BY_OID.items()},
    **{shown: oid for oid, name in NAMES_BY_OID.items() if (shown := SHOWN_NAMES.get(name))},
}
ARRAYS: Final[dict[int, int]] = {row[7]: row[0] for row in TYPE_ROWS if row[7]}  # the element of each type of arrays


def oid_of_type(name: str) -> int:
    """Return the OID of a type by its SQL name, such as `character varying` or `integer[]`; 0 if there is none."""
    if name.endswith("[]"):
        element = OIDS_BY_NAME.get(name[:-2], 0)
        return next((array for array, of in ARRAYS.items() if of == element), 0)
    return OIDS_BY_NAME.get(name, 0)


def modifier_of(type_: SqlType) -> int:
    """Return the modifier that PostgreSQL gives a type: its length or digits, -1 if there are none."""
    scalar = type_ if type_.element is None else type_.element
    if scalar.length is not None:
        return scalar.length + 4
    if scalar.name == "numeric" and scalar.precision is not None:
        return ((scalar.precision << 16) | (scalar.scale or 0)) + 4
    return -1


def format_type(oid: int | None, modifier: int | None) -> str | None:
    """Return the name of a type with its modifier, as PostgreSQL writes it."""
    if oid is None:
        return None
    if oid in ARRAYS:
        return f"{format_type(ARRAYS[oid], modifier)}[]"
    if oid not in NAMES_BY_OID:
        return "-" if oid == 0 else "???"
    name = NAMES_BY_OID[oid]
    shown = SHOWN_NAMES.get(name, name)
    if modifier is None or modifier < 4:
        return shown
    if name == "numeric":
        return f"numeric({(modifier - 4) >> 16},{(modifier - 4) & 0xFFFF})"
    return f"{shown}({modifier - 4})" if name in ("bpchar", "varchar") else shown
