"""SUBSCRIBE: the sum of all changes up to an epoch is the query's rows there, on one worker, two and a thread."""

from collections import Counter
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.api import unread_changes
from kpg.cluster import cluster_output
from kpg.sql.session import subscribe_changes

HISTORY = 1_000
QUERY = "SELECT a, sum(b) AS s, count(*) AS n FROM t GROUP BY a"
STATEMENTS = [
    "INSERT INTO t VALUES (1, 1), (1, 1), (2, 5)", "INSERT INTO t VALUES (2, NULL)", "DELETE FROM t WHERE a = 1",
    "UPDATE t SET b = b + 1", "UPDATE t SET a = 3 WHERE a = 2", "DELETE FROM t", "SELECT 1",
    "BEGIN; DELETE FROM t WHERE a = 2; INSERT INTO t VALUES (2, 7); COMMIT",
]  # fmt: skip


def opened(workers):
    return kpg.open(history=HISTORY, workers=workers) if workers else kpg.open(history=HISTORY, background=True)


@pytest.fixture(scope="module", params=[1, 2, 0], ids=["1 worker", "2 workers", "background"])
def db(request):
    with opened(request.param) as db:
        db.sql("CREATE TABLE t (a INT, b INT)")
        db.sql(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
        yield db


def state_of(db, statement):
    with pytest.raises(kpg.KpgError) as failure:
        result = db.sql(statement)
        list(result)
    return failure.value.sqlstate


def rows_at(db, epoch):
    return Counter(db.sql(f"SELECT * FROM v AS OF {epoch}").rows())


def sum_through(changes, epoch):
    total = Counter()
    for change in changes:
        if not change.is_progress and change.epoch <= epoch:
            total[change.row] += change.diff
    return Counter({row: count for row, count in total.items() if count})


def require_order(changes):
    """No change comes after a mark of its epoch, epochs never go back, and a row changes once in an epoch."""
    complete = -1
    for change in changes:
        assert change.epoch > complete
        if change.is_progress:
            complete = change.epoch
    epochs = [change.epoch for change in changes]
    assert epochs == sorted(epochs)
    pairs = [(change.epoch, change.row) for change in changes]
    assert len(pairs) == len(set(pairs))
    assert all(change.diff for change in changes if not change.is_progress)


@settings(max_examples=8)
@given(
    before=st.lists(st.sampled_from(STATEMENTS), max_size=4),
    after=st.lists(st.tuples(st.sampled_from(STATEMENTS), st.booleans()), max_size=6),
    snapshot=st.booleans(),
    back=st.integers(0, 3),
    of=st.sampled_from(["v", f"({QUERY})"]),
)
def test_the_sum_of_all_changes_up_to_an_epoch_is_the_view_there(db, before, after, snapshot, back, of):
    db.sql("DELETE FROM t; SELECT 1")
    first = db.epoch - 1
    for statement in before:
        db.sql(statement)
    begin = max(first, db.epoch - 1 - back)
    with db.sql(f"SUBSCRIBE {of} WITH (PROGRESS, SNAPSHOT = {str(snapshot).lower()}) AS OF {begin}") as subscription:
        changes = list(subscription)
        for statement, is_read in after:
            db.sql(statement)
            if is_read:
                changes += subscription
        changes += subscription
    require_order(changes)
    last = db.epoch - 1
    assert [change.epoch for change in changes if change.is_progress] == list(range(begin, last + 1))
    for epoch in range(begin, last + 1):
        expected = rows_at(db, epoch)
        if not snapshot:
            expected.subtract(rows_at(db, begin))
        assert sum_through(changes, epoch) == Counter({row: n for row, n in expected.items() if n})


def test_without_as_of_it_begins_with_the_present_rows(db):
    db.sql("DELETE FROM t; INSERT INTO t VALUES (1, 1); INSERT INTO t VALUES (1, 2)")
    with db.sql("SUBSCRIBE v") as subscription:
        assert [tuple(change) for change in subscription] == [(db.epoch - 1, 1, (1, 3, 2))]
        assert list(subscription) == []


def test_up_to_is_left_out_and_ends_the_subscription(db):
    db.sql("DELETE FROM t")
    end = db.epoch + 2
    subscription = db.sql(f"SUBSCRIBE (SELECT b FROM t) WITH (PROGRESS) UP TO {end}")
    for value in range(4):
        db.sql("INSERT INTO t VALUES (1, $1)", value)
    seen = [(change.epoch, change.row) for change in subscription]
    assert seen == [(end - 3, None), (end - 2, (0,)), (end - 2, None), (end - 1, (1,)), (end - 1, None)]
    assert subscription.ended and list(subscription) == []


def test_it_may_begin_later(db):
    db.sql("DELETE FROM t")
    begin = db.epoch + 1
    with db.sql(f"SUBSCRIBE (SELECT b FROM t) AS OF {begin}") as subscription:
        db.sql("INSERT INTO t VALUES (1, 1)")
        assert list(subscription) == []
        db.sql("UPDATE t SET b = 2; INSERT INTO t VALUES (1, 3)")
        assert [tuple(change) for change in subscription] == [(begin, 1, (2,)), (begin + 1, 1, (3,))]


def test_epochs_that_are_not_kept_are_refused(db):
    assert state_of(db, "SUBSCRIBE v AS OF -1") == "22023"
    assert state_of(db, "SUBSCRIBE v AS OF 5 UP TO 4") == "22023"
    assert state_of(db, "SUBSCRIBE v AS OF NULL") == "22023"


@pytest.mark.parametrize("workers", [1, 2])
def test_the_past_is_refused_without_history(workers):
    with kpg.open(workers=workers) as db:
        db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
        assert state_of(db, f"SUBSCRIBE t AS OF {db.epoch - 2}") == "22023"
        assert len(list(db.sql(f"SUBSCRIBE t AS OF {db.epoch - 1}"))) == 2


def test_a_failing_row_stops_reading_until_it_is_corrected(db):
    db.sql("DELETE FROM t; INSERT INTO t VALUES (1, 1)")
    with db.sql("SUBSCRIBE (SELECT a, 10 / b AS q FROM t)") as subscription:
        assert [change.row for change in subscription] == [(1, 10)]
        db.sql("INSERT INTO t VALUES (2, 0)")  # the statement itself succeeds
        with pytest.raises(kpg.DataError) as failure:
            list(subscription)
        assert failure.value.sqlstate == "22012"
        db.sql("INSERT INTO t VALUES (3, 5)")
        db.sql("UPDATE t SET b = 2 WHERE a = 2")
        assert sorted((change.diff, change.row) for change in subscription) == [(1, (2, 5)), (1, (3, 2))]


def test_threads_share_a_background_db():
    with opened(workers=0) as db:
        db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, n INT)")
        subscription = db.sql("SUBSCRIBE t")
        threads = [
            Thread(target=lambda first=first: [db.sql("INSERT INTO t VALUES ($1,$1)", first + k) for k in range(10)])
            for first in range(0, 40, 10)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(change.row[0] for change in subscription) == list(range(40))
        assert db.sql("SELECT count(*) FROM t").value() == 40
        subscription.close()
        assert subscription.ended


@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
def test_a_subscription_ends_with_its_view(kind):
    with kpg.open() as db:
        db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
        db.sql(f"CREATE {kind} v AS SELECT a FROM t; CREATE VIEW w AS SELECT a + 1 AS b FROM v")
        direct, by_view, of_table = db.sql("SUBSCRIBE v"), db.sql("SUBSCRIBE (SELECT b FROM w)"), db.sql("SUBSCRIBE t")
        assert [len(list(one)) for one in (direct, by_view, of_table)] == [1, 1, 1]
        db.sql(f"DROP {kind} v CASCADE; INSERT INTO t VALUES (2)")
        for ended in (direct, by_view):
            with pytest.raises(kpg.UndefinedName, match="was dropped") as failure:
                list(ended)
            assert failure.value.sqlstate == "42P01" and ended.ended
        assert [change.row for change in of_table] == [(2,)]
        of_table.close()
        db.sql("DROP TABLE t")


@pytest.mark.parametrize("query", ["SELECT * FROM t", "SELECT * FROM t WHERE a = 1", "SELECT count(*) FROM t"])
def test_an_epoch_that_cannot_be_read_has_a_state(query):
    with kpg.open() as db:
        db.sql("CREATE TABLE t (a INT PRIMARY KEY); INSERT INTO t VALUES (1)")
        with pytest.raises(kpg.TimeNotReached, match="epoch 99 is not complete yet") as failure:
            db.sql(f"{query} AS OF 99")
        assert failure.value.sqlstate == "22023"
        db.sql("INSERT INTO t VALUES (2)")
        with pytest.raises(kpg.TimeTooEarly, match="does not keep epoch 0") as failure:
            db.sql(f"{query} AS OF 0")
        assert failure.value.sqlstate == "22023"


def test_an_epoch_is_marked_when_the_answer_has_completed_it():
    with kpg.open() as db:
        rows = db.input("r", k=int, g=int)
        rows.insert((at, at % 2) for at in range(2_000))
        db.advance()
        changes = db.sql("SUBSCRIBE (SELECT a.k + b.k AS s FROM r a JOIN r b ON a.g = b.g) WITH (PROGRESS)")
        first = list(changes)
        rows.insert([(-1, 0)])
        epoch = db.advance(wait=False)
        taken = list(changes)
        assert not taken, "the answer is not complete"
        db.settle()
        later = list(changes)
        require_order([*first, *later])
        assert later[-1] == (epoch, 0, None) and sum(change.diff for change in later) == 2_001


def test_a_read_that_is_cancelled_takes_no_changes(monkeypatch):
    def cancel():
        raise kpg.Closed("cancelled")

    with kpg.open() as db:
        db.sql("CREATE TABLE t (a INT)")
        changes = db.sql("SUBSCRIBE t")
        list(changes)
        db.sql("INSERT INTO t VALUES (1), (2)")
        with monkeypatch.context() as patch:
            patch.setattr(subscribe_changes, "pause", cancel)
            with pytest.raises(kpg.Closed):
                list(changes)
        db.sql("DELETE FROM t WHERE a = 1")
        assert [(change.diff, change.row) for change in changes] == [(1, (1,)), (1, (2,)), (-1, (1,))]


@pytest.mark.parametrize("begins", [True, False], ids=["read before", "never read"])
def test_changes_that_are_summed_because_nobody_reads_get_no_wrong_marks(db, monkeypatch, begins):
    """Memory for a reader that does not read is bounded; each mark is still the answer as of its epoch."""
    limit = 40
    for module in (unread_changes, cluster_output):
        monkeypatch.setattr(module, "CHANGES_LIMIT", limit)
    db.sql("CREATE TABLE seldom (a INT, b INT)")  # with no history
    db.sql(f"CREATE MATERIALIZED VIEW sums AS {QUERY.replace('FROM t', 'FROM seldom')}")
    whole, cut = (db.sql(f"SUBSCRIBE sums WITH (PROGRESS){until}") for until in ("", f" UP TO {db.epoch + 30}"))

    def rows_of(epoch):
        return Counter(db.sql(f"SELECT * FROM sums AS OF {epoch}").rows())

    first, read = db.epoch - 1, {whole: [], cut: []}
    if begins:
        for subscription, changes in read.items():
            changes += subscription.take()
    for value in range(60):
        db.sql(f"INSERT INTO seldom VALUES ({value % 7}, {value})")
    assert 0 < whole.unread_rows <= 2 * limit and 0 < cut.unread_rows <= 2 * limit
    for subscription, changes in read.items():
        changes += subscription.take()
        require_order(changes)
        for mark in (change.epoch for change in changes if change.is_progress):
            assert sum_through(changes, mark) == rows_of(mark)
    last = db.epoch - 1
    assert sum_through(read[whole], last) == rows_of(last)
    assert sum_through(read[cut], last) == rows_of(first + 30) and cut.ended
    marked = {change.epoch for change in read[whole] if change.is_progress}
    assert last in marked and not marked.issuperset(range(first + 1, last))
    whole.close()
    db.sql("DROP TABLE seldom CASCADE")
