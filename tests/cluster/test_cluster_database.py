"""Workers as processes say together what one says; one that dies is noticed; strangers get nowhere."""

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psutil
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kpg
from kpg import col
from kpg.cluster import handshake
from kpg.cluster.data_connections import DataClient
from kpg.cluster.data_requests import StageRequest
from kpg.cluster.hello_messages import DataHello, Hello, RankHello
from kpg.cluster.rank_commands.staging_commands import PublishCommand
from kpg.cluster.rank_commands.time_commands import TimeCommand
from kpg.cluster.request_frames import RowBlock, symbolic_lanes
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import encode
from kpg.columns.updates import Updates, constant
from kpg.protocol.definitions import MessageKinds, message
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.testing import generated_rows
from kpg.testing.strategies import rows
from kpg.version import __version__

Clusters = Callable[[int], kpg.Database]
fresh = itertools.count()


def degrees(edges: kpg.Collection) -> kpg.Collection:
    return edges.count("src").filter(col("count") > 1)


def two_hops(edges: kpg.Collection) -> kpg.Collection:
    return edges.join(edges.rename(src="from", dst="src"), on="src").select("from", "dst").distinct()


def reach(edges: kpg.Collection) -> kpg.Collection:
    return edges.iterate(
        lambda seen: seen.join(edges, on={"dst": "src"}).select("src", dst=col("dst_right")).concat(edges).distinct()
    )


def components(edges: kpg.Collection) -> kpg.Collection:
    labels = edges.select(node=col("src"), label=col("src")).concat(edges.select(node=col("dst"), label=col("dst")))
    return labels.iterate(
        lambda now: (
            edges.join(now, on={"src": "node"})
            .select(node=col("dst"), label=col("label"))
            .concat(labels)
            .group_by("node")
            .min("label")
        )
    )


def named(edges: kpg.Collection) -> kpg.Collection:
    """Text that is made on one worker and meets its equals on another."""
    words = edges.select(word=(col("src") + col("dst")).cast(str).str.concat("!"), n=col("dst"))
    return words.join(words.count("word"), on="word").group_by("word").max("n")


PROGRAMS: list[Callable[[kpg.Collection], kpg.Collection]] = [degrees, two_hops, reach, components, named]
changes = st.lists(st.tuples(rows(2, 4), st.sampled_from([1, 1, -1])), max_size=8)


@pytest.mark.parametrize("program", PROGRAMS)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(epochs=st.lists(changes, min_size=1, max_size=4), workers=st.sampled_from([2, 4]))
def test_several_workers_give_the_answers_of_one(
    clusters: Clusters,
    program: Callable[[kpg.Collection], kpg.Collection],
    epochs: list[list[tuple[tuple[int, ...], int]]],
    workers: int,
) -> None:
    """A1.2 A1.5 A1.8 A1.14 A1.15: update for update after consolidation, for 1, 2 and 4 workers."""
    name = f"edges {next(fresh)}"
    many = clusters(workers)
    with kpg.open() as one:
        inputs = [db.input(name, src=int, dst=int) for db in (one, many)]
        answers = [program(edges).output(name) for edges in inputs]
        start = many.epoch
        present: dict[tuple[int, ...], int] = {}
        for step in epochs:
            apply(inputs, step, present)
            one.advance(), many.advance()
            expected = summed((row, time, diff) for row, time, diff in answers[0].changes())
            assert summed((row, time - start, diff) for row, time, diff in answers[1].changes()) == expected
            assert sorted(answers[1].rows()) == sorted(answers[0].rows())
    answers[1].release()
    inputs[1].drop()


def test_upserts_that_reach_different_workers_first_agree_on_all_of_them(clusters: Clusters) -> None:
    """Each worker gets rows of another relation first: all must build the same dataflows in the same order."""
    db = clusters(4)
    inputs = [db.input(f"keyed {next(fresh)}", key="k", k=int, v=int) for _ in range(4)]
    for number, source in enumerate(inputs):
        source.upsert([(number, 1)])
    for number, source in enumerate(reversed(inputs)):
        source.upsert([(number, 2)])
    db.advance()
    for number, source in enumerate(inputs):
        assert dict(source.output().rows()) == {number: 1, 3 - number: 2}
        source.drop()


def lightest(edges: kpg.Collection) -> kpg.Collection:
    return edges.group_by("src").min("dst")


@pytest.mark.parametrize("program", [*PROGRAMS, lightest, kpg.graphs.wcc])
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=changes, idle=st.integers(0, 2), after=st.lists(changes, max_size=2), workers=st.sampled_from([2, 4]))
def test_a_query_installed_late_is_complete_on_every_worker(
    clusters: Clusters,
    program: Callable[[kpg.Collection], kpg.Collection],
    before: list[tuple[tuple[int, ...], int]],
    idle: int,
    after: list[list[tuple[tuple[int, ...], int]]],
    workers: int,
) -> None:
    """A1.5 A1.14 A4.5: over an index that has compacted its old times; kept and not kept."""
    many = clusters(workers)
    with kpg.open() as one:
        inputs = [db.input(f"edges {next(fresh)}", src=int, dst=int) for db in (one, many)]
        present: dict[tuple[int, ...], int] = {}
        indexes = [edges.arrange("src") for edges in inputs]
        apply(inputs, before, present)
        for _ in range(1 + idle):
            one.advance(), many.advance()
        kept = [program(edges).output(f"kept {next(fresh)}") for edges in inputs]
        passing = [program(edges).output(f"passing {next(fresh)}", keep=False) for edges in inputs]
        totals: list[dict[Any, int]] = [{}, {}]
        for step in [[], *after]:
            apply(inputs, step, present)
            one.advance(), many.advance()
            for total, output in zip(totals, passing, strict=True):
                for row, _, diff in output.take_changes():
                    total[row] = total.get(row, 0) + diff
            assert sorted(kept[1].rows()) == sorted(kept[0].rows())
            assert {row: n for row, n in totals[1].items() if n} == {row: n for row, n in totals[0].items() if n}
            assert sorted({row for row, n in totals[0].items() if n}) == sorted(set(kept[0].rows()))
    for handle in (kept[1], passing[1], indexes[1]):
        handle.release()
    inputs[1].drop()


def apply(
    inputs: list[kpg.Input], step: list[tuple[tuple[int, ...], int]], present: dict[tuple[int, ...], int]
) -> None:
    """Apply the same changes to each input, but remove no row that is not present."""
    for row, diff in step:
        if diff > 0 or present.get(row):
            present[row] = present.get(row, 0) + diff
            for edges in inputs:
                edges.update_at([row], edges.db.epoch, diff)


def summed(updates: Any) -> dict[Any, int]:
    total: dict[Any, int] = {}
    for row, when, diff in updates:
        total[row, when] = total.get((row, when), 0) + diff
    return {key: count for key, count in total.items() if count}


def test_upserts_replace_the_rows_with_their_keys(clusters: Clusters) -> None:
    db = clusters(2)
    users = db.input("users", key="id", id=int, name=str)
    answer = users.count("name").output("names")
    for round_ in range(3):
        users.upsert([(i, f"name {i % (round_ + 2)}") for i in range(100)])
        users.upsert([(0, "first"), (0, "last")])
        db.advance()
        assert sum(count for _, count in answer.rows()) == 100
        assert dict(answer.rows())["last"] == 1
    answer.release()
    users.drop()


def test_tables_and_types_cross(clusters: Clusters) -> None:
    db = clusters(2)
    table = pa.table({
        "i": pa.array([1, None, 3]), "f": pa.array([0.5, 1.5, None]), "t": pa.array(["a", None, "ü" * 100]),
        "b": pa.array([b"\x00", b"", None]),
    })  # fmt: skip
    source = db.input("mixed", kpg.Schema.from_arrow(table.schema))
    answer = source.distinct().output("mixed answer")
    source.insert(table)
    db.advance()
    rows_now = answer.snapshot().to_pylist()
    assert sorted(rows_now, key=str) == sorted(table.to_pylist(), key=str)
    index = source.arrange("t")
    assert index.lookup("a").to_pylist() == [{"i": 1, "f": 0.5, "t": "a", "b": b"\x00"}]
    assert index.scan().num_rows == 3
    index.release()
    answer.release()
    assert db.reclaim() >= 0
    source.drop()


@pytest.mark.parametrize("workers", [1, 2])
def test_each_worker_can_make_its_own_rows(clusters: Clusters, workers: int) -> None:
    db = clusters(workers)
    edges = db.input("made", n=int, m=int)
    answer = edges.count("m").output("made answer")
    edges.insert_made(generated_rows.numbers, total=1000, modulus=10)
    db.advance()
    assert sorted(answer.rows()) == [(digit, 100) for digit in range(10)]
    edges.remove_made(generated_rows.numbers, total=15, modulus=10)
    db.advance()
    assert sorted(answer.rows()) == [(digit, 98 if digit < 5 else 99) for digit in range(10)]
    answer.release()
    edges.drop()


def test_listeners_get_changes_and_answers_are_read_as_of_times(clusters: Clusters) -> None:
    db = clusters(2)
    numbers = db.input("numbers", n=int)
    answer = numbers.select(m=col("n") % 3).distinct().output("thirds")
    heard: list[Any] = []
    stop = answer.on_change(lambda changes: heard.extend(changes))
    numbers.insert([(n,) for n in range(10)])
    first = db.advance()
    assert sorted(heard) == [((m,), first, 1) for m in range(3)]
    numbers.remove([(n,) for n in (0, 3, 6, 9)])
    db.advance()
    assert heard[-1] == ((0,), first + 1, -1)
    with pytest.raises(kpg.TimeTooEarly):
        answer.snapshot(as_of=first)
    with pytest.raises(kpg.TimeNotReached):
        answer.snapshot(as_of=db.epoch)
    stop()
    answer.release()
    with pytest.raises(kpg.Closed):
        answer.rows()
    numbers.drop()


def test_bad_input_is_refused_and_changes_nothing_else(clusters: Clusters) -> None:
    db = clusters(2)
    numbers = db.input("numbers", n=int)
    with pytest.raises(kpg.InUse):
        db.input("numbers", n=int)
    with pytest.raises(kpg.SchemaMismatch):
        numbers.insert([(1, 2)])
    with pytest.raises(kpg.BadPlan, match="cannot be sent to workers"):
        numbers.select(m=kpg.udf(lambda n: n, returns=int)(col("n"))).output()
    with pytest.raises(kpg.TimeTooEarly):
        db.advance_to(0)
    with kpg.open() as other, pytest.raises(kpg.KpgError, match="another db"):
        numbers.concat(other.input("numbers", n=int)).output()
    answer = numbers.output("numbers answer")
    with pytest.raises(kpg.InUse):
        numbers.drop()
    numbers.insert([(1,)])
    db.advance()
    assert answer.rows() == [(1,)]
    answer.release()
    numbers.drop()


def test_a_row_that_fails_is_an_error_of_its_answer_until_it_is_removed(clusters: Clusters) -> None:
    """Also when one worker inserts the row and another removes it."""
    db = clusters(2)
    numbers = db.input("divisors", n=int)
    answer = numbers.select(m=10 // col("n")).output("quotients")
    for _ in range(4):
        numbers.insert([(0,), (5,)])
        db.advance()
        with pytest.raises(kpg.DataError):
            answer.rows()
        numbers.remove([(0,), (5,)])
        db.advance()
        assert answer.rows() == []
    answer.release()
    numbers.drop()


def test_strangers_on_a_workers_port_do_no_harm(clusters: Clusters) -> None:
    db = clusters(2)
    strangers = []
    for member in db.coordinator.members.values():
        for said in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(300), b""):
            stranger = socket.create_connection(member.address)
            stranger.sendall(said)
            strangers.append(stranger)
    numbers = db.input("undisturbed", n=int)
    answer = numbers.output("undisturbed answer")
    numbers.insert([(1,)])
    db.advance()
    assert answer.rows() == [(1,)]
    answer.release()
    numbers.drop()
    for stranger in strangers:
        stranger.close()


def test_a_killed_worker_is_noticed_immediately() -> None:
    """Every later call says so, none hangs, and closing leaves nothing behind."""
    db = kpg.open(workers=2)
    children = [psutil.Process(db.coordinator.members[rank].pid) for rank in (0, 1)]
    numbers = db.input("numbers", n=int)
    answer = numbers.count("n").output()
    numbers.insert([(n,) for n in range(1000)])
    db.advance()
    os.kill(children[1].pid, signal.SIGKILL)
    begin = time.monotonic()
    with pytest.raises(kpg.WorkerLost, match="worker 1 is gone") as caught:
        db.advance()
    assert time.monotonic() - begin < 30 and "SIGKILL" in str(caught.value)  # no time-out is waited for
    for call in (answer.rows, db.advance, lambda: numbers.insert([(1,)]), lambda: db.input("more", n=int)):
        with pytest.raises(kpg.WorkerLost):
            call()
    answer.release()
    db.close()
    assert not any(alive(child.pid) for child in children)


def test_a_worker_that_dies_during_a_command_is_noticed() -> None:
    with kpg.open(workers=2) as db:
        numbers = db.input("numbers", n=int)
        numbers.join(numbers, on="n").count("n").output()
        victim = db.coordinator.members[0].pid
        numbers.insert_made(generated_rows.numbers, total=400_000)
        pid = os.fork()
        if pid == 0:
            time.sleep(0.2)
            os.kill(victim, signal.SIGKILL)
            os._exit(0)
        with pytest.raises(kpg.WorkerLost):
            for _ in range(1000):
                numbers.insert([(n,) for n in range(5000)])
                db.advance()
        os.waitpid(pid, 0)


CLIENT = """
import os, signal, kpg
db = kpg.open(workers=2)
print(*(member.pid for member in db.coordinator.members.values()), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_workers_end_with_the_process_that_opened_the_db() -> None:
    """Killed without a chance to say goodbye."""
    client = subprocess.run([sys.executable, "-c", CLIENT], stdout=subprocess.PIPE, text=True, check=False)
    assert client.returncode == -signal.SIGKILL
    ranks = [int(pid) for pid in client.stdout.split()]
    assert len(ranks) == 2
    deadline = time.monotonic() + 60
    while any(map(alive, ranks)):
        assert time.monotonic() < deadline, "workers outlived their client"
        time.sleep(0.05)


def test_an_error_row_of_one_worker_is_cancelled_by_another(clusters: Clusters) -> None:
    """The owner of one key produces the rows of an antijoin, and the owner of another removes them."""
    db = clusters(2)
    words = db.input("words", n=int, word=str)
    gone = db.input("gone", word=str)
    left = words.antijoin(gone, on="word")
    answer = left.select(word=col("word"), m=10 // (col("n") - col("n"))).output("no quotients")
    every = [(n, f"word {n}") for n in range(20)]
    for _ in range(2):
        words.insert(every)
        db.advance()
        with pytest.raises(kpg.DataError, match="division by zero"):
            answer.rows()
        gone.insert([(word,) for _, word in every])
        db.advance()
        assert answer.rows() == []
        words.remove(every)
        gone.remove([(word,) for _, word in every])
        db.advance()
        assert answer.rows() == []
    answer.release()
    words.drop(), gone.drop()


@message("stranger", MessageKinds())
class StrangerHello(Hello):
    """A hello that no version of kpg has."""


def test_replaced_workers_and_other_versions_are_refused(clusters: Clusters) -> None:
    """A rank that was replaced holds an old token; one of another version is refused by name."""
    coordinator = clusters(2).coordinator
    before = dict(coordinator.members)
    token = coordinator._tokens[1]
    hello = RankHello(1, token, ("127.0.0.1", 1), __version__, pid=1)
    refused = (replace(hello, token="0" * 32), replace(hello, version="0.0"), DataHello(__version__), StrangerHello())
    for said in refused:
        sock = handshake.connect(coordinator.listener.address, coordinator.secret, said)
        sock.settimeout(60)
        assert sock.recv(1) == b""  # closed from the other side
        sock.close()
    assert coordinator.members == before
    assert "runs kpg 0.0" in str(coordinator._version_error)
    coordinator._version_error = None


def test_a_memory_limit_raises_and_the_clock_still_moves() -> None:
    with kpg.open(workers=2, memory_limit=500 << 20) as db:
        numbers = db.input("numbers", n=int)
        answer = numbers.distinct().output()
        numbers.insert_made(generated_rows.numbers, total=1000)
        db.advance()
        with pytest.raises(kpg.OverBudget):
            for start in range(30):
                numbers.insert([(start * 10**7 + n,) for n in range(2)])
                numbers.insert_made(
                    generated_rows.numbers, total=4_000_000 * (1 + start)
                )  # more each time, without end
                db.advance()
        epoch = db.epoch
        assert {reply.value[0] for reply in db.ask(TimeCommand())} == {(epoch,)}  # here as there
        with contextlib.suppress(kpg.OverBudget):
            db.advance()
        assert db.epoch == epoch + 1
        answer.release()


def test_texts_that_only_data_clients_know_survive_a_reclaim(clusters: Clusters) -> None:
    """Staged rows keep their texts, and the symbols of a data client keep their meaning."""
    db = clusters(2)
    words = db.input("staged words", n=int, word=str)
    answer = words.output("staged answer")
    schema = words.schema
    mine = Symbols()

    def block(rows: list[tuple[int, str]]) -> RowBlock:
        return RowBlock(Updates(encode(schema, rows, mine), constant((0,)), constant((1,))), symbolic_lanes(schema))

    with DataClient(db.coordinator.members[0].address, db.coordinator.secret, mine) as client:
        client.ask(StageRequest(words.name, ("a", 1)), [block([(1, "first"), (2, "second")])])
        db.reclaim()
        words.insert([(n, f"another {n}") for n in range(50)])  # would take the symbols that were reclaimed
        db.advance()
        client.ask(StageRequest(words.name, ("a", 2)), [block([(3, "first"), (4, "third")])])
        command = PublishCommand(words.name, (("a", 1), ("a", 2)), ("a",))
        with pytest.raises(kpg.Unavailable, match="1 of 5 rows"):  # nothing of it is visible, and it may be retried
            db.publish(command, 5)
        assert all("another" in word for _, word in answer.rows())
        client.ask(StageRequest(words.name, ("a", 1)), [block([(1, "first"), (2, "second")])])
        client.ask(StageRequest(words.name, ("a", 2)), [block([(3, "first"), (4, "third")])])
        assert db.publish(command, 4) == db.epoch - 1
    published = sorted((n, word) for n, word in answer.rows() if "another" not in word)
    assert published == [(1, "first"), (2, "second"), (3, "first"), (4, "third")]
    answer.release()
    words.drop()


PROGRAM = """
.decl knows(x: symbol, y: symbol)
.input knows
.decl reach(x: symbol, y: symbol)
.output reach
reach(x, y) :- knows(x, y).
reach(x, z) :- reach(x, y), knows(y, z).
.decl triangle(x: symbol, y: symbol, z: symbol)
.output triangle
triangle(x, y, z) :- knows(x, y), knows(y, z), knows(z, x).
.decl alone(x: symbol)
.output alone
alone(x) :- knows(x, _), !reach(x, x).
"""


def test_a_datalog_program_runs_on_workers_as_on_one():
    """A8.3, A10.1: recursion, a cyclic join and negation, while rows are inserted and removed."""
    program = compile(parse(PROGRAM))
    come = [("ann", "bob"), ("bob", "cyd"), ("cyd", "ann"), ("dan", "ann"), ("eve", "dan")]
    with kpg.open() as one, kpg.open(workers=2) as two:
        both = [InstalledProgram(db, program) for db in (one, two)]
        for change, rows in (("insert", come), ("remove", come[2:3]), ("insert", [("cyd", "eve"), *come[2:3]])):
            for db, running in zip((one, two), both, strict=True):
                getattr(running.inputs["knows"], change)(rows)
                db.advance()
            answers = [{name: sorted(running.rows(name)) for name in running.answers} for running in both]
            assert answers[0] == answers[1]
        assert answers[1]["alone"] == []
        assert len(answers[1]["triangle"]) == 3
        assert len(answers[1]["reach"]) == 25
        for running in both:
            running.release()


SHARES = """
.decl part(x: number, s: symbol)
.input part
.decl share(x: number)
.decl whole(x: number)
.output share
.output whole
share(z) :- part(x, s), z = x / strlen(s), x > 3.
whole(x) :- part(x, _).
"""


def test_errors_of_rules_have_the_same_text_on_any_number_of_workers(clusters: Clusters) -> None:
    rows = [(8, ""), (9, ""), (7, "x"), (2, ""), (10, ""), (11, "")]
    texts = []
    with kpg.open() as one:
        for db in (one, clusters(2), clusters(3)):
            with InstalledProgram(db, compile(parse(SHARES, "shares.dl"))) as running:
                running.inputs["part"].insert(rows)
                time = db.advance()
                with pytest.raises(kpg.DataError) as caught:
                    running.rows("share")
                texts.append(str(caught.value).replace(f"answer at {time}", "answer"))
                assert sorted(running.rows("whole")) == [(2,), (7,), (8,), (9,), (10,), (11,)]
                running.inputs["part"].remove([row for row in rows if not row[1]])
                db.advance()
                assert running.rows("share") == [(7,)]
    assert texts[0] == texts[1] == texts[2]
    assert 'It fails for x = 10, s = "". 4 rows fail.' in texts[0]
