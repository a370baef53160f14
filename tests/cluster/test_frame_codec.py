"""Rows, texts and counts come out as they went in; any words that are no message are refused."""

import contextlib
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.cluster import frame_codec, request_frames
from kpg.columns.exact_diffs import narrow
from kpg.columns.lane_values import NULL
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Updates, constant
from kpg.dataflow.operator import Message
from kpg.dataflow.transport import FailureFrame, ProgressFrame
from kpg.errors import ParseError, ProtocolError, TooManyRounds
from kpg.testing.strategies import times

texts = st.none() | st.text(max_size=5) | st.binary(max_size=5)


def joined(parts: list[bytes | memoryview]) -> np.ndarray:
    return np.frombuffer(b"".join(bytes(part) for part in parts), np.int64).copy()


@given(messages=st.lists(st.lists(st.tuples(st.integers(-5, 5), texts), max_size=6), min_size=1, max_size=5))
def test_rows_with_text_arrive_by_value(messages: list[list[tuple[int, str | bytes | None]]]) -> None:
    """Each text crosses once in each direction, for any numbers that it has at both ends."""
    here, there = Symbols(), Symbols()
    there.intern(["something", "else", b"altogether"])
    ours, theirs = frame_codec.SymbolDictionary(here), frame_codec.SymbolDictionary(there)
    for rows in messages:
        ids = here.intern([text for _, text in rows]) if rows else np.empty(0, np.int64)
        data = np.array([[number for number, _ in rows], ids], np.int64).reshape(2, len(rows))
        sent = Message(((3, 1),), Updates(data.copy(), constant((3, 1)), constant((1,))))
        frame = frame_codec.decode_rows(joined(frame_codec.encode_rows(7, 2, sent, (1,), ours)), theirs)
        assert (frame.dataflow, frame.channel, frame.message.times) == (7, 2, ((3, 1),))
        decoded = frame.message.payload.data
        assert decoded[0].tolist() == data[0].tolist()
        values = [None if i == NULL else there.values(np.array([i]))[0] for i in decoded[1].tolist()]
        assert values == [text for _, text in rows]
    assert len(ours.new_ids([np.arange(len(here))])) == 0  # all have crossed


@given(st.lists(st.integers(), min_size=1, max_size=6), st.booleans())
def test_diffs_of_any_size_arrive_exactly(values: list[int], repeated: bool) -> None:
    n = len(values)
    diffs = narrow(np.array(values, object).reshape(1, n)[:, : 1 if repeated else n].copy())
    updates = Updates(np.arange(n).reshape(1, n), constant((0,)), diffs, consolidated=True)
    dictionary = frame_codec.SymbolDictionary(Symbols())
    decoded, _ = frame_codec.decode_updates(joined(frame_codec.encode_updates(updates, (), dictionary)), 0, dictionary)
    assert decoded.consolidated and decoded.diffs.dtype == diffs.dtype and decoded.diffs.tolist() == diffs.tolist()


CHANGES = st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 9), times(2), st.integers(-3, 3)), max_size=5)


@given(changes=CHANGES, more=st.booleans())
def test_progress_arrives_as_it_was_sent(changes: list[tuple[int, int, tuple[int, ...], int]], more: bool) -> None:
    frame = ProgressFrame(((4, changes), (-1, [(0, 0, (5,), 1)])) if more else ((4, changes),))
    words = np.frombuffer(frame_codec.encode_progress(frame), np.int64)
    assert frame_codec.decode_progress(words) == frame


def decoders() -> dict[str, Callable[[np.ndarray], object]]:
    """Every decoder of frames, each with a symbol dictionary of its own."""
    return {
        "progress": frame_codec.decode_progress,
        "rows": lambda body: frame_codec.decode_rows(body, frame_codec.SymbolDictionary(Symbols())),
        "failure": frame_codec.decode_failure,
        "message": lambda body: request_frames.decode_frame(body, frame_codec.SymbolDictionary(Symbols())),
    }


def frames() -> dict[str, np.ndarray]:
    """A frame for each decoder, with texts, several times and several blocks."""
    symbols = Symbols()
    dictionary = frame_codec.SymbolDictionary(symbols)
    data = np.array([[1, 2], symbols.intern(["a text of several words", b"bytes"]).tolist()], np.int64)
    updates = Updates(data, np.array([[3, 4], [1, 1]], np.int64), np.array([[1, 2**70]], object))
    block = request_frames.RowBlock(updates, (1,))
    failure = frame_codec.encode_failure(FailureFrame(3, ParseError("no rule", detail="here", hint="there"), (-7, 9)))
    progress = ProgressFrame(((4, [(0, 1, (5, 6), -1), (1, 2, (7, 8), 1)]), (9, [(0, 0, (5,), 1)])))
    rows = frame_codec.encode_rows(
        7, 2, Message(((3, 1), (4, 1)), updates), (1,), frame_codec.SymbolDictionary(symbols)
    )
    return {
        "progress": joined([frame_codec.encode_progress(progress)]),
        "rows": joined(rows),
        "failure": joined([failure]),
        "message": joined(request_frames.encode_frame(5, '{"type": "settle"}', [block, block], dictionary)),
    }


@pytest.mark.parametrize("kind", ["progress", "rows", "failure", "message"])
def test_a_frame_that_is_cut_off_is_refused_wherever_it_is_cut(kind: str) -> None:
    """Every proper prefix of a frame is refused; only a whole number of progress records is a frame of its own."""
    decode, whole = decoders()[kind], frames()[kind]
    decode(whole.copy())
    complete = {0, 14} if kind == "progress" else set()  # nothing, and the record of the first dataflow
    for length in range(len(whole)):
        if length in complete:
            decode(whole[:length].copy())
        else:
            with pytest.raises(ProtocolError):
                decode(whole[:length].copy())


@given(kind=st.sampled_from(["progress", "rows", "failure", "message"]), data=st.data())
def test_a_frame_with_changed_words_is_refused_or_decoded_but_nothing_else_happens(
    kind: str, data: st.DataObject
) -> None:
    """For any words, a decoder returns or raises ProtocolError; a size that is negative or huge is refused."""
    body = frames()[kind].copy()
    for position in data.draw(st.lists(st.integers(0, len(body) - 1), min_size=1, max_size=4)):
        body[position] = data.draw(st.integers(-3, 12) | st.sampled_from([-(2**63), -(2**40), 2**40, 2**63 - 1]))
    with contextlib.suppress(ProtocolError):
        decoders()[kind](body)


SIZES = [("progress", 1), ("progress", 5), ("rows", 2), ("rows", 3), ("failure", 1), ("message", 1), ("message", 2)]


@pytest.mark.parametrize(("kind", "position"), SIZES)
@pytest.mark.parametrize("size", [-1, -(2**63), 2**40, 2**62])
def test_a_frame_with_an_impossible_size_is_refused(kind: str, position: int, size: int) -> None:
    body = frames()[kind].copy()
    body[position] = size
    with pytest.raises(ProtocolError):
        decoders()[kind](body)


def test_a_symbol_without_its_text_is_refused() -> None:
    here, there = Symbols(), Symbols()
    ours = frame_codec.SymbolDictionary(here)
    ids = here.intern(["a"])
    update = Updates(ids.reshape(1, 1).copy(), constant((0,)), constant((1,)))
    frame_codec.encode_updates(update, (0,), ours)  # never arrives
    with pytest.raises(ProtocolError, match="without its text"):
        frame_codec.decode_updates(
            joined(frame_codec.encode_updates(update, (0,), ours)), 0, frame_codec.SymbolDictionary(there)
        )


def test_a_text_crosses_once() -> None:
    here = Symbols()
    ours = frame_codec.SymbolDictionary(here)
    ids = here.intern(["x" * 1000])
    update = Updates(ids.reshape(1, 1), constant((0,)), constant((1,)))
    first, second = (len(joined(frame_codec.encode_updates(update, (0,), ours))) for _ in range(2))
    assert first > 125 > second
    ours.forget()
    assert len(joined(frame_codec.encode_updates(update, (0,), ours))) == first


def test_a_progress_frame_that_would_never_end_is_refused() -> None:
    """A time of −3 coordinates would have the decoder read the same words again and again."""
    with pytest.raises(ProtocolError):
        frame_codec.decode_progress(np.array([4, 2**40, 1, 1, -3], np.int64))


@pytest.mark.parametrize("what", ["x", "eight ch", "nine char"])
@pytest.mark.parametrize("values", [(), (0,), (-(2**63), 5, 2**63 - 1)])
def test_a_failure_arrives_with_its_error_and_the_values_that_circulated(what: str, values: tuple[int, ...]) -> None:
    sent = FailureFrame(12, TooManyRounds(what, hint="there"), values)
    received = frame_codec.decode_failure(joined([frame_codec.encode_failure(sent)]))
    assert (received.dataflow, received.circulating) == (12, values)
    assert isinstance(received.error, TooManyRounds) and received.error.what == what
