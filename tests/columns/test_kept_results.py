"""Functions of text run once for each distinct symbol, and have the values of a function that forgets everything."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.columns import kept_results
from kpg.columns.bind import bind
from kpg.columns.expression import Apply, ColumnReference, Literal
from kpg.columns.schema import INT64, STRING, Schema
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import decode_rows, encode

TEXTS = st.sampled_from([None, "a", "bb", "ccc", "dddd", "bad", "x", "yy"])
SCHEMA = Schema.of({"t": str | None})
CALLS: list[str] = []


def size(extra, text):
    CALLS.append(text)
    if text == "bad":
        raise ValueError("a bad text")
    return len(text) + extra


def doubled(text):
    CALLS.append(text)
    return None if text == "x" else text * 2


def sizes(extra, count, texts):
    CALLS.extend(texts)
    return [len(text) + extra for text in texts]


FUNCTIONS = {
    "numbers": Apply(size, INT64.optional(), "distinct", (ColumnReference("t"),), (3,)),
    "texts": Apply(doubled, STRING.optional(), "distinct", (ColumnReference("t"),)),
    "batches": Apply(sizes, INT64, "batches", (ColumnReference("t"),), (1,)),
    "constants": Apply(lambda a, b: size(b, a), INT64.optional(), "distinct", (ColumnReference("t"), Literal(7))),
}


def expected(name, text):
    """Return the value of a function, "failed" for a row that fails."""
    if text is None:
        return None
    if name == "texts":
        return None if text == "x" else text * 2
    if text == "bad" and name != "batches":
        return "failed"
    return len(text) + {"numbers": 3, "batches": 1, "constants": 7}[name]


@pytest.mark.parametrize("name", FUNCTIONS)
@given(st.lists(st.one_of(st.just("reclaim"), st.lists(TEXTS, max_size=6)), max_size=8))
def test_results_are_kept_until_symbols_are_reclaimed(name, steps):
    symbols = Symbols()
    node = bind(FUNCTIONS[name], SCHEMA, symbols)
    computed: set[str] = set()
    for step in steps:
        if step == "reclaim":
            held = symbols.hold(np.array([symbols.intern_one("a")]))
            if symbols.reclaim([]):
                computed.clear()
            del held
            continue
        CALLS.clear()
        result = node.evaluate(encode(SCHEMA, [(text,) for text in step], symbols))
        failed = np.zeros(len(step), bool) if result.failed is None else np.broadcast_to(result.failed, len(step))
        values = np.broadcast_to(result.values, len(step)) if step else result.values
        rows = decode_rows(Schema.of({"v": node.type}), np.atleast_2d(np.where(failed, 0, values)), symbols)
        shown = ["failed" if lost else row[0] for row, lost in zip(rows, failed, strict=True)]
        assert shown == [expected(name, text) for text in step]
        assert not computed & {text for text in CALLS if text != "bad"}
        computed |= {text for text in CALLS if expected(name, text) != "failed"}


def test_results_that_are_not_used_again_are_not_kept(monkeypatch):
    monkeypatch.setattr(kept_results, "TRIED_SYMBOLS", 50)
    monkeypatch.setattr(kept_results, "MAX_KEPT_SYMBOLS", 80)
    symbols = Symbols()
    results = kept_results.KeptResults(symbols)
    ids = symbols.intern([f"text {number}" for number in range(100)])
    for at in range(0, 100, 20):
        assert results.split(ids[at : at + 20])[1].all()
        results.add(ids[at : at + 20], ids[at : at + 20])
    assert not results.is_useful
    useful = kept_results.KeptResults(symbols)
    useful.add(ids, ids * 2)
    results_by_row, missing = useful.split(ids)
    assert missing.tolist() == [False] * 80 + [True] * 20 and (results_by_row[:80] == ids[:80] * 2).all()
