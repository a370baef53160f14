"""Commands and data requests: each has one handler, a place on the page, and survives its way through a frame."""

import re
import typing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.cluster import request_frames
from kpg.cluster.command_handlers import HANDLERS
from kpg.cluster.data_requests import DATA_REQUESTS
from kpg.cluster.data_service import DATA_COMMANDS, DATA_HANDLERS
from kpg.cluster.frame_codec import SymbolDictionary
from kpg.cluster.rank_commands.command_kinds import COMMANDS, LifecycleCommand
from kpg.cluster.rank_commands.input_commands import InsertCommand
from kpg.cluster.rank_commands.time_commands import AdvanceCommand, RankReport
from kpg.columns.symbols import Symbols
from kpg.config import Config
from kpg.errors import OverBudget, ProtocolError
from kpg.protocol.definitions import MessageKinds, result_annotation
from kpg.protocol.error_messages import failure_of
from kpg.protocol.message_codec import encode, encode_result
from kpg.protocol.strict_decoder import INT64, TRUSTED_JSON, decode
from tests.protocol.test_message_codec import made_of

PAGE = (Path(__file__).parent.parent.parent / "docs" / "workers.md").read_text()
INTEGERS = st.integers(-(2**63), 2**63 - 1)


def body_of(number: int, text: str) -> np.ndarray:
    parts = request_frames.encode_frame(number, text, (), SymbolDictionary(Symbols()))
    return np.frombuffer(b"".join(bytes(part) for part in parts), np.int64)


def received(text: str, kinds: MessageKinds[typing.Any] = COMMANDS) -> typing.Any:
    return request_frames.decode_request(body_of(7, text), SymbolDictionary(Symbols()), kinds)


def test_every_command_has_one_handler() -> None:
    performed_by_rank = {kind for kind in COMMANDS if issubclass(kind, LifecycleCommand)}
    handled = [*HANDLERS.handlers, *DATA_COMMANDS.handlers, *performed_by_rank]
    assert len(handled) == len(set(handled)) and set(handled) == set(COMMANDS)
    assert set(DATA_HANDLERS.handlers) == set(DATA_REQUESTS)


def test_every_command_is_on_the_page() -> None:
    section = PAGE[PAGE.index("### Commands") :]
    names = {name for line in section.splitlines() if line.startswith("| ") for name in re.findall(r"`(\w+)`", line)}
    assert names == set(COMMANDS.by_name)
    assert all(f"`{name}`" in section for name in DATA_REQUESTS.by_name)


def example_of(shape: typing.Any) -> st.SearchStrategy[typing.Any]:
    """Values of an annotation of a command."""
    if shape is Config:
        return st.builds(Config, history=st.none() | st.integers(0, 9), effort=st.sampled_from(["eager", "lazy"]))
    origin, arguments = typing.get_origin(shape), typing.get_args(shape)
    if origin is typing.Annotated and arguments[1] is INT64:
        return INTEGERS
    if origin is typing.Annotated and arguments[1] is TRUSTED_JSON:
        return st.sampled_from([None, 1.5, {"a": [1, {"b": "c"}]}, float("inf"), 2**70])
    if origin is tuple and arguments[-1] is not Ellipsis:
        return st.tuples(*[example_of(item) for item in arguments])
    if origin is tuple:
        return st.lists(example_of(arguments[0]), max_size=3).map(tuple)
    if type(None) in arguments:
        return st.none() | st.one_of([example_of(item) for item in arguments if item is not type(None)])
    if arguments and all(item in (str, int) for item in arguments):
        return st.one_of([made_of(item) for item in arguments])
    if origin is dict:
        return st.dictionaries(st.text(max_size=5), example_of(arguments[1]), max_size=3)
    return made_of(shape)


@pytest.mark.parametrize("kind", [*COMMANDS, *DATA_REQUESTS], ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_every_request_arrives_as_it_was_sent(kind: typing.Any, data: st.DataObject) -> None:
    hints = typing.get_type_hints(kind, include_extras=True)
    values = {name: data.draw(example_of(hints[name])) for name in kind.__dataclass_fields__}
    request = kind(**values)
    incoming = received(encode(request), COMMANDS if kind in [*COMMANDS] else DATA_REQUESTS)
    assert incoming == (7, request, [])


def test_results_are_decoded_by_the_type_that_the_command_declares() -> None:
    command = AdvanceCommand(((2**62,),))
    failure = failure_of(OverBudget("too much", hint="less"))
    result = RankReport(("answer",), (failure,), 5, failure, lagging={"output answer": 3})
    assert request_frames.decode_result(command, encode_result(result)) == result
    for kind in (*COMMANDS, *DATA_REQUESTS):
        assert result_annotation(kind) is not typing.Any
    with pytest.raises(ProtocolError, match=r"\$\.log_bytes: a whole number is expected"):
        request_frames.decode_result(command, '{"changed": [], "log_bytes": "5"}')


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"type": "advanced", "to": [[1]]}', "$.type"),
        ('{"type": "advance", "to": [[1.5]]}', "$.to[0][0]"),
        ('{"type": "advance", "to": [[1]], "until": 3}', "$.until"),
        ('{"type": "advance", "to": [[1]], "to": [[2]]}', "$"),
        ('{"type": "insert"}', "$"),
        ('{"type": "insert", "name": 5}', "$.name"),
        ('{"type": "prepare", "place": "p", "durability": "none"}', "$.durability"),
        ('{"type": "publish", "name": "n", "keys": [["a", null]], "prefix": []}', "$.keys[0][1]"),
        ("not JSON", "$"),
    ],
)
def test_a_wrong_command_is_answered_with_the_path_of_its_mistake(text: str, path: str) -> None:
    """The strictness of the server's protocol; the request is answered, the connection goes on."""
    incoming = received(text)
    assert incoming.number == 7 and isinstance(incoming.request, ProtocolError) and incoming.request.path == path


def test_data_connections_carry_no_commands() -> None:
    incoming = received(encode(InsertCommand("edges")), DATA_REQUESTS)
    assert isinstance(incoming.request, ProtocolError) and "no message 'insert' here" in str(incoming.request)


def test_the_names_of_errors_cross_by_the_registry() -> None:
    error = request_frames.decode_refusal(request_frames.encode_refusal(OverBudget("full", detail="d", hint="h")))
    assert type(error) is OverBudget and (error.what, error.detail, error.hint) == ("full", "d", "h")
    foreign = request_frames.decode_refusal(request_frames.encode_refusal(ValueError("what it said")))
    assert "a worker failed: ValueError" in str(foreign) and "what it said" in str(foreign)


def test_numbers_beyond_64_bits_are_no_times() -> None:
    for number in (2**63, -(2**63) - 1):
        with pytest.raises(ProtocolError, match="too large"):
            decode(typing.get_type_hints(AdvanceCommand, include_extras=True)["to"], [[number]], "$")
