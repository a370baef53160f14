"""Rows, texts and counts come out as they went in; words that are no message are refused, whatever they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.cluster import frame_codec, message
from kpg.columns.lane_values import NULL
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Updates, constant
from kpg.dataflow.operator import Message
from kpg.dataflow.transport import ProgressFrame
from kpg.errors import ProtocolError
from kpg.testing.strategies import times

texts = st.none() | st.text(max_size=5) | st.binary(max_size=5)


def joined(parts: list[bytes | memoryview]) -> np.ndarray:
    return np.frombuffer(b"".join(bytes(part) for part in parts), np.int64).copy()


@given(messages=st.lists(st.lists(st.tuples(st.integers(-5, 5), texts), max_size=6), min_size=1, max_size=5))
def test_rows_with_text_arrive_by_value(messages: list[list[tuple[int, str | bytes | None]]]) -> None:
    """Each text crosses once in each direction, whatever its number here and there."""
    here, there = Symbols(), Symbols()
    there.intern(["something", "else", b"altogether"])
    ours, theirs = frame_codec.SymbolDictionary(here), frame_codec.SymbolDictionary(there)
    for rows in messages:
        ids = here.intern([text for _, text in rows]) if rows else np.empty(0, np.int64)
        data = np.array([[number for number, _ in rows], ids], np.int64).reshape(2, len(rows))
        sent = Message(((3, 1),), Updates(data.copy(), constant((3, 1)), constant((1,))))
        frame = frame_codec.decode_rows(joined(frame_codec.encode_rows(7, 2, sent, (1,), ours)), theirs)
        assert (frame.dataflow, frame.channel, frame.message.times) == (7, 2, ((3, 1),))
        found = frame.message.payload.data
        assert found[0].tolist() == data[0].tolist()
        values = [None if i == NULL else there.values(np.array([i]))[0] for i in found[1].tolist()]
        assert values == [text for _, text in rows]
    assert len(ours.new_ids([np.arange(len(here))])) == 0  # all have crossed


@given(changes=st.lists(st.tuples(st.integers(-9, 9), times(2), st.integers(-3, 3)), max_size=5), more=st.booleans())
def test_counts_come_out_as_they_went_in(changes: list[tuple[int, tuple[int, ...], int]], more: bool) -> None:
    frame = ProgressFrame(((4, changes), (-1, [(0, (5,), 1)])) if more else ((4, changes),))
    words = np.frombuffer(frame_codec.encode_progress(frame), np.int64)
    assert frame_codec.decode_progress(words) == frame


@given(words=st.lists(st.integers(-3, 12), max_size=24))
def test_words_that_are_no_message_are_refused(words: list[int]) -> None:
    body = np.array(words, np.int64)
    for decode in (
        frame_codec.decode_progress,
        lambda body: frame_codec.decode_rows(body, frame_codec.SymbolDictionary(Symbols())),
        lambda body: message.decode(body, frame_codec.SymbolDictionary(Symbols())),
    ):
        try:
            decode(body.copy())
        except ProtocolError:
            pass


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
