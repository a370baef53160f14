"""The C preprocessor: what programs mean after it, and where their errors are."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import kpg
from kpg.query.datalog import parse, parse_file
from kpg.query.ir.compile import compile
from kpg.testing.datalog_oracle import evaluate

DECLARED = ".decl e(x: number, y: number)\n.decl p(x: number)\n.output p\ne(1, 2). e(2, 3). e(7, 7).\n"

PROGRAMS = [
    ("#define N 2\np(x) :- e(x, N).", {1}),
    ("#define EDGE(a, b) e(a, b)\np(x) :- EDGE(x, 3).", {2}),
    ("#define REL(n) r##n\n.decl REL(1)(x: number)\nREL(1)(5).\np(x) :- r1(x).", {5}),
    ('#define NAME(n) #n\n.decl s(x: symbol)\ns(NAME(abc)).\np(strlen(x)) :- s(x).', {3}),
    ("#ifdef N\np(1).\n#else\np(2).\n#endif", {2}),
    ("#define N\n#ifdef N\np(1).\n#elif 1\np(3).\n#else\np(2).\n#endif", {1}),
    ("#ifndef N\np(1).\n#endif\n#undef N\n#if defined(N) || 1 > 2\np(2).\n#endif", {1}),
    ("#if 2 * 3 == 6 && !defined(X)\np(6).\n#endif", {6}),
    ("#define TWO(a) p(a). \\\n  p(a + 1).\nTWO(4)", {4, 5}),
    ("// #define N 1\n/* #if\n#else */ p(1).\n.decl N(x: number)\nN(3).\np(x) :- N(x).", {1, 3}),
    ("#if RAM_DOMAIN_SIZE == 64\np(RAM_DOMAIN_SIZE).\n#endif", {64}),
    ("#pragma once\n#warning careful\np(__LINE__).", {7}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), PROGRAMS)
def test_programs_mean_what_they_mean_after_the_preprocessor(text, expected):
    program = parse(DECLARED + text)
    compile(program)
    assert evaluate(program, {})["p"] == {(value,) for value in expected}


WRONG = [
    # (what is added to the declarations, line, column, words of the message)
    ("#define BAD q(x)\np(x) :- e(x, _), BAD.", 6, 18, "no relation is called 'q'"),
    ("#define F(a) e(a, _)\np(x) :- F(x), F(x), q(x).", 6, 21, "no relation is called 'q'"),
    ("#define F(a) e(a)\np(x) :- e(x, _), F(x).", 6, 18, "e has 2 columns, not 1"),
    ("#if 1\np(x) :-\n  /* over\n lines */ q(x).\n#endif", 8, 11, "no relation is called 'q'"),
    ("p(x) :- \\\n  q(x).\n#define A", 6, 3, "no relation is called 'q'"),
    ("#define A 1\n\tp(x) :- e(x, A)\n", 6, 17, "expected"),
    ("#if 1\np(1).", 5, 1, "unterminated #if"),
    ("p(1).\n#endif", 6, 1, "misplaced #endif"),
    ("#ifdef", 5, 1, "#ifdef is malformed"),
    ("#error not today", 5, 1, "#error not today"),
    ('#include "nowhere.dl"', 5, 1, "cannot include 'nowhere.dl'"),
    ("#frobnicate", 5, 1, "no preprocessor directive is called #frobnicate"),
    ("#define F(a, b) a\np(F(1)).", 6, 3, "requires 2 arguments but was passed 1"),
]


@pytest.mark.parametrize(("text", "line", "column", "words"), WRONG)
def test_errors_point_into_the_original_text(text, line, column, words):
    with pytest.raises(kpg.ProgramError, match=re.escape(words)) as caught:
        compile(parse(DECLARED + text))
    assert (caught.value.line, caught.value.column) == (line, column)


def test_errors_in_included_files_name_the_file(tmp_path: Path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "rules.dl").write_text("#define Q q(x)\n\np(x) :- e(x, _), Q.\n")
    (tmp_path / "main.dl").write_text(DECLARED + '#include "lib/rules.dl"\n')
    with pytest.raises(kpg.UndefinedName, match=r"lib.rules\.dl:3:18: no relation is called 'q'"):
        compile(parse_file(tmp_path / "main.dl"))


def test_files_are_found_beside_the_including_file_and_in_the_given_directories(tmp_path: Path):
    for folder, text in {"a": "e(10, 10).\n", "b": '.include "beside.dl"\n'}.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}.dl").write_text(text)
    (tmp_path / "b" / "beside.dl").write_text("e(11, 11).\n")
    (tmp_path / "main.dl").write_text(DECLARED + '#include "a.dl"\n.include "b.dl"\np(x) :- e(x, x), x > LOW.\n')
    program = parse_file(tmp_path / "main.dl", [tmp_path / "a", tmp_path / "b"], {"LOW": "7"})
    assert evaluate(program, {})["p"] == {(10,), (11,)}


def test_a_file_is_included_again_unless_it_says_once(tmp_path: Path):
    (tmp_path / "each.dl").write_text("p(N).\n")
    (tmp_path / "guarded.dl").write_text("#ifndef G\n#define G\n.decl g(x: number)\n#endif\n")
    (tmp_path / "once.dl").write_text(".once\n.decl o(x: number)\n")
    twice = '#define N 1\n#include "each.dl"\n#undef N\n#define N 2\n#include "each.dl"\n'
    twice += (
        '#include "guarded.dl"\n#include "guarded.dl"\n#include "once.dl"\n#include "once.dl"\n.include "once.dl"\n'
    )
    (tmp_path / "main.dl").write_text(DECLARED + twice)
    program = parse_file(tmp_path / "main.dl")
    compile(program)
    assert evaluate(program, {})["p"] == {(1,), (2,)}


def test_a_file_that_includes_itself_is_stopped(tmp_path: Path):
    (tmp_path / "main.dl").write_text('#include "main.dl"\n')
    with pytest.raises(kpg.ParseError, match="more than 64 deep"):
        parse_file(tmp_path / "main.dl")


def test_a_component_may_include_its_body(tmp_path: Path):
    (tmp_path / "body.dl").write_text(".decl r(x: number)\nr(1).\n")
    text = '.comp C { .include "body.dl" }\n.init a = C\n.init b = C\n.decl p(x: number)\np(x) :- a.r(x), b.r(x).\n'
    (tmp_path / "main.dl").write_text(text)
    assert evaluate(parse_file(tmp_path / "main.dl"), {})["p"] == {(1,)}


@pytest.mark.parametrize("line", ["#define A 1", '#include "x.dl"', '.include "x.dl"', "#if 1", "#error"])
def test_a_text_of_a_client_opens_no_file_and_has_no_macros(line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.dl").write_text("p(1).")
    with pytest.raises(kpg.ParseError, match="not accepted here|not included here"):
        parse(f"{DECLARED}{line}\n", includes=False)


@st.composite
def macro_texts(draw):
    """Draw a text of definitions, conditions and uses of macros."""
    lines = []
    for _ in range(draw(st.integers(1, 8))):
        name = draw(st.sampled_from("ABC"))
        line = draw(st.sampled_from([
            f"#define {name} {draw(st.sampled_from(['1', '2', 'A', 'B + 1', '(C)']))}",
            f"#define {name}2(x, y) x + {name} + y", f"#undef {name}", f"p({name}).", f"p({name}2(A, B)).",
            f"#if defined({name})\np(8).\n#else\np(9).\n#endif", f"#ifdef {name}\np({name}).\n#endif",
        ]))  # fmt: skip
        lines.append(line)
    return "\n".join(lines) + "\n"


@pytest.mark.skipif(shutil.which("cpp") is None, reason="there is no cpp")
@settings(max_examples=25, deadline=None)
@given(macro_texts())
def test_the_text_is_that_of_cpp(text):
    from kpg.query.datalog.preprocessor import expand
    from kpg.query.source_text import SourceText

    note(text)
    expected = subprocess.run(["cpp", "-P"], input=text, capture_output=True, text=True, check=True).stdout
    expanded, _ = expand(SourceText("program", text), {}, ())
    assert "".join(expanded.text.split()) == "".join(expected.split())  # they differ in white space
