"""A type from one file (ipv4_type.py) works in every part of kpg; and the registry refuses types that conflict."""

import json
from collections.abc import Iterator
from ipaddress import IPv4Address

import pyarrow as pa
import pytest

import kpg
from kpg.columns.column_types.column_type import ColumnType, register, type_names, unregister
from kpg.columns.column_types.string_type import StringType
from kpg.columns.schema import Schema, Type, parse_type
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import decode, decode_rows, encode
from kpg.plan import plan_values
from kpg.protocol import value_codec
from tests.columns.ipv4_type import IPv4Type

HOME, ROUTER, BROADCAST = IPv4Address("127.0.0.1"), IPv4Address("10.0.0.1"), IPv4Address("255.255.255.255")
ROWS = [(1, HOME), (2, None), (3, BROADCAST)]


@pytest.fixture(autouse=True)
def ipv4() -> Iterator[None]:
    register(IPv4Type())
    yield
    unregister("ipv4")


def test_a_schema_names_the_type_like_any_other():
    assert parse_type("ipv4?") == parse_type(IPv4Address | None) == Type("ipv4", nullable=True)
    assert str(Schema.of({"host": "ipv4?"})) == "(host: ipv4?)"


def test_rows_and_arrow_tables_go_in_and_come_out():
    schema, symbols = Schema.of({"id": int, "host": "ipv4?"}), Symbols()
    lanes = encode(schema, ROWS, symbols)
    assert decode_rows(schema, lanes, symbols) == ROWS
    table = decode(schema, lanes, symbols)
    assert table.schema.field("host").type == pa.uint32()
    assert table.column("host").to_pylist() == [int(HOME), None, int(BROADCAST)]
    assert (encode(schema, table, symbols) == lanes).all()
    assert (encode(schema, table.to_pandas(types_mapper=pd_arrow), symbols) == lanes).all()


def pd_arrow(type_: pa.DataType) -> object:
    import pandas as pd

    return pd.ArrowDtype(type_)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("127.0.0.1", "'127.0.0.1' is of type str, not ipv4."),
        (None, "Null is not ipv4."),
        (7, "7 is of type int, not ipv4."),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_column_and_row(value: object, reason: str):
    with pytest.raises(kpg.SchemaMismatch, match="column 'host' cannot hold the value in row 1") as refused:
        encode(Schema.of({"host": "ipv4"}), [(HOME,), (value,)], Symbols())
    assert refused.value.detail == reason


def test_constants_travel_in_messages_and_plans():
    for codec in (
        lambda value: value_codec.decode_value(json.loads(json.dumps(value_codec.encode_value(value)))),
        lambda value: plan_values.read_constant(json.loads(json.dumps(plan_values.write_constant(value)))),
    ):
        assert codec(ROUTER) == ROUTER
    with pytest.raises(kpg.ProtocolError, match="'127' is not a value of type ipv4"):
        value_codec.decode_value({"ipv4": "127"})


def test_a_db_keeps_the_type_through_queries_and_a_restart(tmp_path):
    """Input, filter by a constant, order, output, a checkpoint and the log."""
    with kpg.open(tmp_path) as db:
        hosts = db.input("hosts", id=int, host="ipv4?")
        hosts.insert(ROWS[:2])
        db.advance()
        db.checkpoint()
        hosts.insert(ROWS[2:])
        db.advance()
    with kpg.open(tmp_path) as db:
        hosts = db.input("hosts", id=int, host="ipv4?")
        everything = hosts.output()
        below = hosts.filter(kpg.col("host") < BROADCAST).output()
        least = hosts.filter(~kpg.col("host").is_null()).group_by().min("host").output()
        db.advance()
        assert sorted(everything.rows()) == ROWS
        assert below.rows() == [(1, HOME)]
        assert least.rows() == [(HOME,)]


def test_two_types_cannot_share_a_name_or_a_class():
    class SecondType(IPv4Type):
        name = "address"

    with pytest.raises(ValueError, match="address and ipv4 both claim"):
        register(SecondType())
    with pytest.raises(ValueError, match="ipv4 and ipv4 both claim 'ipv4'"):
        register(IPv4Type())
    assert "address" not in type_names()


def test_a_tag_belongs_to_one_type():
    class TagThief(IPv4Type):
        name = "thief"
        python_class = None
        literal_classes = ()

    with pytest.raises(ValueError, match="the tag 'ipv4'"):
        register(TagThief())
    assert "thief" not in type_names()


def test_symbols_take_one_lane():
    class WideSymbolType(StringType):
        name = "wide"
        lanes = 2

    with pytest.raises(ValueError, match="wide takes 2 lanes"):
        register(WideSymbolType())


def test_a_type_with_a_missing_method_is_refused_when_it_is_registered():
    class UnreadableType(ColumnType):
        name = "unreadable"

    with pytest.raises(TypeError, match="decode_arrow.*decode_value.*encode_arrow.*encode_value.*to_arrow"):
        register(UnreadableType())


def test_types_are_listed_in_the_order_of_their_registration():
    numbers = ("int64", "uint64", "float64", "bool")
    others = ("string", "binary", "date", "timestamp", "decimal", "record", "uuid")
    later = ("time", "timestamp_ntz", "interval", "jsonb", "array")
    assert type_names() == (*numbers, *others, *later, "ipv4")
