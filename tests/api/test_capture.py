"""Captures: an answer as a file that other processes follow, and that an input replays at the same times."""

import subprocess
import sys
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg import col

ROWS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([1, -1])), max_size=4)


def count(steps):
    """Return rows with their counts, accumulated over some sections."""
    total = Counter()
    for changes, _ in steps:
        *columns, _, diffs = (column.to_pylist() for column in changes.columns)
        for row, diff in zip(zip(*columns, strict=True), diffs, strict=True):
            total[row] += diff
    return Counter({row: n for row, n in total.items() if n})


def times(changes):
    return changes.column("_time").to_pylist()


@pytest.fixture
def captured(tmp_path):
    """A finished capture of three epochs: two rows; nothing; one more and one less."""
    path = tmp_path / "answer.arrow"
    with kpg.open() as db:
        rows = db.input("rows", x=int, text=str | None)
        answer = rows.filter(col("x") > 0).output("answer")
        with answer.capture(path):
            rows.insert([(1, "a"), (2, None), (-1, "no")])
            db.advance()
            db.advance()
            rows.insert([(3, "ü")])
            rows.remove([(1, "a")])
            db.advance()
    return path


def test_every_advance_writes_a_mark_even_without_changes(captured):
    """A3.4"""
    steps = list(kpg.replay(captured))
    assert [upper for _, upper in steps] == [((0,),), ((1,),), ((2,),), ((3,),)]
    assert [changes.num_rows for changes, _ in steps] == [0, 2, 0, 2]
    assert times(steps[1].changes) == [0, 0] and times(steps[3].changes) == [2, 2]
    assert count(steps) == {(2, None): 1, (3, "ü"): 1}


def test_a_capture_is_plain_arrow_for_another_process(captured):
    """A3.4: a process without kpg reads it."""
    code = f"""
import pyarrow as pa
stream = pa.ipc.open_stream({str(captured)!r})
total, upper = 0, None
while upper != b"[[3]]":
    batch, marks = stream.read_next_batch_with_custom_metadata()
    upper = marks[b"upper"] if marks else upper
    total += sum(batch.column("_diff").to_pylist())
print(stream.schema.names, total)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['x', 'text', '_time', '_diff'] 2"


def test_a_capture_begins_with_the_present_rows(tmp_path):
    with kpg.open() as db:
        rows = db.input("rows", x=int)
        answer = rows.output("answer")
        rows.insert([(1,), (2,)])
        db.advance()
        rows.remove([(1,)])
        db.advance()
        with answer.capture(tmp_path / "a") as capture:
            assert not capture.closed
        assert capture.closed
    (step,) = kpg.replay(tmp_path / "a")
    assert count([step]) == {(2,): 1} and step.upper == ((2,),)
    assert set(times(step.changes)) == {1}, "times that no reader can distinguish are one"


def test_kept_history_is_captured_at_its_own_times(tmp_path):
    with kpg.open(history=None) as db:
        rows = db.input("rows", x=int)
        answer = rows.output("answer")
        for x in range(4):
            rows.insert([(x,)])
            db.advance()
        answer.capture(tmp_path / "a").close()
    (step,) = kpg.replay(tmp_path / "a")
    assert sorted(zip(step.changes.column("x").to_pylist(), times(step.changes), strict=True)) == [
        (x, x) for x in range(4)
    ]


@settings(max_examples=25)
@given(epochs=st.lists(ROWS, min_size=1, max_size=6), begin=st.integers(0, 5), history=st.sampled_from([0, None]))
def test_replay_gives_the_answer_at_every_time(epochs, begin, history, tmp_path_factory):
    """A3.4: the replayed updates accumulate to the answer, wherever the capture began."""
    path = tmp_path_factory.mktemp("capture") / "a"
    was, began = {}, 0
    with kpg.open(history=history) as db:
        rows = db.input("rows", x=int)
        answer = rows.count("x").output("answer")
        for epoch, changes in enumerate(epochs):
            if epoch == min(begin, len(epochs) - 1):
                answer.capture(path)
                began = epoch
            for x, diff in changes:
                rows.update_at([(x,)], epoch, diff)
            db.advance()
            was[epoch] = sorted(answer.snapshot(counts=True).to_pylist(), key=str)
    with kpg.open(history=None) as db:
        again = db.input("again", x=int, count=int)
        answer = again.output("answer")
        db.replay(path, into=again)
        first = 0 if history is None else began
        assert db.epoch == len(epochs)
        for epoch in range(first, len(epochs)):
            rows = answer.snapshot(as_of=epoch, counts=True).rename_columns(["x", "count", "n"]).to_pylist()
            assert sorted(({"x": r["x"], "count": r["count"], "_count": r["n"]} for r in rows), key=str) == was[epoch]


def test_an_answer_that_keeps_nothing_is_captured_from_its_beginning(tmp_path):
    with kpg.open() as db:
        rows = db.input("rows", x=int)
        rows.insert([(1,)])
        db.advance()
        answer = rows.output("answer", keep=False)
        answer.capture(tmp_path / "a")
        rows.insert([(2,)])
        db.advance()
        assert len(list(answer.changes())) == 2, "a capture takes nothing away from other readers"
        with pytest.raises(kpg.InputError, match="keeps nothing"):
            answer.capture(tmp_path / "b")
    assert count(kpg.replay(tmp_path / "a")) == {(1,): 1, (2,): 1}


def test_releasing_the_answer_finishes_its_capture(tmp_path):
    with kpg.open() as db:
        answer = db.input("rows", x=int).output("answer")
        capture = answer.capture(tmp_path / "a")
        answer.release()
        assert capture.closed and not db.captures
        db.advance()
    assert len(list(kpg.replay(tmp_path / "a"))) == 1


def test_times_of_several_coordinates_are_lists(tmp_path):
    with kpg.open(coordinates=2, history=None) as db:
        rows = db.input("rows", x=int)
        answer = rows.output("answer")
        with answer.capture(tmp_path / "a"):
            rows.update_at([(1,), (2,)], [(0, 3), (1, 0)])
            db.advance_to((2, 4))
    steps = list(kpg.replay(tmp_path / "a"))
    assert sorted(times(steps[-1].changes)) == [[0, 3], [1, 0]] and steps[-1].upper == ((2, 4),)
    with kpg.open(coordinates=2, history=None) as db:
        again = db.input("again", x=int)
        answer = again.output("answer")
        assert db.replay(tmp_path / "a", into="again") == 2
        assert answer.rows(as_of=(1, 1)) == [(2,)] and answer.rows(as_of=(1, 3)) == [(1,), (2,)]
    with kpg.open() as db, pytest.raises(kpg.SchemaMismatch, match="does not fit"):
        db.replay(tmp_path / "a", into=db.input("again", x=int))


def test_closing_all_inputs_closes_the_frontier_of_a_capture(tmp_path):
    with kpg.open() as db:
        rows = db.input("rows", x=int)
        answer = rows.output("answer")
        with answer.capture(tmp_path / "a"):
            rows.insert([(1,)])
            rows.close()
            db.advance()
    assert list(kpg.replay(tmp_path / "a"))[-1].upper == ()
    with kpg.open() as db:
        again = db.input("again", x=int)
        answer = again.output("answer")
        db.replay(tmp_path / "a", into=again)
        assert again.closed and answer.rows(as_of=0) == [(1,)]


def test_marks_name_the_failure_while_the_answer_has_no_value(tmp_path):
    with kpg.open() as db:
        rows = db.input("rows", x=int)
        answer = rows.select(y=10 // col("x")).output("answer")
        with answer.capture(tmp_path / "a"):
            rows.insert([(0,), (5,)])
            db.advance()
            rows.remove([(0,)])
            db.advance()
    failed = [step.failed for step in kpg.replay(tmp_path / "a")]
    assert failed[0] is None and "answer" in failed[1] and failed[2] is None
    with kpg.open() as db, pytest.raises(kpg.DataError, match="failed"):
        db.replay(tmp_path / "a", into=db.input("again", y=int))


def test_a_dataflow_that_fails_ends_its_capture(tmp_path):
    with kpg.open(max_rounds=5) as db:
        rows = db.input("rows", x=int)
        growing = rows.iterate(lambda xs: xs.select(x=col("x") + 1).concat(xs).distinct())
        answer = growing.output("answer")
        capture = answer.capture(tmp_path / "a")
        rows.insert([(1,)])
        db.advance()
        assert capture.closed
    assert "did not reach a fixed point" in list(kpg.replay(tmp_path / "a"))[-1].failed


def test_replay_refuses_a_capture_that_does_not_fit_the_input(captured):
    with kpg.open() as db:
        with pytest.raises(kpg.SchemaMismatch, match="does not fit"):
            db.replay(captured, into=db.input("other", x=int))
        with pytest.raises(kpg.SchemaMismatch, match="does not fit"):
            db.replay(captured, into=db.input("typed", x=str, text=str | None))
        with pytest.raises(kpg.UndefinedName):
            db.replay(captured, into="nothing")
        late = db.input("late", x=int, text=str | None)
        db.replay(captured, into=db.input("fine", x=int, text=str | None))
        assert db.epoch == 3
        with pytest.raises(kpg.TimeTooEarly):
            db.replay(captured, into=late)
        assert db.advance() == 3


def test_a_column_with_a_reserved_name_is_refused(tmp_path):
    with kpg.open() as db, pytest.raises(kpg.SchemaMismatch, match="_time"):
        db.input("rows", _time=int).output("answer").capture(tmp_path / "a")


def test_a_truncated_file_is_refused_wherever_it_ends(captured, tmp_path):
    whole = captured.read_bytes()
    full = [(changes.to_pylist(), upper) for changes, upper in kpg.replay(captured)]
    cut = tmp_path / "cut"
    for size in range(0, len(whole) - 8, 7):  # the last eight bytes are Arrow's own end
        cut.write_bytes(whole[:size])
        with pytest.raises(kpg.Corrupt):
            list(kpg.replay(cut))
        replayed = [(changes.to_pylist(), upper) for changes, upper in kpg.replay(cut, unfinished=True)]
        assert replayed == full[: len(replayed)], "what is given of a cut file is right"


def test_a_flipped_bit_is_refused_or_harmless(captured, tmp_path):
    """Every byte of the file is under a checksum, except where only Arrow's own padding or end is."""
    whole = captured.read_bytes()
    right = [(changes.to_pylist(), upper) for changes, upper in kpg.replay(captured)]
    bad = tmp_path / "bad"
    refused = 0
    for offset in range(0, len(whole), 3):
        bad.write_bytes(whole[:offset] + bytes([whole[offset] ^ 0x10]) + whole[offset + 1 :])
        given = []
        try:
            for changes, upper in kpg.replay(bad):
                given.append((changes.to_pylist(), upper))
        except kpg.Corrupt:
            refused += 1
        for replayed, true in zip(given, right, strict=False):
            assert replayed[0] == true[0], "rows are given only under a checksum that fits"
    assert refused > 0.9 * len(whole) / 3


def test_other_files_are_refused(tmp_path, captured):
    (tmp_path / "text").write_text("no capture at all, but long enough to be read as something else")
    (tmp_path / "empty").write_bytes(b"")
    with pa.OSFile(str(tmp_path / "arrow"), "wb") as file, pa.ipc.new_stream(file, pa.schema([("x", pa.int64())])):
        pass
    for name in ("text", "empty", "arrow"):
        with pytest.raises(kpg.Corrupt, match="not a capture"):
            list(kpg.replay(tmp_path / name))
    with pytest.raises(kpg.Unavailable, match="cannot read"):
        list(kpg.replay(tmp_path / "missing"))
    changed = captured.read_bytes().replace(b"kpg.capture\0", b"kpg.capture\0")
    changed = changed.replace(b"\x01\0\0\0001\0\0\0", b"\x01\0\0\0009\0\0\0", 1)
    (tmp_path / "version").write_bytes(changed)
    with pytest.raises(kpg.Corrupt, match="another version"):
        list(kpg.replay(tmp_path / "version"))


def test_a_file_that_cannot_be_written_affects_nothing_else(tmp_path):
    with kpg.open() as db:
        rows = db.input("rows", x=int)
        answer = rows.output("answer")
        with pytest.raises(kpg.Unavailable, match="cannot write"):
            answer.capture(tmp_path / "no" / "such" / "place")
        if sys.platform == "linux":
            with pytest.raises(kpg.Unavailable, match="cannot write"):
                answer.capture("/dev/full")
        rows.insert([(1,)])
        db.advance()
        assert answer.rows() == [(1,)] and not db.captures


def test_a_full_disk_ends_the_capture_and_nothing_else(tmp_path, monkeypatch):
    with kpg.open() as db:
        rows = db.input("rows", x=int)
        answer = rows.output("answer")
        capture = answer.capture(tmp_path / "a")

        def full(data):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(capture._file, "write", full)
        rows.insert([(1,)])
        with pytest.raises(kpg.Unavailable, match="cannot write"):
            db.advance()
        assert answer.rows() == [(1,)] and capture.closed and not db.captures
        assert db.advance() == 1
    assert count(kpg.replay(tmp_path / "a", unfinished=True)) == {}


def test_an_unfinished_capture_can_be_followed(tmp_path):
    with kpg.open() as db:
        rows = db.input("rows", x=int)
        answer = rows.output("answer")
        answer.capture(tmp_path / "a")
        for epoch in range(3):
            rows.insert([(epoch,)])
            db.advance()
            steps = list(kpg.replay(tmp_path / "a", unfinished=True))
            assert steps[-1].upper == ((epoch + 1,),) and count(steps) == {(x,): 1 for x in range(epoch + 1)}
        with pytest.raises(kpg.Corrupt, match="truncated"):
            list(kpg.replay(tmp_path / "a"))


def test_an_answer_of_many_rows_is_cut_into_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("kpg.api.capture.MAX_BATCH_ROWS", 100)
    with kpg.open() as db:
        rows = db.input("rows", x=int, text=str)
        answer = rows.output("answer")
        rows.insert([(x, str(x)) for x in range(1234)])
        db.advance()
        answer.capture(tmp_path / "a").close()
    (step,) = kpg.replay(tmp_path / "a")
    assert count([step]) == {(x, str(x)): 1 for x in range(1234)}
    assert max(batch.num_rows for batch in pa.ipc.open_stream(str(tmp_path / "a"))) == 100
