"""The order of values: that of Python, however many there are, and others run while many are sorted."""

import random
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.columns import value_order as module
from kpg.columns.pause_points import taking_turns
from kpg.columns.symbols import Symbols
from kpg.columns.value_order import value_order

VALUES = st.one_of(st.text(st.characters(exclude_categories=["Cs"])), st.binary())


class Interrupting:
    """Turns that call a function at each pause."""

    def __init__(self, function):
        self.function, self.pauses = function, 0

    def pause(self):
        self.pauses += 1
        with taking_turns(None):
            self.function()

    def wait(self, future):
        self.pause()
        future.result()
        return True

    def charge(self, seconds):
        pass


def expected(values):
    return sorted(values, key=lambda value: (isinstance(value, bytes), value))


@pytest.mark.parametrize("few", [0, 1 << 12])
@given(values=st.lists(VALUES))
def test_values_are_sorted_as_python_sorts_them(few, values):
    before, module.MAX_SORTED_BY_PYTHON = module.MAX_SORTED_BY_PYTHON, few
    try:
        order = value_order(values)
    finally:
        module.MAX_SORTED_BY_PYTHON = before
    assert [values[at] for at in order] == expected(values)
    assert sorted(order.tolist()) == list(range(len(values)))


def test_others_run_while_many_values_are_sorted_on_the_helper_thread(monkeypatch):
    threads = set()
    sort = module._sort_indices
    monkeypatch.setattr(
        module, "_sort_indices", lambda chunks: threads.add(threading.current_thread().name) or sort(chunks)
    )
    values = [f"text {number}" for number in range(100_000)]
    random.Random(1).shuffle(values)
    turns = Interrupting(lambda: None)
    with taking_turns(turns):
        order = value_order(values)
    assert [values[at] for at in order.tolist()] == sorted(values)
    assert turns.pauses > 2 * len(values) // module.VALUES_PER_PAUSE
    assert threads == {"kpg-helper_0"} or threads == {"kpg-helper"}


def test_no_value_is_sorted_by_importing_pandas():
    """Which would stop all threads of a server for a third of a second."""
    program = """if True:
        import sys
        from kpg.columns.value_order import value_order
        values = [f"text {number * 7919 % 100_003}" for number in range(100_000)]
        assert [values[at] for at in value_order(values).tolist()] == sorted(values)
        assert "pandas" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("change", ["add", "rank", "reclaim"])
def test_symbols_that_change_while_they_are_ranked_have_the_right_ranks(change):
    symbols, number = Symbols(), iter(range(10_000_000))

    def texts(count):
        return [f"{next(number) * 7919 % 1_000_003} x" for _ in range(count)]

    kept = symbols.intern(texts(20_000))
    kept = kept[::2]

    def interrupt():
        if turns.pauses % 3 == 0 and turns.pauses < 60:
            if change == "add":
                symbols.intern(texts(10))
            elif change == "rank":
                symbols.intern(texts(10))
                symbols.ranks()
            elif turns.pauses > 30:  # when it was sorted, before it is merged
                symbols.intern(texts(10))

    turns = Interrupting(interrupt)
    for _ in range(3):
        with taking_turns(turns):
            ranks = symbols.ranks()
        assert turns.pauses
        live = np.array([symbols.intern_one(value) for value in list(symbols._ids)])
        assert symbols.values(live[np.argsort(ranks[live])]) == expected(symbols._ids)
        if change == "reclaim":
            symbols.reclaim(kept)
        symbols.intern(texts(5_000 if change == "add" else 100))
