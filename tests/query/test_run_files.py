"""`kpg run`: files in, files out, as Soufflé does; and commit by commit under changes."""

import argparse
import io
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg import cli, terminal
from kpg.query.datalog import parse, run_watch
from kpg.query.datalog.run_files import run
from kpg.testing.datalog_oracle import evaluate

PATH = """
.decl edge(x: symbol, y: symbol)
.input edge
.decl path(x: symbol, y: symbol)
.output path
.printsize path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "facts").mkdir()
    (tmp_path / "program.dl").write_text(PATH)
    (tmp_path / "facts" / "edge.facts").write_text("c\tb\nb\ta\nc\tb\n")
    return tmp_path


def play(folder: Path, **options) -> str:
    """Run the program in a directory; return its output."""
    out = io.StringIO()
    run(folder / "program.dl", facts=folder / "facts", out=folder / "out", stdout=out, **options)
    return out.getvalue()


def written(folder: Path, name: str) -> str:
    return (folder / "out" / name).read_text()


def test_outputs_are_files_sorted_by_first_occurrence_of_symbols(folder):
    assert play(folder) == "path\t3\n"
    assert written(folder, "path.csv") == "c\tb\nc\ta\nb\ta\n"


def test_changes_are_written_commit_by_commit(folder):
    lines = ["begin", "put edge a,c +1", "commit", "# nothing", "", "begin", "put edge c,b -1", "abort"]
    lines += ["begin", "put edge c,b -1", 'put edge "b",a -1', "commit", "begin", "commit"]
    (folder / "changes.txt").write_text("\n".join(lines))
    play(folder, changes=folder / "changes.txt")
    assert written(folder, "path_t1.csv") == "a\ta\t+1\na\tb\t+1\na\tc\t+1\nb\tb\t+1\nb\tc\t+1\nc\tc\t+1\n"
    gone = [line for line in written(folder, "path_t2.csv").splitlines() if line.endswith("-1")]
    assert len(gone) == 8 and written(folder, "path.csv") == "a\tc\n"
    assert written(folder, "path_t3.csv") == ""


@pytest.mark.parametrize(("line", "kind", "words"), [
    ("put edge a,b +1", kpg.InputError, "changes:1: put outside a transaction"),
    ("commit", kpg.InputError, "changes:1: commit outside"),
    ("begin\nbegin", kpg.InputError, "changes:2: begin inside a transaction"),
    ("begin\nput edge a +1", kpg.SchemaMismatch, "changes:2: edge has 2 columns, not 1"),
    ("begin\nput edge a,b", kpg.SchemaMismatch, "changes:2: a change ends with"),
    ("begin\nput edge a,b +2", kpg.SchemaMismatch, "changes:2: a change ends with"),
    ("begin\nput egde a,b +1", kpg.UndefinedName, "no input relation is called 'egde'"),
    ("begin\nput path a,b +1", kpg.UndefinedName, "no input relation is called 'path'"),
    ("begin\npt edge a,b +1", kpg.InputError, "changes:2: 'pt' is not a command"),
    ("begin\nput edge a,b +1", kpg.InputError, "the last transaction is not committed"),
    ('begin\nput edge "a,b +1\ncommit', kpg.SchemaMismatch, "changes:2: cannot read"),
])  # fmt: skip
def test_wrong_changes_are_refused_with_their_line(folder, line, kind, words):
    (folder / "changes").write_text(line)
    with pytest.raises(kind) as caught:
        play(folder, changes=folder / "changes")
    assert words in str(caught.value)


def test_options_of_input_and_output(tmp_path):
    (tmp_path / "facts").mkdir()
    (tmp_path / "program.dl").write_text("""
    .decl a(x: number, y: float, z: symbol)
    .input a(IO=file, filename="a.csv", delimiter=",", headers=true)
    .decl b(x: number) .input b(delimiter="; ", filename="b.txt")
    .decl c() .input c
    .decl q(x: symbol) .input q(rfc4180=true, delimiter=",")
    .output a(filename="made/a.tsv", headers="true") .output b(IO=stdout) .output c .output q(rfc4180=true)
    .output b(IO=stdoutprintsize)
    """)
    (tmp_path / "facts" / "a.csv").write_text("x,y,z\n1,2.5,one\r\n-3,4,\n")
    (tmp_path / "facts" / "b.txt").write_text("0x10; more\n7; \n")
    (tmp_path / "facts" / "c.facts").write_text("()\n")
    (tmp_path / "facts" / "q.facts").write_text('"a, ""b"""\nplain\n')
    assert play(tmp_path) == "---------------\nb\n===============\n7\n16\n===============\nb\t2\n"
    assert written(tmp_path, "made/a.tsv") == "x\ty\tz\n-3\t4\t\n1\t2.5\tone\n"
    assert written(tmp_path, "c.csv") == "()\n" and written(tmp_path, "q.csv") == '"a, ""b"""\n"plain"\n'


@pytest.mark.parametrize(("rows", "words"), [
    ("1\tx\n", ["a.facts:1: 'x' is not a value of type number", "column y"]),
    ("1\t2\n\n", ["a.facts:2: values are missing"]),
    ("1\t2\n3\n", ["a.facts:2: values are missing", "Found 1 of 2"]),
    ("1\t99999999999999999999\n", ["a.facts:1: '99999999999999999999' is not a value"]),
    ("1\t1_0\n", ["a.facts:1: '1_0'"]),
    (b"\xff\xfe\t1\n", ["is not UTF-8"]),
])  # fmt: skip
def test_wrong_facts_are_refused_with_their_line(tmp_path, rows, words):
    (tmp_path / "facts").mkdir()
    (tmp_path / "program.dl").write_text(".decl a(x: number, y: number)\n.input a\n.output a")
    (tmp_path / "facts" / "a.facts").write_bytes(rows if isinstance(rows, bytes) else rows.encode())
    with pytest.raises(kpg.SchemaMismatch) as caught:
        play(tmp_path)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_missing_file_and_unknown_options_are_refused(tmp_path):
    (tmp_path / "program.dl").write_text(".decl a(x: number)\n.input a\n.output a")
    with pytest.raises(kpg.Unavailable, match="does not exist"):
        play(tmp_path)
    (tmp_path / "program.dl").write_text('.decl a(x: number)\n.output a(filname="x")')
    with pytest.raises(kpg.ProgramError, match="no option is called 'filname'"):
        play(tmp_path)


def test_extra_columns_of_a_fact_file_are_ignored(tmp_path):
    (tmp_path / "facts").mkdir()
    (tmp_path / "program.dl").write_text(".decl a(x: number)\n.input a\n.output a\na(9). a(1).")
    (tmp_path / "facts" / "a.facts").write_text("1\tx\n2\n2\n")
    play(tmp_path)
    assert written(tmp_path, "a.csv") == "1\n2\n9\n"


PUTS = st.tuples(st.integers(0, 4), st.integers(0, 4), st.sampled_from([1, -1]))


@settings(max_examples=15)
@given(st.lists(st.lists(PUTS, max_size=4), max_size=4))
def test_files_of_changes_add_up_to_the_answer(tmp_path_factory, commits):
    """The first answer plus all changes equals the answer from scratch, and the final file holds it."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "facts").mkdir()
    (folder / "program.dl").write_text(PATH)
    (folder / "facts" / "edge.facts").write_text("0\t1\n1\t2\n")
    lines = [["begin", *(f"put edge {a},{b} {d:+}" for a, b, d in puts), "commit"] for puts in commits]
    (folder / "changes").write_text("\n".join(sum(lines, [])))
    counts = {("0", "1"): 1, ("1", "2"): 1}
    state = {("0", "1"), ("0", "2"), ("1", "2")}
    play(folder, changes=folder / "changes")
    for number, puts in enumerate(commits, 1):
        for a, b, d in puts:
            counts[str(a), str(b)] = counts.get((str(a), str(b)), 0) + d
        for line in written(folder, f"path_t{number}.csv").splitlines():
            *row, sign = line.split("\t")
            assert (tuple(row) in state) == (sign == "-1")
            state ^= {tuple(row)}
        present = {row for row, count in counts.items() if count > 0}
        assert state == evaluate(parse(PATH), {"edge": present})["path"]
    assert {tuple(line.split("\t")) for line in written(folder, "path.csv").splitlines()} == state


# --- against DuckDB ---------------------------------------------------------------------------------------------------

TC = "with recursive t(x, y) as (select * from e union select t.x, e.y from t join e on t.y = e.x) select * from t"
SG = """with recursive s(x, y) as (
    select a.y, b.y from e a join e b on a.x = b.x where a.y != b.y
    union select a.y, b.y from s join e a on a.x = s.x join e b on b.x = s.y) select * from s"""
RULES = {
    "tc": ("tc(x, y) :- e(x, y). tc(x, z) :- tc(x, y), e(y, z).", TC),
    "sg": ("sg(x, y) :- e(p, x), e(p, y), x != y. sg(x, y) :- e(a, x), sg(a, b), e(b, y).", SG),
}


@pytest.mark.parametrize("name", sorted(RULES))
def test_recursion_agrees_with_recursive_sql(name):
    from kpg.query.installed_program import InstalledProgram
    from kpg.query.ir.compile import compile

    rules, sql = RULES[name]
    text = f".decl e(x: number, y: number)\n.input e\n.decl {name}(x: number, y: number)\n.output {name}\n{rules}"
    edges = np.unique(np.random.default_rng(7).integers(0, 60, (110, 2)), axis=0)
    with kpg.open() as db, InstalledProgram(db, compile(parse(text))) as installed, duckdb.connect() as other:
        for part in (edges[:80], edges[80:]):
            installed.inputs["e"].insert(part)
            db.advance()
        installed.inputs["e"].remove(edges[:20])
        db.advance()
        other.execute("create table e (x bigint, y bigint)")
        other.executemany("insert into e values (?, ?)", edges[20:].tolist())
        assert installed.rows(name) == sorted(other.execute(sql).fetchall())


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_runs_and_explains(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert cli.main(["run", "program.dl", "-F", "facts", "-D", "-", "--no-progress"]) == 0
    assert capsys.readouterr().out.startswith("---------------\npath\nx\ty\n===============\nc\tb\n")
    assert cli.main(["explain", "program.dl"]) == 0
    shown = capsys.readouterr().out
    assert "stratum 2: path (recursive)" in shown and "index of edge by x, shared by 1" in shown


def test_errors_of_the_command_are_short_and_exit_with_status_1(folder, capsys):
    (folder / "program.dl").write_text(".decl p(x: number)\n.output p\np(x) :- q(x).")
    assert cli.main(["run", str(folder / "program.dl")]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("kpg: ") and ":3:9: no relation is called 'q'" in shown and "Traceback" not in shown
    assert cli.main(["run", str(folder / "nowhere.dl")]) == 1
    assert "cannot read" in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "words"), [
    (["--help"], ["kpg run path.dl", "explain", "--version"]),
    (["run", "--help"], [".decl edge", "put edge 3,4 +1", "--changes", "-F"]),
    ([], ["commands"]),
    (["--version"], ["kpg "]),
])  # fmt: skip
def test_the_help_text_contains_examples(arguments, words, capsys):
    try:
        cli.main(arguments)
    except SystemExit as end:
        assert end.code == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in words)


def test_the_command_works_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "kpg.cli", "--version"], capture_output=True, text=True, check=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.stdout.startswith("kpg ")


def test_the_progress_bar_appears_only_for_long_operations(monkeypatch):
    monkeypatch.setattr(terminal, "BAR_DELAY_SECONDS", 0)
    with terminal.ProgressBar(enabled=True) as bar:
        bar.show("reading", 1, 2)
        bar.show("committing", 1, 0)
        assert bar.progress is not None
    with terminal.ProgressBar(enabled=False) as quiet:
        quiet.show("reading", 1, 2)
        assert quiet.progress is None


def test_only_the_question_is_answered(folder):
    """A6.8: `--query` computes only what its arguments need; the file has the rows of the arguments."""
    play(folder, queries=['path("b", _)'])
    assert written(folder, "path.csv") == "b\ta\n"
    play(folder, queries=['path(_, "a")', 'path(x, "b")'], insert_only=True)
    assert sorted(written(folder, "path.csv").splitlines()) == ["b\ta", "c\ta", "c\tb"]
    play(folder, queries=['edge("c", _)'])
    assert written(folder, "edge.csv") == "c\tb\n"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["pth(_, 1)"], "Did you mean 'path'"),
        (["path(1, _)"], "1 in path.1, _. is not a symbol"),
        (["path(_)"], "path has 2 columns"),
        (['path("a", _)', 'path(_, "a")'], "constants in different columns"),
        (['path("a", _), edge(_, _)'], "a question is one atom"),
        (["path(1 + 1, _)"], "is a constant, a variable or _"),
        (['path("a"'], "question:1"),
    ],
)
def test_wrong_questions_are_refused(folder, texts, message):
    with pytest.raises(kpg.ProgramError, match=message):
        play(folder, queries=texts)


def test_explain_shows_how_a_question_is_computed(folder, capsys):
    assert cli.main(["explain", str(folder / "program.dl"), "--query", 'path("a", _)', "--insert-only"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("path is computed for its arguments (x), by demand\n")
    assert "one operator, insert-only: keeps no state for removals" in shown


SHARES = """
.decl a(x: number, y: number)
.input a
.decl good(x: number)
.output good
.decl share(x: number, z: number)
.output share
good(x) :- a(x, _).
share(x, x / y) :- a(x, y).
"""


def test_outputs_that_do_not_depend_on_a_failure_are_written(tmp_path):
    (tmp_path / "facts").mkdir()
    (tmp_path / "program.dl").write_text(SHARES)
    (tmp_path / "facts" / "a.facts").write_text("8\t0\n9\t3\n")
    with pytest.raises(kpg.DataError, match=r"share has no answer at 0: .*program.dl:9:10: division by zero in x / y"):
        play(tmp_path)
    assert written(tmp_path, "good.csv") == "8\n9\n" and not (tmp_path / "out" / "share.csv").exists()


def test_changes_are_written_again_when_the_failing_row_is_gone(tmp_path):
    (tmp_path / "facts").mkdir()
    (tmp_path / "program.dl").write_text(SHARES)
    (tmp_path / "facts" / "a.facts").write_text("9\t3\n")
    changes = tmp_path / "changes.txt"
    changes.write_text(
        "begin\nput a 8,0 +1\nput a 8,2 +1\ncommit\nbegin\nput a 7,7 +1\ncommit\nbegin\nput a 8,0 -1\ncommit\n"
    )
    with pytest.raises(kpg.DataError) as caught:
        play(tmp_path, changes=changes)
    assert "share has no answer at 1" in caught.value.what and "no changes for commit 1, 2." in caught.value.detail
    assert [(tmp_path / "out" / f"share_t{number}.csv").exists() for number in (1, 2, 3)] == [False, False, True]
    assert written(tmp_path, "share_t3.csv") == "7\t1\t+1\n8\t4\t+1\n"
    assert written(tmp_path, "share.csv") == "7\t1\n8\t4\n9\t3\n"
    assert written(tmp_path, "good_t1.csv") == "8\t+1\n" and written(tmp_path, "good_t3.csv") == ""


def test_progress_shows_the_rows_of_relations_while_a_run_works(tmp_path, monkeypatch):
    monkeypatch.setattr(run_watch, "REPORT_SECONDS", 0)
    (tmp_path / "edge.facts").write_text("".join(f"{n}\t{n + 1}\n" for n in range(800)))
    (tmp_path / "p.dl").write_text(
        ".decl edge(x: number, y: number)\n.input edge\n.decl path(x: number, y: number)\n.printsize path\n"
        "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z), x < z."
    )
    shown = []
    run(tmp_path / "p.dl", facts=tmp_path, out=tmp_path, progress=lambda what, done, of: shown.append(what))
    assert "reading edge: 800 rows" in shown and "loading edge: 800 rows" in shown
    rows = [int(match[1].replace(",", "")) for what in shown if (match := re.match(r"computing path: ([\d,]+) ", what))]
    assert rows and rows == sorted(rows) and 0 < rows[-1] <= 320_400


@pytest.mark.parametrize(("text", "size"), [("1000", 1000), ("2G", 2 << 30), ("1.5k", 1536), ("none", 0)])
def test_memory_limits_have_units(text, size):
    assert terminal.memory_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "-1", "0", "many", "1e400G"])
def test_other_memory_limits_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="must be a number of bytes"):
        terminal.memory_size(text)
