"""The tables of TPC-H: the type of each column, the primary keys, and their CREATE TABLE statements.

Money and quantities are NUMERIC(15,2), as `tpchgen-cli` writes them. Each column name begins with the prefix of its
table, so a name alone says where it belongs.
"""

from __future__ import annotations

from collections.abc import Iterable

COLUMNS: dict[str, dict[str, str]] = {
    "region": {"r_regionkey": "BIGINT", "r_name": "CHAR(25)", "r_comment": "VARCHAR(152)"},
    "nation": {
        "n_nationkey": "BIGINT",
        "n_name": "CHAR(25)",
        "n_regionkey": "BIGINT",
        "n_comment": "VARCHAR(152)",
    },
    "supplier": {
        "s_suppkey": "BIGINT",
        "s_name": "CHAR(25)",
        "s_address": "VARCHAR(40)",
        "s_nationkey": "BIGINT",
        "s_phone": "CHAR(15)",
        "s_acctbal": "NUMERIC(15,2)",
        "s_comment": "VARCHAR(101)",
    },
    "customer": {
        "c_custkey": "BIGINT",
        "c_name": "VARCHAR(25)",
        "c_address": "VARCHAR(40)",
        "c_nationkey": "BIGINT",
        "c_phone": "CHAR(15)",
        "c_acctbal": "NUMERIC(15,2)",
        "c_mktsegment": "CHAR(10)",
        "c_comment": "VARCHAR(117)",
    },
    "part": {
        "p_partkey": "BIGINT",
        "p_name": "VARCHAR(55)",
        "p_mfgr": "CHAR(25)",
        "p_brand": "CHAR(10)",
        "p_type": "VARCHAR(25)",
        "p_size": "INT",
        "p_container": "CHAR(10)",
        "p_retailprice": "NUMERIC(15,2)",
        "p_comment": "VARCHAR(23)",
    },
    "partsupp": {
        "ps_partkey": "BIGINT",
        "ps_suppkey": "BIGINT",
        "ps_availqty": "INT",
        "ps_supplycost": "NUMERIC(15,2)",
        "ps_comment": "VARCHAR(199)",
    },
    "orders": {
        "o_orderkey": "BIGINT",
        "o_custkey": "BIGINT",
        "o_orderstatus": "CHAR(1)",
        "o_totalprice": "NUMERIC(15,2)",
        "o_orderdate": "DATE",
        "o_orderpriority": "CHAR(15)",
        "o_clerk": "CHAR(15)",
        "o_shippriority": "INT",
        "o_comment": "VARCHAR(79)",
    },
    "lineitem": {
        "l_orderkey": "BIGINT",
        "l_partkey": "BIGINT",
        "l_suppkey": "BIGINT",
        "l_linenumber": "INT",
        "l_quantity": "NUMERIC(15,2)",
        "l_extendedprice": "NUMERIC(15,2)",
        "l_discount": "NUMERIC(15,2)",
        "l_tax": "NUMERIC(15,2)",
        "l_returnflag": "CHAR(1)",
        "l_linestatus": "CHAR(1)",
        "l_shipdate": "DATE",
        "l_commitdate": "DATE",
        "l_receiptdate": "DATE",
        "l_shipinstruct": "CHAR(25)",
        "l_shipmode": "CHAR(10)",
        "l_comment": "VARCHAR(44)",
    },
}
PRIMARY_KEYS: dict[str, tuple[str, ...]] = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}


def create_table(table: str, columns: Iterable[str] | None = None, *, key: bool = True, kept: bool = True) -> str:
    """Return a CREATE TABLE statement: of all columns or some, and with the primary key if its columns are there.

    A table that is not `kept` is a stream, and its key a promise.
    """
    chosen = list(columns or COLUMNS[table])
    lines = [f"{column} {COLUMNS[table][column]} NOT NULL" for column in chosen]
    if key and set(PRIMARY_KEYS[table]) <= set(chosen):
        lines.append(f"PRIMARY KEY ({', '.join(PRIMARY_KEYS[table])}){'' if kept else ' NOT ENFORCED'}")
    return f"CREATE TABLE {table} ({', '.join(lines)}){'' if kept else ' WITH (retain = none)'}"
