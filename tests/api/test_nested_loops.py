"""Nested loops, in any notation, and the errors of wrong ones (A1.9, A6.4, A6.5, A17.14)."""

import pytest
from hypothesis import given

import kpg
from kpg.testing.strategies import rows
from tests.api.plays import Query, check, examples, plays
from tests.api.test_recursion import reach_of

SCHEMAS = {"edges": {"src": int, "dst": int}, "roots": {"node": int}}
ROWS = {"edges": rows(2, 3), "roots": rows(1, 3)}
BOTH = ("edges", "roots")


def follow(nodes, edges):
    return nodes.join(edges, on={"node": "src"}).select(node="dst")


def inner_begins_empty(db, r):
    """The inner loop depends on the outer only through a definition."""
    with db.loop("outer") as outer, db.loop("inner") as inner:
        v = outer.variable(r["roots"])
        w = inner.variable(node=int)
        w.set(v.concat(follow(w, r["edges"])).distinct())
        v.set(inner.leave(w))
        return outer.leave(inner.leave(w))


def inner_begins_outside(db, r):
    """The inner loop begins with a collection that does not depend on the outer."""
    with db.loop("outer") as outer, db.loop("inner") as inner:
        v = outer.variable(node=int)
        w = inner.variable(r["roots"])
        w.set(r["roots"].concat(v, follow(w, r["edges"])).distinct())
        reached = inner.leave(w)
        v.set(reached)
        return outer.leave(reached)


def three_deep(db, r):
    """The innermost depends on the middle alone, the middle on the outer only through a definition."""
    with db.loop("a") as a, db.loop("b") as b, db.loop("c") as c:
        u = a.variable(r["roots"])
        v = b.variable(node=int)
        w = c.variable(node=int)
        w.set(v.concat(follow(w, r["edges"])).distinct())
        v.set(u.concat(c.leave(w)).distinct())
        u.set(b.leave(v).concat(r["roots"]).distinct())
        return a.leave(u)


def written_inside(db, r):
    """A loop written inside another that it does not depend on: rendered outside, used inside."""

    def step(v):
        far = r["roots"].iterate(lambda w: follow(w, r["edges"]).concat(r["roots"]).distinct(), name="inner")
        return far.concat(v).distinct()

    return r["roots"].iterate(step, name="outer")


def used_twice(db, r):
    """One loop read by another loop and by the answer."""
    first = r["roots"].iterate(lambda v: follow(v, r["edges"]).concat(r["roots"]).distinct(), name="first")
    second = first.iterate(lambda v: follow(v, r["edges"]).concat(first).distinct(), name="second")
    return first.intersect(second)


def other_intermediate(db, r):
    """The collection that leaves is computed from a variable, and is not one."""
    with db.loop() as loop:
        v = loop.variable(r["roots"])
        nodes = v.distinct()
        v.set(follow(nodes, r["edges"]).concat(r["roots"]))
        return loop.leave(nodes)


NESTED = {
    build.__name__: Query(build, reach_of, BOTH)
    for build in (
        inner_begins_empty,
        inner_begins_outside,
        three_deep,
        written_inside,
        used_twice,
        other_intermediate,
    )  # fmt: skip
}


@examples(0.3)
@given(plays({**ROWS, "edges": rows(2, 3).filter(lambda row: row[0] < row[1])}, negative=False, largest=2, max_size=6))
def test_nested_loops_of_any_shape(play):
    """A6.4, A6.5: edges lead upwards, so that counts stay finite where no distinct bounds them."""
    check(play, SCHEMAS, NESTED)


@pytest.fixture
def db():
    with kpg.open() as db:
        yield db


@pytest.fixture
def nodes(db):
    return db.input("nodes", node=int)


def test_a_variable_must_be_defined(db, nodes):
    with db.loop("lost") as loop:
        v = loop.variable(nodes)
        with pytest.raises(kpg.BadPlan, match="a variable of lost has no definition"):
            loop.leave(v).output()


def test_a_variable_is_defined_once(db, nodes):
    with db.loop("twice") as loop:
        v = loop.variable(nodes)
        v.set(v)
        with pytest.raises(kpg.BadPlan, match="defined twice"):
            v.set(v)


def test_a_variable_and_its_definition_have_the_same_columns(db, nodes):
    with db.loop() as loop:
        v = loop.variable(nodes)
        with pytest.raises(kpg.TypeMismatch, match="different columns"):
            v.set(v.select(other="node"))


def test_loops_cannot_be_inside_each_other(db, nodes):
    with db.loop("one") as one, db.loop("two") as two:
        v, w = one.variable(nodes), two.variable(nodes)
        v.set(w.distinct())
        with pytest.raises(kpg.BadPlan, match="two and one are each inside the other"):
            w.set(v.distinct())


def test_a_loop_must_not_be_left_before_its_nesting_is_known(db, nodes):
    with db.loop("outer") as outer, db.loop("inner") as inner:
        v, w = outer.variable(nodes), inner.variable(node=int)
        inner.leave(w)
        with pytest.raises(kpg.BadPlan, match=r"inner turns out to be inside outer after leave\(\) was called"):
            w.set(v)


def test_collections_of_two_separate_loops_cannot_be_combined(db, nodes):
    with db.loop("one") as one, db.loop("two") as two:
        v, w = one.variable(nodes), two.variable(nodes)
        v.set(v.distinct())
        w.set(w.distinct())
        with pytest.raises(kpg.BadPlan):
            one.leave(v.concat(w)).output()
        with pytest.raises(kpg.BadPlan):
            one.leave(two.leave(v.join(w, on="node"))).output()


def test_a_collection_inside_a_loop_cannot_be_installed(db, nodes):
    with db.loop("inside") as loop:
        v = loop.variable(nodes)
        v.set(v.distinct())
        for install in (v.output, v.probe):
            with pytest.raises(kpg.BadPlan, match="inside"):
                install()


def test_a_step_must_return_a_collection(db, nodes):
    with pytest.raises(kpg.BadPlan, match="the step of iterate returned NoneType"):
        nodes.iterate(lambda v: None)


def test_a_refused_plan_leaves_nothing_behind(db, nodes):
    nodes.insert([(1,)])
    db.advance()
    before = len(db.worker.dataflows), nodes.base().publisher.importers[:]
    with db.loop() as loop:
        with pytest.raises(kpg.BadPlan):
            loop.leave(loop.variable(nodes)).output("bad")
    assert (len(db.worker.dataflows), nodes.base().publisher.importers) == before
    good = nodes.output("bad")
    assert good.rows() == [(1,)]


def test_a_recursion_without_a_fixed_point_is_stopped_and_others_continue(db, nodes):
    """A17.14."""
    counting = nodes.iterate(lambda v: v.select(node=kpg.col("node") + 1), name="counting", max_rounds=50).output()
    flickering = nodes.iterate(
        lambda v: nodes.antijoin(v, on="node").distinct(), name="flicker", max_rounds=60
    ).output()
    healthy = nodes.distinct().output("healthy")
    nodes.insert([(1,)])
    db.advance()
    assert healthy.rows() == [(1,)]
    with pytest.raises(kpg.TooManyRounds, match="counting did not reach a fixed point within 50 rounds"):
        counting.rows()
    with pytest.raises(kpg.TooManyRounds, match="flicker"):
        flickering.changes()
    nodes.insert([(2,)])
    db.advance()
    assert healthy.rows() == [(1,), (2,)]
    counting.release()
    flickering.release()
    assert nodes.iterate(lambda v: v.distinct()).output().rows() == [(1,), (2,)]


def test_a_recursion_over_a_failed_arrangement_raises_its_error(db, nodes):
    """A17.14: reading the answer of a stopped recursion raises the reason."""
    shared = nodes.iterate(lambda v: v.select(node=kpg.col("node") + 1), name="counting", max_rounds=9).arrange("node")
    reader = shared.join(nodes, on="node").output()
    nodes.insert([(1,)])
    db.advance()
    with pytest.raises(kpg.TooManyRounds, match="counting"):
        reader.rows()
    with pytest.raises(kpg.TooManyRounds, match="counting"):
        shared.scan()
    with pytest.raises(kpg.TooManyRounds, match="counting"):
        shared.select("node").output()
    assert nodes.output().rows() == [(1,)]
