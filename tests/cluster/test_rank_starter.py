"""Ranks are forks of one process: they start quickly, have the environment of their client, and outlive the starter."""

import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

import kpg
from kpg.cluster.rank_starter import ENDED_UNSEEN, RankStarter
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile


def pids(db: Any) -> list[int]:
    return [member.pid for member in db.coordinator.members.values()]


def starters(db: Any) -> set[int]:
    return {psutil.Process(pid).ppid() for pid in pids(db)}


def test_dbs_that_are_open_together_share_a_starter() -> None:
    with kpg.open(workers=2) as first, kpg.open(workers=3) as second:
        assert len(starters(first) | starters(second)) == 1
        assert len({*pids(first), *pids(second)}) == 5


def test_a_rank_has_the_environment_and_the_directory_of_its_client(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shared = RankStarter.share()  # it began before the changes
    try:
        monkeypatch.setenv("KPG_TEST_COLOUR", "green")
        monkeypatch.chdir(tmp_path)
        text = """
            .functor env(name: symbol): symbol
            .decl names(name: symbol)
            .input names
            .decl values(name: symbol, value: symbol)
            .output values
            values(name, @env(name)) :- names(name).
        """
        functors = {"env": os.getenv}
        with kpg.open(workers=2) as db, InstalledProgram(db, compile(parse(text)), functors=functors) as program:
            program.inputs["names"].insert([("KPG_TEST_COLOUR",)])
            db.advance()
            assert program.rows("values") == [("KPG_TEST_COLOUR", "green")]
            assert {os.readlink(f"/proc/{pid}/cwd") for pid in pids(db)} == {str(tmp_path)}
    finally:
        shared.release()


def test_a_db_outlives_its_starter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RankStarter, "_newest", None)  # kill one that no other test uses
    with kpg.open(tmp_path, workers=2) as db:
        edges = db.input("edges", src=int, dst=int)
        degrees = edges.count("src").output()
        edges.insert([(number % 10, number) for number in range(100)])
        db.advance()
        (starter,) = starters(db)
        os.kill(starter, signal.SIGKILL)
        before = pids(db)
        edges.insert([(3, 1000)])
        db.advance()
        assert (3, 11) in degrees.rows()
        assert pids(db) == before

        os.kill(before[1], signal.SIGKILL)
        edges.insert([(4, 1000)])
        db.advance()
        assert {(3, 11), (4, 11), (5, 10)} <= set(degrees.rows())
        assert pids(db) != before


def test_the_end_of_a_rank_is_seen() -> None:
    starter = RankStarter()
    starter._users = 1
    first, second, third = starter.start(), starter.start(), starter.start()
    assert first.wait(0) is None
    first.write(b"no bootstrap\n")
    assert first.wait(30) == 1
    while second._pid is None:
        assert second.wait(0.1) is None
    second.kill()
    assert second.wait(30) == -signal.SIGKILL
    starter._process.kill()
    third.write(b"no bootstrap\n")
    assert third.wait(30) == ENDED_UNSEEN
    with pytest.raises(OSError):
        starter.start()
    for process in (first, second, third):
        process.close()
    starter.release()


def test_a_starter_ends_with_its_last_user() -> None:
    starter = RankStarter()
    starter._users = 2
    starter.release()
    assert starter._process.poll() is None
    starter.release()
    assert starter._process.poll() == 0
