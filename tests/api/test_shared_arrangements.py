"""Late, idle and numerous queries: they share existing arrangements, and cost only what they use."""

import kpg
from kpg import col
from kpg.operators.join import Join


def reachable(db: kpg.Database, name: str) -> kpg.Output:
    """Install the example of the papers' figure 1: which queried pairs are connected."""
    edges, query = db["edges"], db["query"]
    by_src = edges.arrange("src")

    def step(reach: kpg.Collection) -> kpg.Collection:
        pairs = by_src.join(reach, on={"src": "at"}).select(at=col("dst"), root=col("root"))
        return pairs.consolidate().concat(reach).distinct()

    reach = query.select(at=col("src"), root=col("src")).distinct().iterate(step)
    return reach.semijoin(query, on={"root": "src", "at": "dst"}).output(name)


def test_a_late_query_answers_as_an_early_one() -> None:
    """A1.13 A2.10 A4.4 A4.9 A17.5: reachability, both sides changing; installed first, in the middle, and last."""
    with kpg.open() as db:
        edges, query = db.input("edges", src=int, dst=int), db.input("query", src=int, dst=int)
        answers = [reachable(db, "early")]
        edges.insert([(1, 2), (2, 3), (3, 4)])
        query.insert([(1, 4), (4, 1)])
        db.advance()
        assert answers[0].rows() == [(4, 1)]
        answers.append(reachable(db, "middle"))
        edges.remove([(2, 3)])
        edges.insert([(4, 1)])
        db.advance()
        answers.append(reachable(db, "late"))
        assert [answer.rows() for answer in answers] == [[(1, 4)]] * 3
        since = db.epoch - 1
        assert {time for _, time, _ in answers[2].changes()} == {since}, "times before since must not be shown"
        edges.insert([(2, 4)])
        query.insert([(1, 4)])
        db.advance()
        for answer in answers:
            assert sorted(answer.rows()) == [(1, 4), (4, 1)]


def test_a_thousand_idle_queries_are_never_stepped() -> None:
    """A1.3 A1.4 A17.10: the steps of a busy query do not depend on the number of idle ones."""
    with kpg.open() as db:
        busy, quiet = db.input("busy", k=int), db.input("quiet", k=int, v=int)
        answer = busy.count("k").output("answer")
        by_key = quiet.arrange("k")
        quiet.insert([(key, key) for key in range(100)])
        db.advance()

        def steps_of_a_round() -> int:
            before = db.worker.steps
            busy.insert([(1,)])
            db.advance()
            return db.worker.steps - before

        alone = steps_of_a_round()
        queries = [by_key.filter(col("k") == number % 100).output(f"q{number}") for number in range(1000)]
        db.settle()
        assert len(db.worker.dataflows) >= 1002
        assert steps_of_a_round() == steps_of_a_round() == alone
        assert answer.rows() == [(1, 3)]
        assert queries[7].rows() == [(7, 7)]


def test_an_index_inside_a_loop_is_the_one_outside() -> None:
    """A3.2 A3.9 A6.3: the join in a loop reads the very batches of the arrangement it entered with."""
    with kpg.open() as db:
        edges, _ = db.input("edges", src=int, dst=int), db.input("query", src=int, dst=int)
        reachable(db, "answer")
        edges.insert([(1, 2), (2, 3)])
        db.advance()
        (dataflow,) = [dataflow for dataflow in db.worker.dataflows.values() if dataflow.name == "answer"]
        outside = edges.base().handle.batches(None)
        inside = [
            side.handle.spine
            for operator in dataflow.operators
            if isinstance(operator, Join)
            for side in operator.sides
            if side.handle is not None and side.trace_depth < operator.depth
        ]
        assert inside == [edges.base().handle.spine]
        assert [id(batch) for batch in inside[0].batches_through(None)] == [id(batch) for batch in outside]


def test_a_join_releases_the_trace_that_only_a_closed_side_would_read() -> None:
    """A5.6: when one input closes, no lookup in the other's trace can follow, and its handle is released."""
    with kpg.open() as db:
        left, right = db.input("left", k=int, v=int), db.input("right", k=int, w=int)
        answer = left.join(right, on="k").output("answer")
        left.insert([(1, 10)])
        right.insert([(1, 20)])
        db.advance()
        (join,) = [
            operator
            for dataflow in db.worker.dataflows.values()
            for operator in dataflow.operators
            if isinstance(operator, Join)
        ]
        assert all(side.handle is not None for side in join.sides)
        right.close()
        db.advance()
        db.worker.clean_up()
        assert join.sides[0].handle is None, "no row of the right side will ever ask for one of the left"
        assert join.sides[1].handle is not None, "new rows of the left side still ask for those of the right"
        left.insert([(1, 11)])
        db.advance()
        assert sorted(answer.rows()) == [(1, 10, 20), (1, 11, 20)]
