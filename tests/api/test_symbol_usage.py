"""Symbols that no row uses any more are freed, and the others keep their values."""

from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col
from kpg.observe.drain import drain
from kpg.observe.sinks import Sink, TakenChanges
from kpg.service import Change, Service

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


def test_texts_of_delayed_changes_are_in_use() -> None:
    """Changes wait for the end of an interval, in a drain and in an interest, and no trace has their rows."""

    class Kept(Sink):
        def __init__(self) -> None:
            self.rows: list[tuple[str]] = []

        def take(self, changes: TakenChanges) -> None:
            self.rows += [row for row, _, _ in changes]

    with kpg.open() as db:
        clock = [0.5]
        service = Service(db, clock=lambda: clock[0])
        service.create_relation("word", {"t": str})
        words, kept = db.input("words", t=str, keep=False), Kept()
        slow = service.interest("word", granularity=1.0)
        with drain(words.output("all words", keep=False), kept, granularity=100):
            words.insert([("drained",)])
            service.transact([Change("word", ("followed",))])
            clock[0] = 1.5
            service.transact([Change("word", ("followed",), -1)])
            db.advance()
            while db.idle():
                pass
            db.reclaim()
            words.insert([("new",), ("newer",)])  # would get the numbers of texts that were freed
            db.advance_to(200)
            clock[0] = 2.5
            assert [row for row, _, _ in slow.take()] == [("followed",), ("followed",)]
        assert sorted(kept.rows) == [("drained",), ("new",), ("newer",)]
