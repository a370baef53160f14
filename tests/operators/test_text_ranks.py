"""The first rows of groups by numbers and texts, as rows come and go; texts decide among rows with equal numbers."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col

texts = st.sampled_from(["", "a", "B", "b", "é", "zz", "a b", None])
rows = st.tuples(st.integers(0, 1), st.integers(0, 2), texts, st.integers(0, 1), texts)
changes = st.lists(st.lists(st.tuples(rows, st.sampled_from([1, 1, -1])), max_size=8), max_size=4)


def value_order(value, descending=False):
    """Return a sort key; nulls are last."""
    text = [ord(character) for character in value or ""]
    return value is None, [-code for code in text] + [1] if descending else text


def expected(present, descending):
    groups = {}
    for row in present:
        groups.setdefault(row[0], []).append(row)
    first = []
    for group in groups.values():
        sign = -1 if descending else 1
        group.sort(key=lambda row: (sign * row[1], value_order(row[2], descending), row[3], value_order(row[4])))
        first += group[:2]
    return Counter(first)


@given(changes, st.booleans(), st.integers(0, 40))
def test_first_rows_are_those_in_the_order_of_values(batches, descending, others):
    with kpg.open() as db:
        words = db.input("words", word=str)
        words.insert([(f"w{number}",) for number in range(others)])  # more symbols than rows: ranks are local
        table = db.input("t", g=int, n=int, s="string?", m=int, t="string?")
        by = (col("n").desc(), col("s").desc()) if descending else ("n", "s")
        answer = table.group_by("g").first(2, *by).output("first")
        present = Counter()
        for batch in batches:
            for row, diff in batch:
                if diff > 0 and not present[row]:
                    present[row] += 1
                    table.insert([row])
                elif diff < 0 and present[row]:
                    present[row] -= 1
                    table.remove([row])
            db.advance()
            assert Counter(answer.rows()) == expected([row for row in present if present[row]], descending)
