"""Long JSON read in pieces is the same value, or the same error, as read at once; other threads run meanwhile."""

import gc
import json
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.errors import ProtocolError
from kpg.protocol.json_pieces import PIECE_CHARACTERS, read_in_pieces
from kpg.protocol.message_codec import MAX_DIGITS, PARSER, read, refuse_repeated

TEXTS = st.text(st.sampled_from('ab[]{},:"\\ é\n'), max_size=30)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=6) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=40
)
LAYOUTS = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " : ")])


def outcome(function):
    """The value, or the error's class and message."""
    try:
        return function()
    except (json.JSONDecodeError, ProtocolError) as error:
        return type(error), str(error)


def whole(text):
    return outcome(lambda: PARSER.decode(text))


def in_pieces(text, size):
    return outcome(lambda: read_in_pieces(text, PARSER.scan_once, refuse_repeated, size))


@given(value=VALUES, layout=LAYOUTS, is_ascii=st.booleans(), size=st.integers(1, 60))
def test_pieces_give_the_same_value(value, layout, is_ascii, size):
    text = json.dumps(value, separators=layout, ensure_ascii=is_ascii)
    assert in_pieces(text, size) == value


@given(
    value=VALUES, layout=LAYOUTS, size=st.integers(1, 60), at=st.integers(0, 400), removed=st.integers(0, 3),
    inserted=st.sampled_from(["", *',]}[{":-1x\\', "NaN", "Infinity", '"a":1,"a":2,']),
)  # fmt: skip
def test_pieces_of_a_wrong_text_give_the_same_error(value, layout, size, at, removed, inserted):
    text = json.dumps(value, separators=layout)
    text = text[:at] + inserted + text[at + removed :]
    assert in_pieces(text, size) == whole(text)


@pytest.mark.parametrize("number", ["1.25e-7", "-0.5", "123456789012", "1E+3"])
def test_a_number_at_the_end_of_a_piece_is_read_whole(number):
    for size in range(1, 40):
        assert in_pieces(f"[1,{number},2,{number}]", size) == [1, float(number), 2, float(number)]


def test_long_texts_are_read_as_strictly_as_short_ones():
    rows = ",".join(f'[{row},"text {row}"]' for row in range(10_000))
    assert len(rows) > 4 * PIECE_CHARACTERS
    assert read(f'{{"rows":[{rows}]}}')["rows"][9_999] == [9_999, "text 9999"]
    for wrong, reason in {
        "[1,NaN]": "NaN is not JSON",
        '{"a":1,"a":2}': "the member 'a' is given twice",
        '["\\ud83d"]': "half of a character",
        f"[{'1' * (MAX_DIGITS + 1)}]": f"a number of {MAX_DIGITS + 1} digits",
        "[1 2]": "Expecting ',' delimiter",
    }.items():
        with pytest.raises(ProtocolError, match=reason):
            read(f'{{"rows":[{rows},{wrong},{rows}]}}')
    with pytest.raises(ProtocolError, match="the member 'rows' is given twice"):
        read(f'{{"rows":[{rows}],"rows":1}}')
    with pytest.raises(ProtocolError, match="half of a character"):
        read(f'{{"text":"{"x" * PIECE_CHARACTERS}\\ud83d"}}')
    assert read(f'["{"x" * PIECE_CHARACTERS}\\ud83d\\ude00"]')[0][-1] == "😀"


def test_nested_lists_that_never_fit_take_bounded_time():
    nested = "[" * 90 + "1," * PIECE_CHARACTERS + "1" + "]" * 90
    began = time.thread_time()
    with pytest.raises(ProtocolError, match="nested too deep"):
        read(f"[{','.join([nested] * 40)}]")
    assert time.thread_time() - began < 20  # tests share their machine; it takes 1 s


LONG = {
    "rows": "[" + ",".join(f"[{row},{row * 7}]" for row in range(600_000)) + "]",
    "one row": "[[" + "1," * 3_000_000 + "1]]",
    "long numbers": "[" + ",".join(["1" * (MAX_DIGITS - 1)] * 30_000) + "]",
}


@pytest.mark.parametrize("name", LONG)
def test_another_thread_runs_while_a_long_text_is_read(name):
    """It runs at least once in each twentieth of the CPU time; one call of the parser is the whole time."""
    text, turns, end = LONG[name], [0.0], threading.Event()
    gc.collect()
    gc.freeze()  # the objects of other tests take long to collect, and a collection holds the interpreter lock
    clock = time.pthread_getcpuclockid(threading.get_ident())

    def note():
        while not end.is_set():
            turns.append(time.clock_gettime(clock) - began)
            time.sleep(0.001)

    began = time.clock_gettime(clock)
    thread = threading.Thread(target=note)
    thread.start()
    read(text)
    turns.append(used := time.clock_gettime(clock) - began)
    end.set()
    thread.join()
    gc.unfreeze()
    assert max(after - before for before, after in zip(turns, turns[1:], strict=False)) < max(used / 3, 0.05), used
