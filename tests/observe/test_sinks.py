"""Sinks instead of readers: A13.5, A13.7."""

import csv
import json

import pytest

import kpg
from kpg.algebra.frontier import CLOSED, Frontier
from kpg.observe.drain import drain
from kpg.observe.sinks import FileSink, LatencySink, open_sink


class Heard:
    """A sink that records its calls."""

    def __init__(self):
        self.calls = []
        self.closed = False

    def take(self, changes):
        self.calls.append(sorted(changes))

    def advance(self, frontier):
        self.calls.append(frontier)

    def close(self):
        self.closed = True


def lines(path) -> list[str]:
    return path.read_text().splitlines()


def test_a_line_of_milliseconds_for_each_epoch_that_is_closed(tmp_path):
    """A13.5: and a remark when the frontier is empty."""
    ticks = iter([0.0, 0.010, 0.015, 1.015, 1.016])
    with kpg.open() as db:
        keys = db.input("keys", k=int)
        sink = LatencySink(tmp_path / "epochs.log", clock=lambda: next(ticks))
        drained = drain(keys.count("k").output("counts", keep=False), sink)
        keys.insert([(1,), (2,)])
        db.advance()
        assert lines(tmp_path / "epochs.log") == ["10.000"] and sink.rows == 2
        db.advance()
        keys.insert([(1,)])
        db.advance()
        assert lines(tmp_path / "epochs.log") == ["10.000", "5.000", "1000.000"] and not sink.complete
        keys.close()
        assert sink.complete and sink.epochs == 4
        assert lines(tmp_path / "epochs.log")[-1] == "# complete: 4 epochs, 4 changes, 1016.000 ms"
        drained.close()


def test_a_frontier_that_does_not_move_is_not_an_epoch(tmp_path):
    """A13.5."""
    with kpg.open() as db:
        keys = db.input("keys", k=int)
        with drain(keys.output("all"), LatencySink(tmp_path / "log")) as drained:
            other = db.input("other", k=int)
            db.advance()
            db.settle()
            other.close()
            assert drained.sink.epochs == 1
            db.advance_to(10)
            assert drained.sink.epochs == 2 and not drained.sink.complete
        db.advance()
        assert len(lines(tmp_path / "log")) == 2 and db.followers == []


def test_changes_come_before_the_frontier_that_covers_them():
    with kpg.open() as db:
        keys = db.input("keys", k=int)
        keys.insert([(1,)])
        db.advance()
        heard = Heard()
        drain(keys.output("all"), heard)  # what was there before comes first
        keys.insert([(2,)])
        db.advance()
        db.advance()
        keys.close()
        one, two = Frontier.at((1,)), Frontier.at((2,))
        expected = [[((1,), 0, 1)], one, [((2,), 1, 1)], two, Frontier.at((3,)), CLOSED]
        assert heard.calls == expected


def test_with_a_granularity_both_changes_and_frontier_come_at_edges():
    """A13.6: through a drain."""
    with kpg.open() as db:
        keys = db.input("keys", k=int)
        heard = Heard()
        drain(keys.output("all"), heard, granularity=4)
        for epoch in range(9):
            keys.insert([(epoch // 3,)])
            if epoch:
                keys.remove([((epoch - 1) // 3,)])
            db.advance()
        keys.close()
        batches = [call for call in heard.calls if isinstance(call, list)]
        assert batches == [[((0,), 0, 1)], [((0,), 4, -1), ((1,), 4, 1)], [((1,), 8, -1), ((2,), 8, 1)]]
        frontiers = [call for call in heard.calls if isinstance(call, Frontier)]
        assert frontiers == [Frontier.at((4,)), Frontier.at((8,)), Frontier.at((12,)), CLOSED]


def test_an_answer_that_fails_closes_no_epoch_until_it_is_healed():
    with kpg.open() as db:
        pairs = db.input("pairs", a=int, b=int)
        heard = Heard()
        drain(pairs.select(q=kpg.col("a") // kpg.col("b")).output("quotients"), heard)
        pairs.insert([(6, 2), (1, 0)])
        db.advance()
        assert heard.calls == []
        pairs.remove([(1, 0)])
        db.advance()
        assert heard.calls == [[((3,), 0, 1)], Frontier.at((2,))]


class Full(Heard):
    """A sink with a full disk."""

    def take(self, changes):
        raise kpg.Unavailable("cannot write: no space left")


def test_a_sink_that_cannot_write_ends_its_drain_and_nothing_else():
    with kpg.open() as db:
        keys = db.input("keys", k=int)
        heard, full = Heard(), Full()
        failed, going = drain(keys.output("one"), full), drain(keys.output("two"), heard)
        keys.insert([(1,)])
        db.advance()
        assert failed.closed and full.closed and "no space" in failed.failure.what
        assert heard.calls == [[((1,), 0, 1)], Frontier.at((1,))] and not going.closed


def test_an_answer_that_fails_for_good_ends_its_drain_and_nothing_else():
    with kpg.open(max_rounds=5) as db:
        seeds = db.input("seeds", n=int)
        grown = seeds.iterate(lambda n: n.select(n=kpg.col("n") + 1).concat(n).distinct())
        drained = drain(grown.output("grown"), Heard())
        seeds.insert([(1,)])
        db.advance()
        assert drained.closed and isinstance(drained.failure, kpg.TooManyRounds)
        db.advance()


@pytest.mark.parametrize("keep", [True, False])
def test_a_drain_ends_with_its_answer(keep):
    with kpg.open() as db:
        keys = db.input("keys", k=int)
        heard = Heard()
        answer = keys.count("k").output("counts", keep=keep)
        drained = drain(answer, heard)
        answer.release()
        db.advance()
        assert drained.closed and heard.closed and db.followers == []


def test_changes_as_lines_of_json(tmp_path):
    """A13.7."""
    path = tmp_path / "changes.jsonl"
    with kpg.open() as db:
        words = db.input("words", w=str, x=float | None)
        with drain(words.output("all"), FileSink(path)):
            words.insert([("ü\n", None), ("b", float("nan"))])
            db.advance()
            words.remove([("b", float("nan"))])
            db.advance()
            words.close()
    objects = [json.loads(line, parse_constant=pytest.fail) for line in lines(path)]
    assert sorted(map(str, objects[:2])) == sorted(
        str({"row": row, "time": 0, "diff": 1}) for row in ({"w": "ü\n", "x": None}, {"w": "b", "x": "nan"})
    )
    assert objects[2:] == [
        {"upto": 1}, {"row": {"w": "b", "x": "nan"}, "time": 1, "diff": -1}, {"upto": 2}, {"complete": True},
    ]  # fmt: skip


def test_changes_as_csv(tmp_path):
    """A13.7."""
    path = tmp_path / "changes.csv"
    with kpg.open() as db:
        words = db.input("words", w=str, n=int)
        with drain(words.output("all"), FileSink(path)):
            words.insert([('say "hi", you', 1)])
            db.advance()
            words.remove([('say "hi", you', 1)])
            db.advance()
            with path.open(newline="") as file:
                assert list(csv.reader(file)) == [
                    ["w", "n", "_time", "_diff"], ['say "hi", you', "1", "0", "1"], ['say "hi", you', "1", "1", "-1"],
                ]  # fmt: skip


def test_a_sink_by_configuration(tmp_path):
    """A13.7: as a client sends it; files are made in one directory only."""
    assert isinstance(open_sink({"type": "latency", "path": "a.log"}, tmp_path), LatencySink)
    assert open_sink({"type": "file", "path": "b.txt", "format": "csv"}, tmp_path).format == "csv"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.log", "b.txt"]


@pytest.mark.parametrize("path", ["../up", "/etc/passwd", "a/b", "", ".", "..", None, 3, "link"])
def test_a_client_cannot_write_elsewhere(tmp_path, path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(kpg.InputError):
        open_sink({"type": "file", "path": path}, tmp_path)
    assert not (tmp_path / "target").exists()


def test_sinks_that_cannot_be_are_refused(tmp_path):
    with pytest.raises(kpg.Unavailable, match="switched off"):
        open_sink({"type": "latency", "path": "a"}, None)
    with pytest.raises(kpg.TypeMismatch, match="type of sink"):
        open_sink({"type": "telepathy", "path": "a"}, tmp_path)
    with pytest.raises(kpg.TypeMismatch, match="format"):
        open_sink({"type": "file", "path": "a", "format": "xls"}, tmp_path)
    with pytest.raises(kpg.Unavailable, match="cannot write"):
        FileSink(tmp_path / "missing" / "a")


def test_a_sink_follows_the_frontier_of_all_workers(tmp_path):
    """A13.5: on two workers, each of which has a part of the answer."""
    with kpg.open(workers=2) as db:
        keys = db.input("keys", k=int)
        path = tmp_path / "changes.jsonl"
        with (
            drain(keys.count("k").output("counts"), FileSink(path)),
            drain(keys.output("all"), LatencySink(tmp_path / "epochs.log")) as timed,
        ):
            keys.insert([(k,) for k in range(10)])
            db.advance()
            assert timed.sink.rows == 10 and timed.sink.epochs == 1
            keys.close()
            db.advance()
            assert timed.sink.complete
        objects = [json.loads(line) for line in lines(path)]
        assert sorted(item["row"]["k"] for item in objects if "row" in item) == list(range(10))
        assert [item for item in objects if "row" not in item] == [{"upto": 1}, {"complete": True}]
