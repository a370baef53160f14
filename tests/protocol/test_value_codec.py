"""Values survive JSON; JSON that is not a value is refused with its path."""

import datetime
import json
import math
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.protocol.value_codec import decode_value, encode_value

VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.uuids()
    | st.floats()
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes(timezones=st.just(datetime.UTC))
    | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=6)
)


@settings(max_examples=300)
@given(VALUES)
def test_every_value_comes_back_as_it_was(value):
    back = decode_value(json.loads(json.dumps(encode_value(value), allow_nan=False)))
    assert type(back) is type(value)
    assert back == value or (math.isnan(value) and math.isnan(back))


def test_large_numbers_travel_as_text_because_readers_would_round_them():
    assert encode_value(2**53 - 1) == 2**53 - 1
    assert encode_value(2**53) == {"int": "9007199254740992"}
    with pytest.raises(kpg.ProtocolError, match=r"\$: a number beyond 2\^53") as caught:
        decode_value(2**53 + 1)
    assert caught.value.hint == 'Write {"int": "9007199254740993"}.'


def test_a_timestamp_is_sent_in_utc_and_one_without_a_zone_as_it_is():
    plain = datetime.datetime(2024, 5, 1, 12)
    moved = datetime.datetime(2024, 5, 1, 14, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    assert encode_value(moved) == {"timestamp": "2024-05-01T12:00:00Z"}
    assert encode_value(plain) == {"timestamp_ntz": "2024-05-01T12:00:00"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"int": "x"}, {"int": str(2**64)}, {"int": 3}, {"float": "inf"}, {"float": "1e999"}, {"decimal": "1e5"},
        {"decimal": "NaN"}, {"date": "2024-13-01"}, {"timestamp": "2024-05-01T12:00:00"}, {"binary": "?"},
        {"what": "x"}, {}, {"int": "1", "date": "2024-01-01"}, [], [1],
    ],
)  # fmt: skip
def test_json_that_is_not_a_value_is_refused_with_its_path_and_a_hint(wrong):
    with pytest.raises(kpg.ProtocolError) as caught:
        decode_value(wrong, "$.rows[0][1]")
    assert caught.value.path == "$.rows[0][1]" and caught.value.hint


def test_a_value_that_no_column_holds_cannot_be_sent():
    with pytest.raises(kpg.ProtocolError, match="a value of type object cannot be sent"):
        encode_value(object())
    assert encode_value(Decimal("1.50")) == {"decimal": "1.50"}
