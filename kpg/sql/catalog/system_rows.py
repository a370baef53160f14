"""The rows of pg_catalog and information_schema: what PostgreSQL would say of the tables and views of a db.

A relation without a method here has no rows: kpg has no triggers, policies, extensions and so on. A column that a
method does not name has 0, false or null.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kpg.errors import KpgError
from kpg.sql.catalog.entries import CatalogEntry, SequenceEntry, TableColumn, TableEntry
from kpg.sql.catalog.fixed_settings import FIXED_SETTINGS
from kpg.sql.catalog.system_types import TYPE_FIELDS, TYPE_ROWS, modifier_of, oid_of_type
from kpg.sql.sql_types import SqlType

if TYPE_CHECKING:
    from kpg.sql.catalog.database_catalog import DatabaseCatalog
    from kpg.sql.catalog.system_catalog import SystemCatalog

Row = dict[str, Any]
DATABASE: Final = "kpg"
OWNER: Final = "kpg"
OWNER_OID: Final = 10
NAMESPACES: Final = {"pg_catalog": 11, "public": 2200, "information_schema": 13_000}
HEAP, BTREE = 2, 403  # OIDs of access methods
DEFAULT_COLLATION: Final = 100
EMPTY: Final = {"boolean": False, "smallint": 0, "integer": 0, "oid": 0, "bigint": 0}


@dataclass(frozen=True, slots=True)
class DescribedRelation:
    """A table (r), view (v), materialized view (m), index (i) or sequence (S)."""

    oid: int
    schema: str
    name: str
    kind: str
    columns: tuple[TableColumn, ...] = ()
    entry: CatalogEntry | SequenceEntry | None = None
    table: str = ""  # of an index
    is_key: str = ""  # of an index: p of a primary key, u of a unique one


class SystemRows:
    """Computes the rows of system relations."""

    def __init__(self, catalog: DatabaseCatalog, system: SystemCatalog) -> None:
        self._catalog = catalog
        self._oid = system.oid
        self._relations = list(self._described())
        self._by_name = {f"{one.schema}.{one.name}": one for one in self._relations}

    def rows(self, entry: TableEntry) -> set[tuple[Any, ...]]:
        """Return the rows of a system relation."""
        method = getattr(self, entry.name.replace(".", "_"), None)
        described: list[Row] = [] if method is None else list(method())
        blank = {column.name: EMPTY.get(column.type.name) for column in entry.columns}
        return {tuple((blank | row)[column.name] for column in entry.columns) for row in described}

    # What there is

    def _described(self) -> Iterator[DescribedRelation]:
        catalog = self._catalog
        named = [("r", name) for name in catalog.table_names()]
        named += [("v", name) for name in catalog.views] + [("m", name) for name in catalog.installed]
        for kind, full_name in named:
            try:
                entry = catalog.entry(full_name)
            except KpgError:  # a type that SQL does not have, or a definition that could not be restored
                continue
            if entry is None:
                continue
            schema, name = split_name(full_name)
            yield DescribedRelation(self._oid("class", full_name), schema, name, kind, entry.columns, entry)
            if isinstance(entry, TableEntry):
                yield from self._keys(entry, schema, name)
        for index in catalog.indexes.values():
            yield self._index(index.table, index.name, index.columns, "")
        for sequence in catalog.sequences.values():
            schema, name = split_name(sequence.name)
            yield DescribedRelation(self._oid("class", sequence.name), schema, name, "S", (), sequence)

    def _keys(self, entry: TableEntry, schema: str, name: str) -> Iterator[DescribedRelation]:
        if entry.primary_key:
            yield self._index(entry.name, f"{name}_pkey", entry.primary_key, "p")
        for columns in entry.uniques:
            yield self._index(entry.name, f"{name}_{'_'.join(columns)}_key", columns, "u")

    def _index(self, table: str, name: str, columns: tuple[str, ...], key: str) -> DescribedRelation:
        entry = self._catalog.entry(table)
        types = {column.name: column for column in entry.columns} if entry is not None else {}
        described = tuple(types[column] for column in columns if column in types)
        oid = self._oid("index", table, name)
        return DescribedRelation(oid, split_name(table)[0], name, "i", described, None, table, key)

    def _table_of(self, index: DescribedRelation) -> DescribedRelation:
        return self._by_name[".".join(split_name(index.table))]

    def _schemas(self) -> dict[str, int]:
        schemas = dict(NAMESPACES)
        for relation in self._relations:
            schemas.setdefault(relation.schema, self._oid("schema", relation.schema))
        return schemas

    def _kinds(self, *kinds: str) -> list[DescribedRelation]:
        return [relation for relation in self._relations if relation.kind in kinds]

    def _positions(self, index: DescribedRelation) -> tuple[int, ...]:
        names = [column.name for column in self._table_of(index).columns]
        return tuple(names.index(column.name) + 1 for column in index.columns)

    def _constraints(self) -> Iterator[tuple[DescribedRelation, Row, str]]:
        """Yield the table, the row of pg_constraint and the definition of each constraint."""
        for index in self._kinds("i"):
            if index.is_key:
                table = self._table_of(index)
                word = "PRIMARY KEY" if index.is_key == "p" else "UNIQUE"
                row = {"conname": index.name, "contype": index.is_key, "conindid": index.oid}
                yield table, row | {"conkey": self._positions(index)}, f"{word} ({listed(index.columns)})"
        for table in self._kinds("r"):
            checks = table.entry.checks if isinstance(table.entry, TableEntry) else ()
            for name, text in checks:
                yield table, {"conname": name, "contype": "c"}, f"CHECK ({text})"

    # pg_catalog

    def pg_catalog_pg_namespace(self) -> Iterator[Row]:
        """Yield the schemas."""
        for name, oid in self._schemas().items():
            yield {"oid": oid, "nspname": name, "nspowner": OWNER_OID}

    def pg_catalog_pg_class(self) -> Iterator[Row]:
        """Yield tables, views, indexes and sequences."""
        schemas, indexed = self._schemas(), {index.table for index in self._kinds("i")}
        for relation in self._relations:
            checks = relation.entry.checks if isinstance(relation.entry, TableEntry) else ()
            yield {
                "oid": relation.oid,
                "relname": relation.name,
                "relnamespace": schemas[relation.schema],
                "relowner": OWNER_OID,
                "relam": BTREE if relation.kind == "i" else HEAP if relation.kind in "rm" else 0,
                "reltuples": -1.0,
                "relhasindex": getattr(relation.entry, "name", None) in indexed,
                "relpersistence": "p",
                "relkind": relation.kind,
                "relnatts": len(relation.columns),
                "relchecks": len(checks),
                "relhasrules": relation.kind in "vm",
                "relispopulated": True,
                "relreplident": "d",
            }

    def pg_catalog_pg_attribute(self) -> Iterator[Row]:
        """Yield the columns of all relations."""
        for relation in self._relations:
            for number, column in enumerate(relation.columns, 1):
                yield {
                    "attrelid": relation.oid,
                    "attname": column.name,
                    "atttypid": oid_of_type(type_name(column.type)),
                    "attlen": -1,
                    "attstattarget": -1,
                    "attnum": number,
                    "attcacheoff": -1,
                    "atttypmod": modifier_of(column.type),
                    "attstorage": "p",
                    "attalign": "i",
                    "attnotnull": column.not_null and relation.kind == "r",
                    "atthasdef": column.default is not None and relation.kind == "r",
                    "attidentity": {"always": "a", "by default": "d"}.get(column.identity or "", ""),
                    "attgenerated": "",
                    "attislocal": True,
                    "attcollation": DEFAULT_COLLATION if column.type.is_text else 0,
                }

    def pg_catalog_pg_attrdef(self) -> Iterator[Row]:
        """Yield the defaults of columns."""
        for relation in self._kinds("r"):
            for number, column in enumerate(relation.columns, 1):
                if column.default is not None:
                    oid = self._oid("default", relation.oid, column.name)
                    yield {"oid": oid, "adrelid": relation.oid, "adnum": number, "adbin": column.default}

    def pg_catalog_pg_type(self) -> Iterator[Row]:
        """Yield the types."""
        for values in TYPE_ROWS:
            row: Row = dict(zip(TYPE_FIELDS, values, strict=True))
            yield row | {
                "typnamespace": NAMESPACES["pg_catalog"], "typowner": OWNER_OID, "typtype": "b", "typisdefined": True,
                "typdelim": ",", "typtypmod": -1, "typalign": "i", "typstorage": "p",
                "typinput": "array_in" if str(row["typname"]).startswith("_") else f"{row['typname']}in",
                "typoutput": "array_out" if row["typcategory"] == "A" else f"{row['typname']}out",
                "typreceive": "array_recv" if row["typcategory"] == "A" else f"{row['typname']}recv",
                "typsend": "array_send" if row["typcategory"] == "A" else f"{row['typname']}send",
            }  # fmt: skip

    def pg_catalog_pg_index(self) -> Iterator[Row]:
        """Yield the indexes."""
        for index in self._kinds("i"):
            positions = self._positions(index)
            yield {
                "indexrelid": index.oid, "indrelid": self._table_of(index).oid, "indnatts": len(positions),
                "indnkeyatts": len(positions), "indisunique": bool(index.is_key), "indisprimary": index.is_key == "p",
                "indimmediate": True, "indisvalid": True, "indisready": True, "indislive": True, "indkey": positions,
                "indcollation": (0,) * len(positions), "indclass": (0,) * len(positions),
                "indoption": " ".join("0" for _ in positions),
            }  # fmt: skip

    def pg_catalog_pg_constraint(self) -> Iterator[Row]:
        """Yield keys and checks."""
        schemas = self._schemas()
        for table, row, _ in self._constraints():
            oid = self._oid("constraint", table.oid, row["conname"])
            yield row | {
                "oid": oid, "connamespace": schemas[table.schema], "conrelid": table.oid, "convalidated": True,
                "conislocal": True, "connoinherit": True, "confupdtype": " ", "confdeltype": " ", "confmatchtype": " ",
            }  # fmt: skip

    def pg_catalog_kpg_definitions(self) -> Iterator[Row]:
        """Yield the texts that functions such as pg_get_viewdef return."""
        for table, row, text in self._constraints():
            oid = self._oid("constraint", table.oid, row["conname"])
            yield {"oid": oid, "position": 0, "definition": text}
        for view in self._kinds("v", "m"):
            yield {"oid": view.oid, "position": 0, "definition": f" {getattr(view.entry, 'text', '')};"}
        for index in self._kinds("i"):
            for number, column in enumerate(index.columns, 1):
                yield {"oid": index.oid, "position": number, "definition": quoted(column.name)}
            yield {"oid": index.oid, "position": 0, "definition": self._index_definition(index)}

    def _index_definition(self, index: DescribedRelation) -> str:
        unique = "UNIQUE " if index.is_key else ""
        table = f"{quoted(index.schema)}.{quoted(self._table_of(index).name)}"
        return f"CREATE {unique}INDEX {quoted(index.name)} ON {table} USING btree ({listed(index.columns)})"

    def pg_catalog_pg_am(self) -> Iterator[Row]:
        """Yield the access methods that indexes and tables name."""
        yield {"oid": HEAP, "amname": "heap", "amtype": "t"}
        yield {"oid": BTREE, "amname": "btree", "amtype": "i"}

    def pg_catalog_pg_collation(self) -> Iterator[Row]:
        """Yield the collations."""
        for oid, name in ((DEFAULT_COLLATION, "default"), (950, "C"), (951, "POSIX")):
            yield {"oid": oid, "collname": name, "collnamespace": NAMESPACES["pg_catalog"], "collprovider": "c"}

    def pg_catalog_pg_database(self) -> Iterator[Row]:
        """Yield the db."""
        yield {
            "oid": 5, "datname": DATABASE, "datdba": OWNER_OID, "encoding": 6, "datlocprovider": "c",
            "datallowconn": True, "datconnlimit": -1, "dattablespace": 1663, "datcollate": "C", "datctype": "C",
        }  # fmt: skip

    def pg_catalog_pg_roles(self) -> Iterator[Row]:
        """Yield the one role that owns everything."""
        yield {"oid": OWNER_OID, "rolname": OWNER, "rolinherit": True, "rolcanlogin": True, "rolconnlimit": -1}

    def pg_catalog_pg_user(self) -> Iterator[Row]:
        """Yield the same as a user."""
        yield {"usename": OWNER, "usesysid": OWNER_OID, "passwd": "********"}

    def pg_catalog_pg_tablespace(self) -> Iterator[Row]:
        """Yield the tablespaces."""
        yield {"oid": 1663, "spcname": "pg_default", "spcowner": OWNER_OID}

    def pg_catalog_pg_language(self) -> Iterator[Row]:
        """Yield the languages."""
        yield {"oid": 14, "lanname": "sql", "lanowner": OWNER_OID, "lanpltrusted": True}

    def pg_catalog_pg_settings(self) -> Iterator[Row]:
        """Yield the settings that have one value."""
        for name, value in FIXED_SETTINGS.items():
            yield {
                "name": name, "setting": value, "context": "internal", "vartype": "string", "source": "default",
                "boot_val": value, "reset_val": value,
            }  # fmt: skip

    def pg_catalog_pg_sequence(self) -> Iterator[Row]:
        """Yield the sequences."""
        for relation in self._kinds("S"):
            entry = relation.entry
            assert isinstance(entry, SequenceEntry)
            yield {
                "seqrelid": relation.oid, "seqtypid": 20, "seqstart": entry.start, "seqincrement": entry.increment,
                "seqmax": entry.greatest, "seqmin": entry.least, "seqcache": 1, "seqcycle": entry.cycles,
            }  # fmt: skip

    def pg_catalog_pg_tables(self) -> Iterator[Row]:
        """Yield the tables."""
        for table in self._kinds("r"):
            yield {"schemaname": table.schema, "tablename": table.name, "tableowner": OWNER}

    def pg_catalog_pg_views(self) -> Iterator[Row]:
        """Yield the views."""
        for view in self._kinds("v"):
            text = f" {getattr(view.entry, 'text', '')};"
            yield {"schemaname": view.schema, "viewname": view.name, "viewowner": OWNER, "definition": text}

    def pg_catalog_pg_matviews(self) -> Iterator[Row]:
        """Yield the materialized views."""
        for view in self._kinds("m"):
            text = f" {getattr(view.entry, 'text', '')};"
            row = {"schemaname": view.schema, "matviewname": view.name, "matviewowner": OWNER, "definition": text}
            yield row | {"ispopulated": True}

    def pg_catalog_pg_indexes(self) -> Iterator[Row]:
        """Yield the indexes."""
        for index in self._kinds("i"):
            row = {"schemaname": index.schema, "tablename": self._table_of(index).name, "indexname": index.name}
            yield row | {"indexdef": self._index_definition(index)}

    # information_schema

    def information_schema_schemata(self) -> Iterator[Row]:
        """Yield the schemas."""
        for name in self._schemas():
            yield {"catalog_name": DATABASE, "schema_name": name, "schema_owner": OWNER}

    def information_schema_tables(self) -> Iterator[Row]:
        """Yield tables and views."""
        for relation in self._kinds("r", "v"):
            kind = "BASE TABLE" if relation.kind == "r" else "VIEW"
            yield in_table(relation) | {
                "table_type": kind, "is_insertable_into": "YES" if relation.kind == "r" else "NO", "is_typed": "NO",
            }  # fmt: skip

    def information_schema_columns(self) -> Iterator[Row]:
        """Yield the columns of tables and views."""
        for relation in self._kinds("r", "v"):
            for number, column in enumerate(relation.columns, 1):
                type_, bits = column.type, INTEGER_BITS.get(column.type.name)
                yield in_table(relation) | {
                    "column_name": column.name,
                    "ordinal_position": number,
                    "column_default": column.default,
                    "is_nullable": "NO" if column.not_null else "YES",
                    "data_type": "ARRAY" if type_.element is not None else type_.name,
                    "character_maximum_length": type_.length,
                    "numeric_precision": type_.precision if type_.name == "numeric" else bits,
                    "numeric_precision_radix": 10 if type_.name == "numeric" else 2 if bits else None,
                    "numeric_scale": type_.scale if type_.name == "numeric" else 0 if type_.is_integer else None,
                    "udt_catalog": DATABASE,
                    "udt_schema": "pg_catalog",
                    "udt_name": next((row[1] for row in TYPE_ROWS if row[0] == oid_of_type(type_name(type_))), None),
                    "dtd_identifier": str(number),
                    "is_identity": "NO" if column.identity is None else "YES",
                    "identity_generation": None if column.identity is None else column.identity.upper(),
                    "is_generated": "NEVER",
                    "is_updatable": "YES" if relation.kind == "r" else "NO",
                }

    def information_schema_views(self) -> Iterator[Row]:
        """Yield the views."""
        for view in self._kinds("v"):
            yield in_table(view) | {"view_definition": f" {getattr(view.entry, 'text', '')};", "check_option": "NONE"}

    def information_schema_table_constraints(self) -> Iterator[Row]:
        """Yield keys and checks."""
        words = {"p": "PRIMARY KEY", "u": "UNIQUE", "c": "CHECK"}
        for table, row, _ in self._constraints():
            constraint = in_constraint(table, row) | {"constraint_type": words[row["contype"]]}
            yield in_table(table) | constraint | {"is_deferrable": "NO", "initially_deferred": "NO", "enforced": "YES"}

    def information_schema_key_column_usage(self) -> Iterator[Row]:
        """Yield the columns of keys."""
        for table, row, _ in self._constraints():
            for number, position in enumerate(row.get("conkey", ()), 1):
                column = {"column_name": table.columns[position - 1].name, "ordinal_position": number}
                yield in_table(table) | in_constraint(table, row) | column

    def information_schema_constraint_column_usage(self) -> Iterator[Row]:
        """Yield the columns of keys."""
        return self.information_schema_key_column_usage()

    def information_schema_check_constraints(self) -> Iterator[Row]:
        """Yield the checks."""
        for table, row, text in self._constraints():
            if row["contype"] == "c":
                yield in_constraint(table, row) | {"check_clause": text.removeprefix("CHECK ")}


INTEGER_BITS: Final = {"smallint": 16, "integer": 32, "bigint": 64, "real": 24, "double precision": 53}


def split_name(name: str) -> tuple[str, str]:
    """Return the schema and the name of a relation."""
    schema, dot, rest = name.partition(".")
    return (schema, rest) if dot else ("public", name)


def in_table(relation: DescribedRelation) -> Row:
    """Return the columns that name a table."""
    return {"table_catalog": DATABASE, "table_schema": relation.schema, "table_name": relation.name}


def in_constraint(table: DescribedRelation, row: Row) -> Row:
    """Return the columns that name a constraint."""
    return {
        "constraint_catalog": DATABASE, "constraint_schema": table.schema, "constraint_name": row["conname"],
    }  # fmt: skip


def type_name(type_: SqlType) -> str:
    """Return the SQL name of a type without modifiers."""
    return type_.name if type_.element is None else f"{type_.element.name}[]"


def quoted(name: str) -> str:
    """Return a name as SQL text, quoted if it must be."""
    plain = name.isidentifier() and name == name.lower()
    return name if plain else '"' + name.replace('"', '""') + '"'


def listed(columns: tuple[TableColumn, ...]) -> str:
    """Return the names of columns with commas between them."""
    return ", ".join(quoted(column.name) for column in columns)
