"""The horizon of history: each reader holds the relations that it reads, and no others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.algebra.frontier import Frontier
from kpg.api.history_horizon import HistoryHorizon
from kpg.storage.named_readers import NamedReader

NAMES = st.sampled_from("abc")


@given(
    last=st.integers(0, 9),
    compacted=st.dictionaries(NAMES, st.integers(0, 9)),
    readers=st.lists(st.tuples(st.integers(0, 9), st.none() | st.frozensets(NAMES)), max_size=3),
    relations=st.frozensets(NAMES, min_size=1),
)
def test_the_horizon_is_the_latest_since_of_the_relations(last, compacted, readers, relations):
    named = {str(number): NamedReader((time,), of) for number, (time, of) in enumerate(readers)}
    horizon = HistoryHorizon((0,), {name: Frontier.at((since,)) for name, since in compacted.items()}, named)

    def one(name):
        return max(min([last, *[time for time, of in readers if of is None or name in of]]), compacted.get(name, 0))

    assert horizon.of((last,), relations) == Frontier.at((max(map(one, relations)),))
    assert horizon.of(None, relations) == Frontier.at((max(compacted.get(name, 0) for name in relations),))
    for written in (reader.to_json() for reader in named.values()):
        assert NamedReader.from_json(written).to_json() == written


def rows_kept(db, name):
    """Return the number of updates of a relation's trace after all merging."""
    spine = db.inputs[name].base().handle.spine
    while db.idle():
        pass
    return spine.rows


def test_a_reader_holds_the_history_of_its_relations_and_no_others(tmp_path):
    for number in range(2):
        with kpg.open(tmp_path / "db") as db:
            left, right = db.input("left", n=int), db.input("right", n=int)
            both = left.join(right, on="n").output("both")
            by_left = left.count("n").output("of left")
            if number == 0:
                left.insert([(0,)])
                right.insert([(0,)])
                start = db.advance()
                db.set_reader("r", start, of=["left"])
            for source in (left, right):
                source.base()
            for n in range(20):
                for source in (left, right):
                    source.remove([(n + 20 * number,)])
                    source.insert([(n + 20 * number + 1,)])
                db.advance()
            assert rows_kept(db, "left") >= 20 + 20 * number
            assert rows_kept(db, "right") < 20
            assert by_left.rows(as_of=start + 5) == [(5, 1)]
            assert left.output().rows(as_of=start + 7) == [(7,)]
            with pytest.raises(kpg.TimeTooEarly):
                both.rows(as_of=start + 5)  # refused: half of the history that it needs is compacted
            db.checkpoint()
            with pytest.raises(kpg.TimeTooEarly):
                db.set_reader("late", start, of=["left", "right"])
            with pytest.raises(kpg.UndefinedName):
                db.set_reader("late", db.epoch, of=["nowhere"])
    with kpg.open(tmp_path / "db") as db:
        db.input("left", n=int)
        db.drop_reader("r")
        db.advance()
        assert rows_kept(db, "left") < 20
