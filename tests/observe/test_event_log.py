"""What the engine does, as relations of the same db: A1.17, A13.1 to A13.4."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.observe import attributes
from kpg.observe.attributes import ATTRIBUTES, BYTES, NAME, SCOPE, SHUTDOWN, SIZE
from kpg.observe.event_log import EventLog, unlogged
from kpg.operators.arrange import Publisher
from kpg.query.edn import parse_query
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from tests.api import test_recursion
from tests.query.thesis_query import ARRANGED_TUPLES


def ask(log: EventLog, text: str, name: str = "question") -> InstalledProgram:
    """A query over a log, not logged itself."""
    with unlogged(log.db):
        return InstalledProgram(log.db, compile(parse_query(text, log.attributes)), name=name, inputs=log.inputs)


def rows_of(db: kpg.Database) -> dict[int, tuple[int, int]]:
    """For each arrangement that is logged, the rows and bytes of columns of its trace, by entity."""
    sizes = {}
    for dataflow in db.worker.dataflows.values():
        for operator in dataflow.operators:
            spine = operator.spine() if isinstance(operator, Publisher) and dataflow.logged else None
            if spine is not None:
                batches = spine.batches_through(None)
                sizes[operator.entity] = sum(map(len, batches)), sum(batch.updates.nbytes for batch in batches)
    return sizes


def test_the_query_of_the_thesis_as_printed():
    """A13.3, A13.2: section 12.1, over the log of the db that answers it."""
    with kpg.open() as db, EventLog(db, [SIZE, NAME, SHUTDOWN]) as log:
        edges = db.input("edges", src=int, dst=int)
        by_src = edges.arrange("src")
        doubled = edges.filter(kpg.col("src") > 1).arrange("dst")
        query = ask(log, ARRANGED_TUPLES)
        edges.insert([(1, 2), (1, 3), (2, 3)])
        db.advance()
        assert query.rows("query") == []  # the events of an epoch appear with the next
        db.advance()
        assert sorted(query.rows("query")) == [("arrange dst", 1), ("arrange edges by src", 3)]
        edges.remove([(2, 3)])
        db.advance()
        db.idle()
        db.advance()
        assert dict(query.rows("query"))["arrange edges by src"] == by_src.installed.handle.spine.rows
        doubled.release()
        db.advance()
        assert [row[0] for row in query.rows("query")] == ["arrange edges by src"]
        query.release()


def test_a_dropped_operator_is_marked_and_no_longer_counts():
    """A13.1: shut down."""
    with kpg.open() as db, EventLog(db, [SIZE, NAME, SHUTDOWN]) as log:
        words = db.input("words", w=str)
        answer = words.count("w").output("counts")
        words.insert([("a",), ("b",)])
        db.advance()
        answer.release()
        db.advance()
        shutdowns = log[SHUTDOWN].output("gone", keep=True)
        db.advance()
        names = dict(log[NAME].output("names").rows())
        gone = {names.get(entity, "a channel") for entity, _ in shutdowns.rows()}
        assert {"counts", "output counts", "a channel"} <= gone and "words" not in gone
        shutdowns.release()
        db["names"].release()


@settings(max_examples=20)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 40), st.sampled_from([1, 1, -1])), max_size=60), max_size=12),
    st.lists(st.sampled_from(["idle", "late", "drop", "none"]), min_size=12, max_size=12),
)
def test_size_is_what_the_traces_hold(rounds, actions):
    """A13.2: batches add their rows, merges take away what they lost; the sum is the rows of the spines, always."""
    with kpg.open(history=2) as db:
        early = db.input("early", k=int)
        early.arrange("k")
        early.insert([(k,) for k in range(10)])
        db.advance()
        with EventLog(db, [SIZE]) as log:  # of what was there before, too
            counted = early.count("k").output("counted")
            kept = [counted]
            for changes, action in zip(rounds, actions, strict=False):
                for row, diff in changes:
                    (early.insert if diff > 0 else early.remove)([(row,)])
                db.advance()
                if action == "idle":
                    db.idle()
                elif action == "late":
                    kept.append(early.distinct().output())
                elif action == "drop" and kept:
                    kept.pop().release()
                logged = {operator.entity: (operator.rows, operator.nbytes) for operator in log.operators()}
                actual = rows_of(db)
                assert {entity: logged[entity] for entity in actual} == actual
                assert all(not rows for entity, (rows, _) in logged.items() if entity not in actual)


def test_large_batches_that_merge_by_fuel_are_counted_exactly():
    """A13.2: every way in which a spine replaces batches, with rows that cancel."""
    with kpg.open() as db, EventLog(db, [SIZE, BYTES]) as log:
        keys = db.input("keys", k=int)
        keys.arrange("k")
        for number in range(40):
            keys.insert({"k": list(range(number * 500, number * 500 + 3000))})
            if number % 3 == 2:
                keys.remove({"k": list(range(number * 500, number * 500 + 2500))})
            db.advance()
            if number % 10 == 9:
                while db.idle(20_000):
                    pass
            actual, logged = (
                rows_of(db),
                {operator.entity: (operator.rows, operator.nbytes) for operator in log.operators()},
            )
            assert {entity: logged[entity] for entity in actual} == actual
        totals = log._recorder.figures
        (entity,) = [number for number in rows_of(db) if "keys" in totals.of(NAME)[number]]
        assert totals.of(attributes.MERGES)[entity] > 10
        assert totals.of(SIZE)[entity] == totals.of(attributes.BATCHED)[entity] - totals.of(attributes.MERGED)[entity]


def test_rows_that_a_compaction_alone_takes_away_are_counted():
    """A13.2: nothing new comes, only the since moves on."""
    with kpg.open() as db, EventLog(db, [SIZE]) as log:
        keys = db.input("keys", k=int)
        keys.arrange("k")
        seen = []
        for change in (keys.insert, keys.remove, None, None, None):
            if change is not None:
                change({"k": list(range(200))})
            db.advance()
            while db.idle():
                pass
            (logged,) = [operator.rows for operator in log.operators() if operator.name == "arrange keys by k"]
            assert [logged] == [rows for rows, _ in rows_of(db).values()]
            seen.append(logged)
        assert max(seen) >= 200 and seen[-1] == 0


def test_a_client_picks_the_attributes_it_wants():
    """A13.1: only those are relations."""
    with kpg.open() as db, EventLog(db, [NAME]) as log:
        assert set(db.inputs) == {NAME} and set(log.inputs) == {NAME}
        with pytest.raises(kpg.UndefinedName, match="nothing/at-all"):
            EventLog(db, [":nothing/at-all"])
        with EventLog(db, [NAME, SIZE]) as other:
            assert set(db.inputs) == {NAME, SIZE} and other[NAME] is log[NAME]
        assert set(db.inputs) == {NAME}
    assert all(value.value in (int, str, bool) for value in ATTRIBUTES.values())


def test_scopes_are_edges_of_a_graph_that_ends_at_the_worker():
    """A13.1: hierarchical addresses; a loop within a loop is a scope within a scope."""
    with kpg.open() as db, EventLog(db) as log:
        edges = db.input("edges", src=int, dst=int)
        test_recursion.scc(db, {"edges": edges}).output("components")
        db.advance()
        db.advance()
        figures = log._recorder.figures
        scope, name, own = figures.of(SCOPE), figures.of(NAME), figures.of(attributes.DATAFLOW)
        (flow,) = [entity for entity, text in name.items() if text == "components"]
        longest = 0
        for entity in (number for number, at in own.items() if at == flow):
            way = [entity]
            while way[-1] in scope:
                way.append(scope[way[-1]])
            assert name[way[-1]] == "worker 0" and way[-2] == flow
            longest = max(longest, len(way))
        assert longest == 5  # operator, inner loop, outer loop, dataflow, worker
        operators = [operator for dataflow in db.worker.dataflows.values() for operator in dataflow.operators]
        depth = {operator.entity: operator.depth for operator in operators}
        for entity in (number for number, at in own.items() if at == flow and number in depth):
            steps = 0
            at = scope[entity]
            while at != flow:
                at, steps = scope[at], steps + 1
            assert steps == depth[entity] - 1


def test_channels_are_the_edges_between_operators():
    """A13.1: what the query finds is how the dataflow is connected."""
    text = """
    [:find ?from ?to :where
      [?c :timely.event.channels/src-index ?a] [?c :timely.event.channels/target-index ?b]
      [?a :timely.event.operates/name ?from] [?b :timely.event.operates/name ?to]]
    """
    with kpg.open() as db, EventLog(db) as log:
        query = ask(log, text)
        edges = db.input("edges", src=int, dst=int)
        edges.arrange("src").count("src").output("degree")
        db.advance()
        expected = [
            (operator.name, channel.target.name)
            for dataflow in db.worker.dataflows.values()
            if dataflow.logged
            for operator in dataflow.operators
            for port in operator.channels
            for channel in port
        ]
        assert len(expected) > 3 and sorted(query.rows("query")) == sorted(expected)
        query.release()


def test_messages_steps_and_imports_are_logged():
    """A1.17: schedules with their time, messages with their rows, imports."""
    with kpg.open() as db, EventLog(db) as log:
        edges = db.input("edges", src=int, dst=int)
        edges.arrange("src").count("src").output("degree")
        edges.insert([(1, 2), (1, 3), (2, 3)])
        db.advance()
        db.advance()
        figures = log._recorder.figures
        name = figures.of(NAME)
        (entry,) = [
            channel
            for channel, source in figures.of(attributes.SOURCE).items()
            if name[source] == "input edges" and figures.of(attributes.MESSAGES).get(channel)
        ]
        assert figures.of(attributes.MESSAGES)[entry] == 1 and figures.of(attributes.MESSAGE_ROWS)[entry] == 3
        (imported,) = figures.of(attributes.IMPORTS).items()
        assert (name[imported[0]], name[imported[1]]) == ("import edges", "arrange edges by src")
        assert sum(figures.of(attributes.STEPS).values()) <= db.worker.steps
        spent = {operator.name: operator.seconds for operator in log.operators()}
        assert 0 < spent["arrange edges by src"] < 10
        degree = next(dataflow for dataflow in db.describe()["dataflows"] if dataflow["name"] == "degree")
        assert degree["seconds"] > 0 and degree["steps"] > 0
        assert {dataflow.name for dataflow in log.dataflows()} == {"edges", "degree"}
        head, first, *_ = log.top(3).splitlines()
        assert head.split() == ["ms", "steps", "rows", "bytes", "dataflow", "operator"]
        assert first.endswith(log.operators()[0].name) and len(log.top(3).splitlines()) == 4


def test_single_steps_are_those_of_the_last_published_epoch():
    """A1.17: when each schedule began and how long it took."""
    with kpg.open() as db, EventLog(db, attributes.SINGLE_STEP_ATTRIBUTES) as log:
        keys = db.input("keys", k=int)
        keys.arrange("k")
        with unlogged(db):
            steps = log[attributes.STEP_OPERATOR].join(log[attributes.STEP_ELAPSED], on="e").output("steps")
        for number in range(3):
            keys.insert([(number,)])
            db.advance()
        before = db.worker.steps
        db.advance()
        step_rows = steps.rows()
        (arrange,) = [operator.entity for operator in log.operators() if operator.name == "arrange keys by k"]
        assert 0 < len(step_rows) < before and {row[1] for row in step_rows} == {arrange}
        assert all(row[2] > 0 for row in step_rows)
        while db.idle():
            pass
        db.advance()
        db.advance()
        assert steps.rows() == []  # nothing happened that is logged
        steps.release()


def test_a_query_that_is_not_logged_lets_the_log_come_to_rest():
    """A13.4: without that, what a query over the log does is news to it with every advance, for ever."""
    with kpg.open() as db, EventLog(db) as log:
        keys = db.input("keys", k=int)
        keys.arrange("k")
        keys.insert([(1,)])
        with unlogged(db):
            quiet = log[attributes.STEPS].output("quiet")
        for _ in range(4):
            db.advance()
        quiet.take_changes()
        for _ in range(3):
            db.advance()
        assert len(quiet.take_changes()) == 0
        loud = log[attributes.STEPS].output("loud")
        sizes = []
        for _ in range(8):
            db.advance()
            sizes.append(len(loud.take_changes()))
        assert all(sizes) and max(sizes[2:]) <= sizes[2] + 2  # never at rest, and yet each advance ends
        logged = {operator.dataflow for operator in log.operators()}
        assert "loud" in logged and "quiet" not in logged and attributes.STEPS not in logged and "keys" in logged
        quiet.release()
        loud.release()


def test_a_relation_that_an_unlogged_query_brings_to_life_is_logged():
    """A13.4: only the query itself is silent."""
    with kpg.open() as db, EventLog(db, [NAME]) as log:
        keys = db.input("keys", k=int)
        with unlogged(db):
            keys.count("k").output("silent")
        assert {operator.dataflow for operator in log.operators()} == {"keys"}


def test_the_log_is_not_written_to_disk(tmp_path):
    for _ in range(2):
        with kpg.open(tmp_path / "db") as db:
            keys = db.input("keys", k=int)
            with EventLog(db, [NAME, SIZE]) as log:
                keys.insert([(1,)])
                db.advance()
                db.advance()
                db.checkpoint()
                assert log[NAME].schema.names == ("e", "v")
            db.advance()
            assert set(db.durable.storage.relations) <= {"keys"}
    with kpg.open(tmp_path / "db") as db:
        assert sorted(db.input("keys", k=int).output("all").rows()) == [(1,), (1,)]


def test_rows_of_a_relation_found_on_disk_are_counted(tmp_path):
    """A13.2."""
    with kpg.open(tmp_path / "db") as db:
        db.input("keys", k=int).insert([(1,), (2,)])
        db.advance()
    with kpg.open(tmp_path / "db") as db, EventLog(db, [SIZE]) as log:
        db.input("keys", k=int).arrange("k")
        assert [operator.rows for operator in log.operators() if operator.name == "arrange keys by k"] == [2]


def test_people_cannot_write_into_the_log():
    with kpg.open() as db, EventLog(db, [NAME]) as log, pytest.raises(kpg.InUse, match="written by the db itself"):
        log[NAME].insert([(1, "x")])


def test_a_log_that_is_closed_leaves_no_listener_behind():
    with kpg.open() as db:
        keys = db.input("keys", k=int)
        keys.arrange("k")
        with EventLog(db):
            assert db.worker.events is not None
        assert db.worker.events is None and db.recorder is None and set(db.inputs) == {"keys"}
        assert all(dataflow.events is None for dataflow in db.worker.dataflows.values())
        assert all(spine.events is None for spine in db.spines())
        keys.insert([(1,)])
        db.advance()
        with EventLog(db, [SIZE]) as again:
            assert [operator.rows for operator in again.operators() if operator.name == "arrange keys by k"] == [1]


def test_a_log_that_is_read_cannot_be_closed():
    with kpg.open() as db:
        log = EventLog(db, [NAME])
        names = log[NAME].output("names")
        with pytest.raises(kpg.InUse):
            log.close()
        db.advance()
        names.release()
        log.close()
        log.close()
        with pytest.raises(kpg.Closed):
            log.operators()


def test_what_is_gone_is_forgotten_after_a_while(monkeypatch):
    monkeypatch.setattr("kpg.observe.figures.MAX_DROPPED_ENTITIES", 30)
    with kpg.open() as db, EventLog(db) as log:
        keys = db.input("keys", k=int)
        keys.insert([(1,)])
        names = log[NAME].output("names")
        for number in range(30):
            keys.count("k").output(f"answer {number}").release()
            db.advance()
        db.advance()
        assert len(names.rows()) < 120 and ("answer 29" in {row[1] for row in names.rows()})
        assert "answer 3" not in {row[1] for row in names.rows()}
        assert len(log._recorder.figures.of(SIZE)) < 30
        names.release()


def test_rows_are_written_at_most_once_per_interval():
    with kpg.open() as db, EventLog(db, [NAME], every=3600) as log:
        names = log[NAME].output("names")
        db.advance()
        first = names.rows()
        db.input("keys", k=int).arrange("k")
        db.advance()
        assert first and names.rows() == first
        names.release()


def test_a_log_of_a_db_in_the_background_is_asked_on_its_thread():
    with kpg.open(background=True) as db:
        log = db.run(EventLog)
        db.input("keys", k=int).arrange("k")
        db.advance()
        assert "keys" in db.run(lambda inner: {operator.dataflow for operator in log.operators()})
        with pytest.raises(kpg.WrongThread):
            log.operators()


def test_a_log_that_outlives_its_db_can_be_closed_and_is_refused_when_read():
    with kpg.open() as db:
        log = EventLog(db, [NAME])
        db.input("keys", k=int).arrange("k")
        db.advance()
        assert "keys" in {operator.dataflow for operator in log.operators()}
    with pytest.raises(kpg.Closed):  # the db is closed
        log.operators()
    log.close()
    log.close()
    with pytest.raises(kpg.Closed, match="the log is closed"):
        log.operators()


def test_buffered_events_are_bounded_while_no_write_is_due(monkeypatch):
    monkeypatch.setattr("kpg.observe.event_recorder.MAX_BUFFERED_NUMBERS", 20)
    with kpg.open() as db, EventLog(db, [NAME, attributes.STEPS], every=3600) as log:
        keys = db.input("keys", k=int)
        keys.arrange("k")
        for number in range(50):
            keys.insert([(number,)])
            db.advance()
        assert log._recorder._events.size < 60
        assert sum(operator.steps for operator in log.operators()) >= 50


def test_a_db_in_the_background_is_logged_on_its_own_thread_only():
    with kpg.open(background=True) as db, pytest.raises(kpg.Unavailable, match="thread of its db"):
        EventLog(db)
