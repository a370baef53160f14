"""Path summaries compose as the functions they represent, and have the same order."""

from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.order import less_equal
from kpg.progress.summary import Summary, enter, identity, leave, step_round
from kpg.testing.strategies import times


@st.composite
def paths(draw: st.DrawFn, depth: int) -> tuple[list[Summary], int]:
    """A path of steps through scopes that begins at a depth, and the depth it ends at."""
    steps: list[Summary] = []
    for kind in draw(st.lists(st.sampled_from(["keep", "enter", "leave", "round"]), max_size=6)):
        if kind == "enter" and depth < 3:
            steps.append(enter(depth))
            depth += 1
        elif kind == "leave" and depth > 1:
            steps.append(leave(depth))
            depth -= 1
        elif kind == "round":
            steps.append(step_round(depth, draw(st.integers(1, 2))))
        else:
            steps.append(identity(depth))
    return steps, depth


@given(st.data(), st.integers(1, 3))
def test_a_composed_summary_is_the_steps_one_after_another(data: st.DataObject, depth: int) -> None:
    """A1.9: enter, leave and feedback of loops, in any order."""
    steps, _ = data.draw(paths(depth))
    time = data.draw(times(depth))
    whole = identity(depth)
    one_by_one = time
    for step in steps:
        whole = whole.then(step)
        one_by_one = step.apply(one_by_one)
    assert whole.apply(time) == one_by_one


@given(st.data(), st.integers(1, 3))
def test_an_earlier_summary_gives_earlier_times(data: st.DataObject, depth: int) -> None:
    """A1.9: the order of summaries is that of functions."""
    (first, end), (second, other_end) = data.draw(paths(depth)), data.draw(paths(depth))
    if end != other_end:
        return
    one, other = identity(depth), identity(depth)
    for step in first:
        one = one.then(step)
    for step in second:
        other = other.then(step)
    if one.less_equal(other):
        time = data.draw(times(depth))
        assert less_equal(one.apply(time), other.apply(time))
    if one == other:
        assert one.less_equal(other) and other.less_equal(one)
