"""Dataflows that workers build in parts: what others do meanwhile is in the answer, and all workers begin together."""

import os
import signal

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import kpg
from kpg.cluster.rank_commands.query_commands import BuildOutputCommand, BuildPartCommand, EndBuildCommand
from kpg.columns.building_turns import building_in_turns
from tests.service.conftest import OneSession, dataflows_of

STEPS = 5


def served(place=None, workers=2):
    db = kpg.open(place, workers=workers)
    edges = db.input("edges", src=int, dst=int)
    roots = db.input("roots", node=int)
    db.serve_requests(OneSession())
    return db, edges, roots


@pytest.fixture(scope="module", params=[2, 3], ids=["two workers", "three workers"])
def opened(request):
    db, edges, roots = served(workers=request.param)
    with db:
        yield db, edges, roots


def paths(db, edges, roots):
    """The nodes that a walk of at most STEPS edges reaches, with the number of walks, and a loop and constants."""
    by_src, by_node = db.installer.shared(edges, edges.schema), db.installer.shared(roots, roots.schema)
    reached = nodes = by_node.select(node="node")
    for _ in range(STEPS):
        nodes = by_src.join(nodes, on={"src": "node"}).select(node="dst")
        reached = reached.concat(nodes)
    loop = by_node.iterate(
        lambda seen: by_src.join(seen, on={"src": "node"}).select(node="dst").concat(seen).distinct()
    )
    return reached.concat(loop, db.values([(1,), (2,)], node=int)).count("node")


class Build:
    """A request that installs an answer in parts; each `resume` lets it ask for one more."""

    def __init__(self, db, plan, session="builder"):
        self.db, self.session, self.result = db, session, None
        self._plan = plan
        db.completion.requests.start(self._run, session)

    def _run(self):
        try:
            with self.db.in_turns(), building_in_turns():
                self.result = self.db.installer.output(self._plan.node, None, True)
        except kpg.KpgError as error:
            self.result = error

    def resume(self):
        self.db.completion.requests.resume(idle=False)


def finish(db, *outputs):
    for output in outputs:
        output.wait()


CHANGES = st.lists(
    st.tuples(st.sampled_from(["edge", "root", "install", "drop", "none"]), st.integers(0, 4), st.integers(0, 4)),
    max_size=20,
)


@settings(max_examples=15, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(CHANGES, st.integers(1, 2))
def test_an_answer_that_is_built_in_parts_has_all_changes_made_meanwhile(opened, changes, builders):
    db, edges, roots = opened
    edges.insert([(0, 1), (1, 2), (2, 0)])
    roots.insert([(0,)])
    db.advance(wait=False)
    builds = [Build(db, paths(db, edges, roots), f"builder {number}") for number in range(builders)]
    others, part = [], 0
    while any(build.result is None for build in builds):
        kind, *numbers = changes[part % len(changes)] if changes else ("none",)
        if kind == "edge":
            edges.insert([tuple(numbers)])
        elif kind == "root":
            roots.insert([numbers[:1]])
        elif kind == "install":
            others.append(edges.count("src" if numbers[0] % 2 else "dst").output())
        elif kind == "drop" and others:
            others.pop().release()
        db.advance(wait=False)
        builds[0].resume()
        part += 1
    assert part > 2, "the dataflow was built whole"
    outputs = [build.result for build in builds]
    whole = paths(db, edges, roots).output()
    for _ in range(3):
        finish(db, whole, *outputs, *others)
        assert [sorted(output.rows()) for output in outputs] == [sorted(whole.rows())] * builders
        edges.insert([(3, 4), (0, 3)])
        db.advance(wait=False)
    names = dataflows_of(db)  # the same on all workers
    for output in (whole, *outputs, *others):
        output.release()
    assert len(dataflows_of(db)) < len(names)


@pytest.mark.parametrize("parts", [0, 1, 2])
def test_a_build_that_is_cancelled_leaves_nothing_behind(opened, parts):
    db, edges, roots = opened
    db.advance(wait=False)
    before = dataflows_of(db)
    build = Build(db, paths(db, edges, roots))
    for _ in range(parts):
        build.resume()
    assert build.result is None
    db.completion.requests.cancel("builder", kpg.Closed("gone"))
    assert isinstance(build.result, kpg.Closed)
    assert dataflows_of(db) == before
    output = paths(db, edges, roots).output()
    output.wait()
    assert len(output.rows()) >= 2
    output.release()
    assert dataflows_of(db) == before


def test_a_build_that_fails_fails_on_all_workers_and_leaves_nothing_behind(opened):
    db, edges, roots = opened
    before = dataflows_of(db)
    broken = {"not": "a plan"}
    with pytest.raises(kpg.KpgError):
        db.ask(BuildOutputCommand(10_000, "broken", broken, True))
    assert [reply.value for reply in db.ask(BuildPartCommand(10_000))] == [False] * db.workers
    db.ask(EndBuildCommand(10_000))
    assert dataflows_of(db) == before


@pytest.mark.parametrize("parts", [0, 2])
def test_a_worker_that_is_lost_while_a_dataflow_is_built_is_replaced_and_the_answer_complete(tmp_path, parts):
    db, edges, roots = served(tmp_path)
    with db:
        edges.insert([(0, 1), (1, 2), (2, 0)])
        roots.insert([(0,)])
        db.advance(wait=False)
        build = Build(db, paths(db, edges, roots))
        for _ in range(parts):
            build.resume()
        assert build.result is None
        os.kill(db.coordinator.members[1].pid, signal.SIGKILL)
        edges.insert([(1, 3)])
        db.advance(wait=False)
        while build.result is None:
            build.resume()
        assert not isinstance(build.result, kpg.KpgError), build.result
        whole = paths(db, edges, roots).output()
        finish(db, build.result, whole)
        assert sorted(build.result.rows()) == sorted(whole.rows())
        dataflows_of(db)  # raises if workers have different ones
