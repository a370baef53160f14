"""Messages survive encoding and decoding; any other text raises ProtocolError."""

import dataclasses
import json
import typing

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.protocol.error_messages import error_of, failure_of
from kpg.protocol.json_schema import schema
from kpg.protocol.message_codec import decode, encode, identify
from kpg.protocol.parts import BlockSpec, FailureSpec, PositionSpec
from kpg.protocol.replies import PUSHED, REPLIES, ChangesMessage
from kpg.protocol.requests import REQUESTS, QueryRequest, TransactRequest
from kpg.protocol.strict_decoder import ANY_JSON, ROWS, VALUE, Between, Size, members
from tests.protocol.test_value_codec import VALUES

ALL = REQUESTS | REPLIES | PUSHED
CHECK = jsonschema.Draft202012Validator(schema())
BLOCK = '{"type": "transact", "id": 1, "changes": [{"relation": "e", "rows": [%s]}]}'
ROW = st.lists(VALUES.filter(lambda value: value == value), max_size=3).map(tuple)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def made_of(shape):
    """What an annotation allows."""
    origin, arguments = typing.get_origin(shape), typing.get_args(shape)
    if origin is typing.Annotated:
        return bounded(arguments)
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        return st.lists(made_of(arguments[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(st.text(max_size=5), made_of(arguments[1]), max_size=3)
    if type(None) in arguments:
        (inner,) = [argument for argument in arguments if argument is not type(None)]
        return st.none() | made_of(inner)
    if dataclasses.is_dataclass(shape):
        return st.builds(shape, **{name: made_of(annotation) for name, (annotation, _) in members(shape).items()})
    plain = {str: st.text(max_size=8), bool: st.booleans(), float: st.floats(0, 1e6), int: st.integers(-99, 99)}
    return plain[shape]


def bounded(arguments):
    """What an annotation with a mark or a bound allows."""
    inner, note = arguments[0], arguments[1]
    if note is VALUE:
        return VALUES.filter(lambda value: value == value)
    if note is ROWS:
        return st.lists(ROW, max_size=3).map(tuple)
    if note is ANY_JSON:
        return st.none() | st.dictionaries(st.text(max_size=5), st.integers(0, 9), max_size=2)
    if isinstance(note, Size):
        return made_of(inner).filter(lambda value: len(value) >= note.least)
    assert isinstance(note, Between)
    kind = st.integers if inner is int else st.floats
    return kind(max(note.least, -1000), min(note.most, 1000))


MESSAGES = st.sampled_from([*ALL]).flatmap(made_of)


@settings(max_examples=100)
@given(MESSAGES)
def test_every_message_comes_back_as_it_was_and_fits_the_schema(message):
    text = encode(message)
    assert decode(text, ALL) == message
    CHECK.validate(json.loads(text))


@settings(max_examples=200)
@given(st.text() | JSON.map(json.dumps) | st.tuples(MESSAGES, st.integers(0, 400), st.text(max_size=3)).map(
    lambda parts: encode(parts[0])[: parts[1]] + parts[2] + encode(parts[0])[parts[1] + 1 :]
))  # fmt: skip
def test_any_text_is_a_message_or_a_protocol_error(text):
    """Issue: oversize, malformed and strange messages are refused, and nothing else happens."""
    identify(text)
    try:
        message = decode(text, ALL)
    except kpg.ProtocolError as error:
        assert error.path is not None
    else:
        assert decode(encode(message), ALL) == message


@settings(max_examples=100)
@given(MESSAGES, JSON, st.data())
def test_what_the_schema_refuses_the_decoder_refuses(message, piece, data):
    """One member is replaced, added or taken away; texts that only the decoder can judge are its own matter."""
    given_message = json.loads(encode(message))
    name = data.draw(st.sampled_from([*given_message, "unknown"]))
    given_message[name] = piece
    try:
        text = json.dumps(given_message, allow_nan=False)
    except ValueError:
        return
    try:
        decode(text, ALL)
    except kpg.ProtocolError:
        return
    CHECK.validate(json.loads(text))


@pytest.mark.parametrize(
    ("text", "path", "says"),
    [
        ('{"type": "ping"}', "$", "the member 'id' is missing"),
        ('{"type": "pong", "id": 1}', "$.type", "Did you mean 'ping'?"),
        ('{"type": "ping", "id": 1, "size": 3}', "$.size", "no such member"),
        ('{"type": "ping", "id": "1"}', "$.id", "a whole number is expected, not a text"),
        ('{"type": "ping", "id": true}', "$.id", "a whole number is expected, not true or false"),
        ('{"type": "ping", "id": -1}', "$.id", "out of bounds"),
        ('{"type": "ping", "id": 1, "id": 2}', "$", "given twice"),
        ('{"type": "query", "id": 1, "text": 5}', "$.text", "a text is expected"),
        ('{"type": "query", "id": 1, "text": "e", "language": "sql"}', "$.language", "one of 'datalog'"),
        (BLOCK % "[1], 2", "$.changes[0].rows[1]", "a row is a list of values, not a whole number"),
        (BLOCK % "[1, 1e999]", "$.changes[0].rows[0][1]", "too large for a float"),
        (BLOCK % "[NaN]", "$", "NaN is not JSON"),
        ('{"type": "ping", "id": 1', "$", "line 1 column"),
        ("[" * 100_000, "$", "nested too deep"),
        ('{"type": "register", "id": 1, "plan": ' + "[" * 300 + "]" * 300 + "}", "$.plan", "nested deeper than 100"),
        ("9" * 5_000, "$", "5000 digits"),
        ("[]", "$", "a message is a JSON object"),
        ("", "$", "not JSON"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_path_and_the_remedy(text, path, says):
    """A14.3: each refusal names the member and what would be right."""
    with pytest.raises(kpg.ProtocolError) as caught:
        decode(text, REQUESTS)
    assert caught.value.path == path and says in str(caught.value)


def test_members_that_have_their_default_are_left_out():
    assert encode(QueryRequest(3, "path")) == '{"type":"query","id":3,"text":"path"}'
    block = TransactRequest(1, (BlockSpec("e", ((1, None), ("x", 2**60)), -1),))
    assert json.loads(encode(block))["changes"] == [
        {"relation": "e", "rows": [[1, None], ["x", {"int": str(2**60)}]], "diff": -1}
    ]


def test_errors_keep_their_class_and_message():
    error = kpg.ParseError("query:3:4: what is this", detail="here", hint="write that")
    error.line, error.column = 3, 4
    back = error_of(failure_of(error))
    assert type(back) is kpg.ParseError and str(back) == str(error) and (back.line, back.column) == (3, 4)
    assert type(error_of(FailureSpec("NewError", "x", position=PositionSpec(line=1)))) is kpg.KpgError
    assert type(error_of(FailureSpec("annotations", "x"))) is kpg.KpgError


def test_a_foreign_error_reveals_nothing_of_the_machine():
    assert "/secret" not in repr(failure_of(FileNotFoundError("/secret/path")))


def test_changes_carry_the_reason_why_an_answer_has_no_value():
    message = ChangesMessage(1, 7, (), (), (), failed=FailureSpec("DataError", "q has no answer"))
    assert decode(encode(message), PUSHED) == message
