"""The planner process: the results of planning in place, and limits on time and memory that end only the offender."""

from concurrent.futures import Future

import pytest

import kpg
from kpg.errors import OverLimit, UnsafeRule
from kpg.service import Change, Interest, Limits, Service
from kpg.service.limits import TextLimits
from kpg.service.planner import SMALL_PROGRAM_RULES, SMALL_TEXT_CHARACTERS, is_small
from kpg.service.planner_process import PlanTask, shared_planner

DISJUNCTIONS = "p(x) :- q(x)" + ", (q(x) ; x > 1)" * 12 + "."  # 4,096 rules
PADDING = "// " + "x" * SMALL_TEXT_CHARACTERS + "\n"  # makes any text large


def service_with(**limits: object) -> Service:
    service = Service(kpg.open(), limits=Limits(**limits))  # type: ignore[arg-type]
    service.create_relation("q", {"x": int})
    service.transact([Change("q", (value,)) for value in range(3)])
    return service


def test_a_large_text_gives_the_same_answer_as_in_place() -> None:
    service = service_with()
    assert service.register(PADDING + "big(x) :- q(x), x > 0.") == ("big",)
    assert service.register("small(x) :- q(x), x > 0.") == ("small",)
    assert service.query("big").to_pylist() == service.query("small").to_pylist() == [{"x": 1}, {"x": 2}]
    rows = service.query("/* " + "x" * SMALL_TEXT_CHARACTERS + " */ p(x) :- q(x), x = 2.", language="datalog")
    assert rows.to_pylist() == [{"x": 2}]
    sql = "SELECT x FROM q WHERE x IN (" + ", ".join(map(str, range(2, 1_000))) + ")"
    assert service.execute_sql(sql).rows() == [(2,)]
    service.db.close()


def test_errors_keep_their_class_and_position() -> None:
    service = service_with()
    with pytest.raises(UnsafeRule) as raised:
        service.register(PADDING + "p(y) :- q(x).")
    assert (raised.value.line, raised.value.column) == (2, 3) and raised.value.hint
    service.db.close()


def test_a_text_that_takes_too_long_is_stopped_and_the_next_one_is_planned() -> None:
    service = service_with(plan_seconds=0.2)
    with pytest.raises(OverLimit, match="0.2 seconds of CPU time") as raised:
        service.register(DISJUNCTIONS)
    assert "plan_seconds" in str(raised.value.detail) and "--max-plan-seconds" in str(raised.value.hint)
    assert service.register(PADDING + "p(x) :- q(x).") == ("p",)
    service.db.close()


def test_a_text_that_takes_too_much_memory_is_stopped_and_the_next_one_is_planned() -> None:
    service = service_with(plan_bytes=2 << 20, plan_seconds=20.0)
    with pytest.raises(OverLimit, match="2,097,152 bytes of memory") as raised:
        service.register(" ".join(f"p{number}(x) :- q(x), x > {number}." for number in range(3_000)))
    assert "--max-plan-bytes" in str(raised.value.hint)
    service.db.close()
    other = service_with()
    assert other.register(PADDING + "p(x) :- q(x).") == ("p",)
    other.db.close()


def test_a_process_that_was_killed_is_replaced() -> None:
    planner = shared_planner()
    task = PlanTask("rules", ("datalog", "p(1).", None, {}))
    assert planner.submit(task, 2.0, 1 << 29).result().names == ("p",)
    assert planner._child is not None
    planner._child.kill()
    planner._child.wait()
    assert planner.submit(task, 2.0, 1 << 29).result().names == ("p",)


def test_an_answer_of_too_many_rules_is_refused() -> None:
    service = service_with(answer_rules=10)
    service.register("p(x) :- q(x), (x > 1 ; x < 1 ; x = 1), (x > 2 ; x < 2), (x > 3 ; x < 3).")
    with pytest.raises(OverLimit, match="computed by 12 rules, more than 10") as raised:
        service.query("p")
    assert "--max-answer-rules" in str(raised.value.hint)
    assert service.query("q").num_rows == 3
    service.db.close()


@pytest.mark.parametrize(
    ("limits", "text", "what"),
    [
        (TextLimits(characters=20), "p(x) :- q(x), x > 1, x < 3.", "text_characters"),
        (TextLimits(rules=1), "p(x) :- q(x). p(x) :- q(x), x > 1.", "text_rules"),
        (TextLimits(facts=1), ".decl p(x: number)\np(1). p(2).", "text_facts"),
        (TextLimits(literals=1), "p(x) :- q(x), !q(x).", "text_literals"),
        (
            TextLimits(literals=3),
            "p(n) :- n = count : { q(x), x > 1, m = max y : { q(y), y < x }, m > 1 }.",
            "text_literals",
        ),
        (TextLimits(literals=3), "p(count : { q(x), x > 1, x > 2 }) :- q(_).", "text_literals"),
    ],
)
def test_the_size_of_a_text_is_limited(limits: TextLimits, text: str, what: str) -> None:
    service = service_with(text=limits)
    with pytest.raises(OverLimit) as raised:
        service.register(text)
    option = "--max-" + what.replace("_", "-")
    assert what in str(raised.value.detail) and option in str(raised.value.hint)
    service.db.close()


def test_what_may_be_expanded_is_not_small() -> None:
    assert is_small("p(x, n) :- q(x), n = count : { e(x, _) }, (x > 1 ; x < 3).")
    assert not is_small(DISJUNCTIONS)
    assert not is_small(".comp C { } .init a = C")
    assert not is_small("[:find ?x :where " + "(or [?x :a 1] [?x :a 2]) " * 5 + "]")


def test_interests_that_begin_while_another_is_planned_have_numbers_of_their_own() -> None:
    begun: list[Interest] = []

    def wait(future: Future[object]) -> None:
        begun.append(service.interest("small", owner=2))
        future.result(60)

    db = kpg.open()
    service = Service(db, wait=wait)
    service.create_relation("e", {"x": int})
    service.put("e", [(1,), (2,)])
    service.register("small(x) :- e(x), x > 1.")
    service.register("\n".join(f"large(x + {number}) :- e(x)." for number in range(SMALL_PROGRAM_RULES + 1)))
    large = service.interest("large", owner=1)
    assert large.id != begun[0].id
    assert len(large.take()) == SMALL_PROGRAM_RULES + 2 and len(begun[0].take()) == 1
    service.close()
    db.close()


def test_statements_of_sql_are_planned_in_the_turns_of_their_own_session() -> None:
    """Over PostgreSQL's protocol too, where they come without a request."""
    service = service_with()
    assert service.within_sql("one", lambda session: service.planner.client) == "one"
    assert service.planner.client is None
    service.db.close()
