"""User-defined functors: in rules, under removals, on workers, on the command line and in a service."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.cli import main
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.service import Change, Service
from tests.query import functors

PROGRAM = """
.functor double(x: number): number
.functor describe(symbol, float, unsigned): symbol stateful
.functor impure(x: number): number
.decl e(x: number)
.input e
.decl d(x: number, s: symbol)
.output d
d(y, @describe(cat("n", to_string(x)), to_float(y), 18446744073709551615)) :- e(x), y = @double(x) + @double(1).
.decl i(x: number, y: number)
.output i
i(x, @impure(x)) :- e(x).
.decl j(x: number)
.output j
j(y) :- e(x), e(z), x < z, y = @impure(x + z).
"""
ALL = {"double": functors.double, "describe": functors.describe, "impure": functors.impure}


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=4))
def test_a_removal_takes_exactly_what_the_insertion_brought(steps):
    """Also of a function that is not pure, as long as the db is open."""
    with kpg.open() as db, InstalledProgram(db, compile(parse(PROGRAM)), functors=ALL) as installed:
        present: set[int] = set()
        seen: dict[int, int] = {}
        for rows in steps:
            installed.inputs["e"].insert([(x,) for x in rows - present])
            installed.inputs["e"].remove([(x,) for x in present - rows])
            db.advance()
            present = rows
            expected = [(2 * x + 2, f"n{x}:{2.0 * x + 2}:18446744073709551615") for x in rows]
            assert sorted(installed.rows("d")) == sorted(expected)
            answers = dict(installed.rows("i"))
            assert answers.keys() == rows
            assert all(seen.setdefault(x, y) == y and y // 1000 >= x for x, y in answers.items())
            assert len(installed.rows("j")) == len({x + z for x in rows for z in rows if x < z})


def test_functors_run_on_all_workers():
    with kpg.open(workers=2) as db, InstalledProgram(db, compile(parse(PROGRAM)), functors=ALL) as installed:
        installed.inputs["e"].insert([(x,) for x in range(20)])
        db.advance()
        installed.inputs["e"].remove([(x,) for x in range(5, 20)])
        db.advance()
        assert sorted(x for x, _ in installed.rows("d")) == [2, 4, 6, 8, 10]
        assert len(installed.rows("j")) == 7


def test_records_are_passed_as_text():
    text = """
        .type L = [h: number, t: L]
        .functor tail(l: L): L
        .decl l(x: L)
        .output l
        l([1, [2, [3, nil]]]).
        l(@tail(x)) :- l(x).
    """
    with kpg.open() as db, InstalledProgram(db, compile(parse(text)), functors={"tail": functors.tail}) as installed:
        installed.insert_facts()
        db.advance()
        assert sorted(installed.rows("l")) == [("[1, [2, [3, nil]]]",), ("[2, [3, nil]]",), ("[3, nil]",), ("nil",)]


def test_an_exception_is_an_error_of_its_row():
    text = ".functor picky(x: number): number\n.decl e(x: number)\n.decl p(x: number)\n.output p\np(@picky(x)) :- e(x)."
    with kpg.open() as db, InstalledProgram(db, compile(parse(text)), functors={"picky": functors.picky}) as installed:
        installed.inputs["e"].insert([(1,), (-2,)])
        db.advance()
        with pytest.raises(kpg.DataError, match="-2 is negative"):
            installed.rows("p")
        installed.inputs["e"].remove([(-2,)])
        db.advance()
        assert installed.rows("p") == [(1,)]


@pytest.mark.parametrize(("rule", "words"), [
    ('d(1, "a") :- e(x), @double("a") = x.', ["symbol", "number"]),
    ("d(1, @double(1)).", ["number", "symbol"]),
    ("d(@double(1, 2), _) :- e(_).", ["@double takes 1 arguments, not 2", ".functor double(number): number"]),
    ("d(@dble(1), _) :- e(_).", ["no functor @dble is declared", "Did you mean '@double'?"]),
    (".functor double(x: number): number", ["declared twice"]),
])  # fmt: skip
def test_wrong_calls_are_refused(rule, words):
    with pytest.raises(kpg.ProgramError) as raised:
        compile(parse(PROGRAM + rule))
    assert all(word in str(raised.value) for word in words), str(raised.value)


def test_a_functor_without_a_function_is_refused():
    with kpg.open() as db, pytest.raises(kpg.UndefinedName, match="functor @describe has no function"):
        InstalledProgram(db, compile(parse(PROGRAM)), functors={"double": functors.double, "impure": functors.impure})


def test_the_command_line_takes_a_module(tmp_path: Path, capsys):
    (tmp_path / "my_functors.py").write_text("def triple(x):\n    return 3 * x\n")
    (tmp_path / "p.dl").write_text(
        ".functor triple(x: number): number\n.decl p(x: number)\n.output p\np(@triple(7)).\n"
    )
    assert main(["run", str(tmp_path / "p.dl"), "-D", "-", "--functors", str(tmp_path / "my_functors.py")]) == 0
    assert "\n21\n" in capsys.readouterr().out
    assert main(["run", str(tmp_path / "p.dl"), "-D", "-", "--functors", str(tmp_path / "none.py")]) != 0
    assert "cannot read functors" in capsys.readouterr().err


def test_a_service_calls_only_its_own_functions():
    with kpg.open() as db:
        service = Service(db, functors={"double": functors.double})
        service.create_relation("e", {"x": int})
        with pytest.raises(kpg.UndefinedName, match="functor @describe has no function here"):
            service.register('.functor describe(symbol): symbol\np(@describe("a")) :- e(_).')
        service.register(".functor double(x: number): number\n.decl p(x: number)\np(@double(x)) :- e(x).")
        service.transact([Change("e", (4,))])
        assert service.query("p").to_pylist() == [{"x": 8}]
