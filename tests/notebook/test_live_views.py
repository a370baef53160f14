"""Views that follow an answer: they show its last rows, end with it or with their cell, and disturb nothing."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import kpg
from kpg.notebook.frame_pacer import FramePacer
from tests.server.serving import ADMIN, served

PATIENCE_SECONDS = 20.0


def eventually(check: Callable[[], bool]) -> None:
    """Wait until a condition holds: views with a thread draw a little later."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not check():
        assert time.monotonic() < deadline, "the view has not followed"
        time.sleep(0.005)


@pytest.fixture(params=["embedded", "background", "workers"])
def db(request: pytest.FixtureRequest) -> Iterator[Any]:
    options = {"embedded": {}, "background": {"background": True}, "workers": {"workers": 2}}[request.param]
    with kpg.open(**options) as opened:
        yield opened


def test_a_table_follows_its_answer_until_it_is_released(db: Any, notebook: Any) -> None:
    orders = db.input("orders", who=str, amount=int)
    totals = orders.group_by("who").sum("amount").output("totals")
    table = notebook.run("show", lambda: totals.live(interval=0.0))
    for round in range(5):
        notebook.run(f"advance {round}", lambda: (orders.insert([("ann", 1), ("bob", 2)]), db.advance()) and None)
    eventually(lambda: "<td>ann</td><td>5</td>" in notebook.last["text/html"])
    assert "totals as of 4: 2 distinct rows" in notebook.last["text/plain"] and len(notebook.frames) == 1
    assert table.is_live and repr(table) == notebook.last["text/plain"]
    totals.release()
    notebook.run("advance", db.advance)
    eventually(lambda: not table.is_live)
    eventually(lambda: "totals has ended" in notebook.last["text/html"])
    assert "<td>5</td>" in notebook.last["text/html"] and not db.followers


def test_a_view_leaves_the_changes_of_its_answer_to_the_program(db: Any, notebook: Any) -> None:
    rows = db.input("rows", n=int)
    answer = rows.output("answer")
    notebook.run("show", lambda: answer.live(interval=0.0))
    rows.insert([(1,)])
    db.advance()
    eventually(lambda: "<td>1</td>" in notebook.last["text/html"])
    assert [(row, diff) for row, _, diff in answer.changes()] == [((1,), 1)]


def test_a_view_ends_when_its_cell_runs_again_and_not_with_other_cells(notebook: Any) -> None:
    with kpg.open() as db:
        rows = db.input("rows", n=int)

        def cell() -> Any:
            return rows.count("n").output("answer", replace=True).live(interval=0.0)

        first = notebook.run("the cell", cell)
        notebook.run("another cell", db.advance)
        assert first.is_live
        second = notebook.run("the cell", cell)
        rows.insert([(1,)])
        notebook.run("advance", db.advance)
        assert not first.is_live and second.is_live and len(db.followers) == 1
        old, new = notebook.frames.values()
        assert "<td>1</td>" in new[-1]["text/html"] and "<td>1</td>" not in old[-1]["text/html"]


def test_frames_are_few_and_the_last_one_is_drawn_when_the_cell_ends(notebook: Any) -> None:
    with kpg.open() as db:
        rows = db.input("rows", n=int)
        answer = rows.output("answer")
        notebook.run("show", lambda: answer.live(interval=3600.0))

        def cell() -> None:
            for n in range(50):
                rows.insert([(n,)])
                db.advance()

        notebook.run("insert", cell)
        (frames,) = notebook.frames.values()
        assert len(frames) <= 3 and "as of 49: the first 20 of 50 distinct rows" in frames[-1]["text/plain"]


def test_rows_that_are_new_are_marked_while_all_are_shown(notebook: Any) -> None:
    with kpg.open() as db:
        rows = db.input("rows", n=int)
        notebook.run("show", lambda: rows.output("answer").live(rows=2, interval=0.0))
        marked = []
        for n in range(3):
            rows.insert([(n,)])
            notebook.run("advance", db.advance)
            marked.append(notebook.last["text/html"].count("background"))
        assert marked == [0, 1, 0]  # nothing was known before; then there are two rows; then more than are shown


def test_data_that_fails_is_shown_and_a_later_answer_too(notebook: Any) -> None:
    with kpg.open() as db:
        rows = db.input("rows", n=int)
        view = notebook.run("show", lambda: rows.select(m=10 // kpg.col("n")).output("answer").live(interval=0.0))
        rows.insert([(0,), (5,)])
        notebook.run("advance", db.advance)
        assert "division by zero" in notebook.last["text/html"] and view.is_live
        rows.remove([(0,)])
        notebook.run("advance", db.advance)
        assert "<td>2</td>" in notebook.last["text/html"]


def test_a_bug_in_a_view_does_not_reach_the_program(notebook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with kpg.open() as db:
        rows = db.input("rows", n=int)
        view = notebook.run("show", lambda: rows.output("answer").live(interval=0.0))
        monkeypatch.setattr(view, "draw", lambda: 1 // 0)
        rows.insert([(1,)])
        assert notebook.run("advance", db.advance) == 0 and not view.is_live


def test_an_order_and_a_limit_hold_in_the_table(notebook: Any) -> None:
    with kpg.open() as db:
        rows = db.input("rows", who=str, n=int)
        notebook.run("show", lambda: rows.output("answer").sort("-n").limit(2).live(interval=0.0))
        rows.insert([("ann", 1), ("bob", 3), ("cyd", 2)])
        notebook.run("advance", db.advance)
        assert notebook.last["text/plain"].splitlines()[1:] == ["who  n", "bob  3", "cyd  2"]


def test_a_subscription_is_followed_over_the_network_beside_other_calls(notebook: Any) -> None:
    with served() as server, kpg.connect(server.url, token=ADMIN) as db:
        db.create_relation("edge", {"x": int, "y": int})
        view = notebook.run("show", lambda: db.interest("edge").live(interval=0.0))
        for n in range(20):
            db.insert("edge", [(n, n)])
        eventually(lambda: "20 distinct rows" in notebook.last["text/plain"])
        assert "<td>edge</td>" in db._repr_html_()
        view.stop()
        db.insert("edge", [(20, 20)])
        assert "20 distinct rows" in notebook.last["text/plain"]
        eventually(lambda: not any(thread.name == "kpg live edge" for thread in threading.enumerate()))


def test_a_view_ends_with_its_subscription(notebook: Any) -> None:
    with served() as server, kpg.connect(server.url, token=ADMIN) as db:
        db.create_relation("edge", {"x": int})
        db.insert("edge", [(7,)])
        subscription = db.interest("edge")
        view = notebook.run("show", lambda: subscription.live(interval=0.0))
        view.on_stop.append(lambda: db.unregister("no such rule"))  # an error at the end stays there
        subscription.close()
        eventually(lambda: not view.is_live)
        eventually(lambda: "edge has ended" in notebook.last["text/html"])
        assert "<td>7</td>" in notebook.last["text/html"]


def test_a_plot_shows_values_over_time_and_present_rows(notebook: Any) -> None:
    with kpg.open() as db:
        rows = db.input("rows", key="who", who=str, n=int)
        answer = rows.output("answer")
        over_time = notebook.run("over time", lambda: answer.live(interval=3600.0).plot("n"))
        notebook.run("bars", lambda: answer.live().plot("n", x="who", kind="bar"))
        for n in range(3):
            rows.upsert([("ann", n), ("bob", 2 * n)])
            db.advance()
        notebook.run("end", lambda: None)
        assert {who: [value for _, value in points] for who, points in over_time.history.items()} == {
            "ann": [0.0, 1.0, 2.0], "bob": [0.0, 2.0, 4.0]
        }  # fmt: skip
        assert all("image/png" in frames[-1] for frames in notebook.frames.values())


def test_a_plot_names_what_it_cannot_plot() -> None:
    with kpg.open() as db:
        table = db.input("rows", who=str, n=int).output("answer").live()
        with pytest.raises(kpg.UndefinedName, match="no column 'm'"):
            table.plot("m")
        with pytest.raises(kpg.InputError, match="no plot of kind"):
            table.plot("n", kind="pie")
        with pytest.raises(kpg.InputError, match="needs x"):
            table.plot("n", kind="bar")


def test_without_a_notebook_a_table_is_its_text() -> None:
    with kpg.open() as db:
        rows = db.input("rows", n=int)
        answer = rows.output("answer")
        rows.insert([(1,), (1,)])
        db.advance()
        assert repr(answer.live()).splitlines() == ["answer as of 0: 1 distinct row", "n  times", "1  2"]
        answer.release()
        with pytest.raises(kpg.Closed):
            answer.live()


def test_a_slow_frame_is_followed_by_a_long_pause() -> None:
    now = [0.0]
    pacer = FramePacer(0.1, lambda: now[0])
    assert pacer.wait_seconds() == 0.0
    with pacer.frame():
        now[0] += 2.0
    assert pacer.wait_seconds() == 18.0
    now[0] += 18.0
    with pacer.frame():
        pass
    assert pacer.wait_seconds() == pytest.approx(0.1)
