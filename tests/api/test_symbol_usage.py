"""Symbols that no row uses any more are freed, and the others keep their values."""

from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col

Names = st.lists(st.sampled_from(["ann", "bob", "cid", "dan", "eve"]), max_size=6)


@given(st.lists(st.tuples(Names, Names, st.booleans()), max_size=6))
def test_answers_stay_right_when_symbols_are_reclaimed(steps: list[tuple[list[str], list[str], bool]]) -> None:
    """Interned text is exact before and after reclaiming: joins, min over text, loops and unread changes included."""
    with kpg.open() as db:
        people = db.input("people", name=str, friend=str)
        least = people.group_by("friend").min("name").output("least")
        spread = people.select(at=col("name")).distinct()
        by_name = people.arrange("name")
        reach = spread.iterate(
            lambda seen: by_name.join(seen, on={"name": "at"}).select(at=col("friend")).concat(seen).distinct()
        ).output("reach")
        rows: list[tuple[str, str]] = []
        for added, friends, reclaim in steps:
            people.remove(rows)
            rows = list(zip(added, friends, strict=False))
            people.insert(rows)
            db.advance()
            db.advance()
            while db.idle():
                pass
            if reclaim:
                db.reclaim()
            wanted = {(friend, min(name for name, other in rows if other == friend)) for _, friend in rows}
            assert set(least.rows()) == wanted
            assert {row[0] for row in reach.rows()} == {text for row in rows for text in row}


def test_removed_text_takes_no_memory() -> None:
    """Symbols that no row uses can be reclaimed; their ids are used again."""
    with kpg.open() as db:
        words = db.input("words", word=str)
        answer = words.distinct().output("answer")
        for batch in range(5):
            texts = [(f"{batch}-{number}",) for number in range(1000)]
            words.insert(texts)
            db.advance()
            assert len(answer.rows()) == 1000
            words.remove(texts)
            db.advance()
            list(answer.changes())
            db.advance()
            while db.idle():
                pass
            assert db.reclaim() == 1000
        assert len(db.symbols) == 0
