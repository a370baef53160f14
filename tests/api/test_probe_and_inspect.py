"""Probes, which report the progress of an answer, and inspect, which sees each update that passes (A1.11)."""

import kpg
from kpg import col


def test_a_probe_passes_a_time_when_all_its_updates_have_arrived():
    """A1.11: not before the clock does, and then through all operators, loops included."""
    with kpg.open() as db:
        edges = db.input("edges", src=int, dst=int)
        probe = edges.iterate(
            lambda seen: seen.join(edges, on={"dst": "src"}).select("src", dst="dst_right").concat(edges).distinct()
        ).probe()
        edges.insert([(1, 2), (2, 3)])
        assert not probe.passed(0) and list(probe.frontier()) == [(0,)]
        assert db.advance() == 0
        assert probe.passed(0) and not probe.passed(1) and list(probe.frontier()) == [(1,)]
        db.advance_to(7)
        assert probe.passed(6) and not probe.passed(7)
        edges.close()
        assert not probe.frontier() and probe.passed(10**9)
        probe.release()
        probe.release()


def test_inspect_sees_every_update_and_changes_nothing():
    """A1.11: rows of the user's values, with time and diff, in parts of any size."""
    seen, filtered = [], []
    with kpg.open() as db:
        words = db.input("words", word=str, n=int)
        watched = words.inspect(lambda *update: seen.append(update)).filter(col("n") > 1)
        answer = watched.inspect(lambda *update: filtered.append(update)).output("answer")
        words.insert([("one", 1), ("two", 2)])
        db.advance()
        words.remove([("two", 2)])
        words.insert([("three", 3)])
        db.advance()
        assert sorted(seen) == [(("one", 1), 0, 1), (("three", 3), 1, 1), (("two", 2), 0, 1), (("two", 2), 1, -1)]
        assert sorted(filtered) == [update for update in sorted(seen) if update[0][1] > 1]
        assert answer.rows() == [("three", 3)]


def test_inspect_inside_a_loop_sees_rounds():
    """A1.11: a time inside a loop includes its round."""
    seen = []
    with kpg.open() as db:
        start = db.input("start", x=int)
        answer = start.iterate(
            lambda x: (
                x.select(x=col("x") + 1)
                .filter(col("x") <= 3)
                .concat(start)
                .distinct()
                .inspect(lambda row, time, diff: seen.append((row, time, diff)))
            )
        ).output("answer")
        start.insert([(1,)])
        db.advance()
        assert sorted(answer.rows()) == [(1,), (2,), (3,)]
        assert sorted(seen) == [((1,), (0, 0), 1), ((2,), (0, 0), 1), ((3,), (0, 1), 1)]
