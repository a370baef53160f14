"""Rows that workers make: with the advance, they are one request; if one worker fails, all drop the transaction."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kpg
from kpg.cluster.rank_commands.time_commands import TimeCommand
from tests.cluster.conftest import Clusters


def made(worker: int, workers: int, first: int, last: int, failing: int = -1, wrong: int = -1) -> dict[str, Any]:
    """Return a worker's share of some numbers; fail on one worker, or return a wrong column there."""
    if worker == failing:
        raise ValueError(f"worker {worker} has no numbers")
    return {"m" if worker == wrong else "n": np.arange(first + worker, last, workers)}


def epochs(db: Any) -> set[int]:
    """Return the open epochs of all workers and of this process."""
    return {db.epoch, *[reply.value[0][0] for reply in db.ask(TimeCommand())]}


@pytest.mark.parametrize("workers", [2, 3])
def test_a_transaction_of_made_rows_is_one_request(clusters: Clusters, workers: int) -> None:
    db: Any = clusters(workers)
    numbers = db.input("one request", n=int)
    answer = numbers.output("one request answer")
    for step in range(3):
        before = db.coordinator.last_number
        assert numbers.insert_made(made, first=10 * step, last=10 * step + 10) is None
        assert numbers.remove_made(made, first=10 * step, last=10 * step + 5) is None
        numbers.insert([(-step,)])
        db.advance()
        assert db.coordinator.last_number == before + 1
    expected = [-step for step in range(3)] + [n for n in range(30) if n % 10 >= 5]
    assert sorted(answer.rows()) == [(n,) for n in sorted(expected)]
    answer.release()
    numbers.drop()


@pytest.mark.parametrize("failure", [{"failing": 0}, {"failing": 1}, {"wrong": 1}])
@pytest.mark.parametrize("wait", [True, False])
def test_all_workers_accept_made_rows_or_none_does(clusters: Clusters, failure: dict[str, int], wait: bool) -> None:
    db: Any = clusters(2)
    numbers, others = db.input("refused", n=int), db.input("beside refused", n=int)
    answers = [source.output(f"{source.name} answer") for source in (numbers, others)]
    numbers.insert_made(made, first=0, last=10)
    db.advance()
    (epoch,) = epochs(db)
    others.insert([(n,) for n in range(5)])
    numbers.insert_made(made, first=10, last=20)
    numbers.insert_made(made, first=20, last=30, **failure)
    numbers.remove_made(made, first=0, last=5)
    assert others.size == 5  # a request between: it does not raise the error of another one
    with pytest.raises(kpg.KpgError, match="has no numbers" if "failing" in failure else "n") as caught:
        db.advance(wait=wait)
    assert "All rows since the last advance were dropped." in str(caught.value)
    assert epochs(db) == {epoch}
    others.insert([(7,)])
    numbers.remove_made(made, first=0, last=5)
    db.advance()
    assert epochs(db) == {epoch + 1}
    assert sorted(answers[0].rows()) == [(n,) for n in range(5, 10)] and answers[1].rows() == [(7,)]
    for handle in answers:
        handle.release()
    numbers.drop()
    others.drop()


def test_a_failed_transaction_leaves_no_refusal(clusters: Clusters) -> None:
    db: Any = clusters(2)
    numbers = db.input("undone", n=int)
    answer = numbers.output("undone answer")
    numbers.insert([(1,)])

    def fill(_: Any) -> None:
        numbers.insert_made(made, first=0, last=10, failing=1)
        raise KeyError("the user's own")

    with pytest.raises(KeyError):
        db.transact(fill)
    db.advance()
    assert answer.rows() == [(1,)]
    numbers.insert_made(made, first=0, last=10, failing=1)  # before the transaction that fails by itself
    with pytest.raises(KeyError):
        db.transact(fill)
    with pytest.raises(kpg.KpgError, match="has no numbers"):
        db.advance()
    db.advance()
    assert answer.rows() == [(1,)]
    answer.release()
    numbers.drop()


def test_a_dropped_input_refuses_nothing(clusters: Clusters) -> None:
    db: Any = clusters(2)
    numbers, others = db.input("dropped", n=int), db.input("beside dropped", n=int)
    answer = others.output("beside dropped answer")
    others.insert_made(made, first=0, last=4)
    numbers.insert_made(made, first=0, last=10, failing=0)
    numbers.drop()
    db.advance()
    assert sorted(answer.rows()) == [(n,) for n in range(4)]
    answer.release()
    others.drop()


def test_a_closed_input_makes_no_rows(clusters: Clusters) -> None:
    db: Any = clusters(2)
    numbers = db.input("closed for made rows", n=int)
    numbers.close()
    with pytest.raises(kpg.Closed):
        numbers.insert_made(made, first=0, last=10)
    numbers.drop()


def test_made_rows_survive_a_worker_and_are_refused_on_a_directory(tmp_path: Path) -> None:
    with kpg.open(tmp_path / "db", workers=2) as opened:
        db: Any = opened
        numbers = db.input("numbers", n=int)
        answer = numbers.output("answer")
        numbers.insert_made(made, first=0, last=10)
        os.kill(db.coordinator.members[1].pid, signal.SIGKILL)
        db.advance()
        assert sorted(answer.rows()) == [(n,) for n in range(10)] and db.recoveries > 0
        numbers.insert_made(made, first=10, last=20, failing=0)
        with pytest.raises(kpg.KpgError, match="has no numbers"):
            db.advance()
        numbers.remove_made(made, first=0, last=9)
        db.advance()
        assert answer.rows() == [(9,)]
    with kpg.open(tmp_path / "db", workers=2) as db:
        assert db.input("numbers", n=int).output("answer").rows() == [(9,)]
