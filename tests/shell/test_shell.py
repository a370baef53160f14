"""The shell against a server in this process: scripts, the prompt driven by keys, live pictures, a real terminal."""

import fcntl
import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

import kpg
from kpg.cli import main, make_parser
from kpg.client.change_feed import Step
from kpg.columns.schema import Schema
from kpg.server.listener import ListenAddress
from kpg.shell.interpreter import COMMANDS, Interpreter
from kpg.shell.live import LiveTable, catch_interrupt
from kpg.shell.prompt import NameCompleter, converse, open_history
from kpg.shell.shell_command import open_connection
from tests.server.serving import ADMIN, served

ROOT = Path(__file__).parent.parent.parent
PROGRAM = """\
.decl edge(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
+edge(1, 2), edge(2, 3).
"""


@pytest.fixture
def db():
    with served() as server, kpg.connect(server.url, token=ADMIN) as connection:
        yield connection


def shell(db, interactive: bool = False) -> tuple[Interpreter, io.StringIO, io.StringIO]:
    out, err = io.StringIO(), io.StringIO()
    console = Console(file=out, force_terminal=interactive, width=100, height=30)
    return Interpreter(db, console, Console(file=err, width=200), interactive), out, err


def test_a_script_gives_rows_separated_by_tabs(db):
    interpreter, out, err = shell(db)
    assert interpreter.script(PROGRAM + "path(1, x), x > 2?\npath(2, x), y = x + 1?\nedge\n") == 0, err.getvalue()
    assert out.getvalue() == "x\n3\nx\ty\n3\t4\nx\ty\n1\t2\n2\t3\n"


@pytest.mark.parametrize("typed", ["select * from edge order by x;", "SELECT x, y\nFROM edge\nORDER BY 1;"])
def test_sql_reads_relations_of_datalog(db, typed):
    interpreter, out, err = shell(db)
    assert interpreter.script(PROGRAM + typed) == 0, err.getvalue()
    assert out.getvalue() == "x\ty\n1\t2\n2\t3\n"


def test_datalog_reads_tables_and_views_of_sql(db):
    interpreter, out, err = shell(db)
    text = """
        CREATE TABLE pairs (a BIGINT, b BIGINT);
        INSERT INTO pairs VALUES (1, 2), (2, 3);
        CREATE MATERIALIZED VIEW sums AS SELECT a, sum(b)::bigint AS s FROM pairs GROUP BY a;
        chained(x, z) :- pairs(x, y), pairs(y, z).
        chained(1, x)?
        sums(2, x)?
    """
    assert interpreter.script(text) == 0, err.getvalue()
    assert out.getvalue() == "x\tz\n1\t3\na\ts\n2\t3\n"


def test_sql_does_not_change_relations_of_datalog(db):
    interpreter, out, err = shell(db)
    assert interpreter.script(PROGRAM + "insert into edge values (7, 8);") == 1
    assert "edge is not a table of SQL" in err.getvalue()


@pytest.mark.parametrize("word", ["help", "help;", "Help"])
def test_help_without_a_backslash_helps(db, word):
    interpreter, out, err = shell(db)
    assert interpreter.script(word + "\nexit\nno_such_relation\n") == 0, err.getvalue()
    assert "\\explain" in out.getvalue() and interpreter.ended


def test_a_relation_may_be_called_help(db):
    interpreter, out, err = shell(db)
    assert interpreter.script(".decl help(x: number)\n+help(7).\nhelp\n") == 0, err.getvalue()
    assert out.getvalue() == "x\n7\n"


def test_records_are_facts_and_answers(db):
    interpreter, out, err = shell(db)
    script = """
.type L = [h: symbol, t: L] .decl l(x: L)
heads(h) :- l([h, _]).
+l(["a, b", ["c", nil]]), l(nil).
heads
l
"""
    assert interpreter.script(script) == 0, err.getvalue()
    assert out.getvalue() == 'h\na, b\nx\n["a, b", ["c", nil]]\nnil\n'


def test_a_goal_with_constants_asks_for_its_rows_alone(db):
    interpreter, out, err = shell(db)
    assert interpreter.script(PROGRAM + "path(1, x)?\nedge(9, 9).\n-edge(1, 2).\npath(x, y).") == 0, err.getvalue()
    assert out.getvalue() == "x\ty\n1\t2\n1\t3\nx\ty\n2\t3\n9\t9\n"


def test_a_script_stops_at_the_first_error_and_names_its_line(db):
    interpreter, out, err = shell(db)
    assert interpreter.script(PROGRAM + "\nnothing_like_this\nedge\n") == 1
    assert "line 6: UndefinedName" in err.getvalue() and out.getvalue() == ""


def test_watching_in_a_script_gives_signed_lines(db):
    interpreter, out, err = shell(db)
    assert interpreter.script(PROGRAM + "watch edge(x, y)\n\\watch path 1\n") == 0, err.getvalue()
    assert sorted(out.getvalue().splitlines()) == sorted(
        ["+1\t0\t1\t2", "+1\t0\t2\t3", "+1\t0\t1\t2", "+1\t0\t1\t3", "+1\t0\t2\t3"]
    )


def test_commands_answer_as_in_other_shells(db, tmp_path):
    (tmp_path / "more.dl").write_text("+edge(3, 4).\n")
    interpreter, out, err = shell(db)
    said = f"\\d\n\\d path\n\\explain path\n\\timing on\n\\i {tmp_path}/more.dl\n\\time\n\\forget path\n\\h\n\\q\nno"
    assert interpreter.script(PROGRAM + said) == 0, err.getvalue()
    shown = out.getvalue()
    assert "edge\trelation\tx, y\npath\trule\tx, y\n" in shown and "x\tint64" in shown
    assert "stratum" in shown and re.search(r"Time: \d+\.\d ms", shown)
    assert "\n1\n" in shown and all(name in shown for name in COMMANDS)


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("\\nope", "Commands are"), ("+edge(1, x).", "Rows are constants"), ("edge(1)?", "has 2 columns"),
        ("\\limit many", "not a number"), ("\\i no-such-file", "cannot read"), ("path(x :- .", "ParseError"),
        ("+edge(1, 2", "expected"), ('edge("a", 1).', "SchemaMismatch"), ("1 < 2?", "no variable"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_and_the_shell_goes_on(db, statement, says):
    interpreter, out, err = shell(db, interactive=True)
    interpreter.script(PROGRAM)
    assert not interpreter.attempt(statement)
    assert says in err.getvalue()
    assert interpreter.attempt("edge") and "2 rows" in out.getvalue()


def test_the_prompt_takes_statements_over_several_lines_and_remembers_them(db, tmp_path):
    """Typed keys: a rule in two lines, a mistake, Ctrl-C in the middle, a question, the end."""
    interpreter, out, err = shell(db, interactive=True)
    interpreter.script(".decl edge(x: number, y: number)")
    history = tmp_path / "state" / "history"
    with create_pipe_input() as keys:
        asks = PromptSession(
            history=open_history(history), input=keys, output=DummyOutput(), completer=NameCompleter(interpreter)
        )
        rule = "twice(x, z) :-\r  edge(x, y), z = y * 2.\r"
        keys.send_text(f"+edge(1, 2).\r{rule}half done (\x03oops.\rtwice(1, z)?\r\\q\r")
        assert converse(interpreter, None, asks) == 0
    assert "registered twice" in out.getvalue() and "│ 1 │ 4 │" in out.getvalue() and "1 row)" in out.getvalue()
    assert "UndefinedName" in err.getvalue()
    assert "+twice(1, z)?" in history.read_text() and oct(history.stat().st_mode & 0o777) == "0o600"


def test_names_and_commands_are_completed(db):
    interpreter, _, _ = shell(db)
    interpreter.script(PROGRAM)
    names = NameCompleter(interpreter)

    def offered(text: str) -> list[str]:
        return [completion.text for completion in names.get_completions(Document(text), CompleteEvent())]

    assert offered("\\ex") == ["\\explain"] and offered("\\t") == ["\\timing", "\\time"]
    assert offered("pa") == ["path"] and offered("path(x) :- ed") == ["edge"] and offered("wat") == ["watch"]
    assert offered("") == [] and offered("edge(") == []


def test_the_picture_of_an_answer_shows_rows_changes_and_time():
    schema = Schema.of({"x": int})
    picture = LiveTable(("x",), "edge")
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    assert "waiting" in picture.status()
    picture.add(Step(3, (((1,), 2, 1), ((2,), 2, 1)), schema))
    picture.add(Step(4, (((2,), 3, -1), ((7,), 3, 1)), schema))
    console.print(picture.draw(20))
    shown = console.file.getvalue()
    assert "2 rows · last step +1 −1 · complete to time 3" in shown and re.search(r"\+ .*7", shown)
    picture.add(Step(5, (), schema, kpg.DataError("edge has no answer")))
    assert picture.status() == "no answer at time 4: edge has no answer"


def test_an_interrupt_is_not_lost_where_exceptions_are_ignored():
    class Dying:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with catch_interrupt() as interrupted:
        assert not interrupted.is_set()
        Dying()
        assert interrupted.is_set()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_shell_on_a_real_terminal_watches_until_it_is_interrupted(tmp_path):
    """A process on a pty: typed, watched live, Ctrl-C ends the watching and Ctrl-D the shell."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "kpg.cli", "shell", "--history", str(tmp_path / "history")],
        stdin=follower, stdout=follower, stderr=follower, close_fds=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100", "PROMPT_TOOLKIT_NO_CPR": "1"},
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(follower)
    try:
        screen = Screen(leader)
        screen.until("kpg>")
        screen.type(".decl edge(x: number, y: number)\r")
        screen.until("declared")
        screen.type("+edge(41, 42).\r")
        screen.until("1 change at time 0")
        screen.type("watch edge\r")
        screen.until("1 rows · last step +1")
        screen.type("\x03")
        screen.until("kpg>")
        screen.type("edge(41, y)?\r")
        screen.until("(1 row)")
        screen.until("kpg>")  # only now is the terminal the prompt's, which hears Ctrl-D
        screen.type("\x04")
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(leader)


class Screen:
    """What a terminal has shown since it was last asked."""

    def __init__(self, leader: int) -> None:
        self.leader = leader
        self.shown = b""  # as bytes: what is read may end amid a character or a sequence of control

    @property
    def text(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.shown.decode(errors="replace"))

    def type(self, keys: str) -> None:
        os.write(self.leader, keys.encode())

    def until(self, words: str, seconds: float = 120.0) -> None:
        """Wait until this is shown; forget what came before it."""
        end = time.monotonic() + seconds
        while words not in self.text:
            ready, _, _ = select.select([self.leader], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{words!r} did not come; shown: {self.text[-2000:]!r}"
            self.shown += os.read(self.leader, 65536)
        self.shown = self.text.split(words, 1)[1].encode()


def test_one_statement_can_be_given_on_the_command_line(capsys, tmp_path):
    directory = str(tmp_path / "db")
    program = PROGRAM.splitlines()
    assert main(["shell", *(word for line in program for word in ("-c", line)), "-c", "path(1, x)?", directory]) == 0
    assert capsys.readouterr().out == "x\ty\n1\t2\n1\t3\n"


def test_a_server_that_is_not_there_is_said(capsys):
    assert main(["shell", "-c", "edge", "ws://127.0.0.1:1"]) == 1
    assert "cannot reach ws://127.0.0.1:1" in capsys.readouterr().err


def test_a_server_that_is_gone_is_reported_at_once_and_found_again():
    with served() as first:
        port = int(first.url.rsplit(":", 1)[1])
        arguments = make_parser().parse_args(["shell", first.url])
        environment = pytest.MonkeyPatch()
        environment.setenv("KPG_TOKEN", ADMIN)
        connection = open_connection(arguments)
        db = connection.__enter__()
        environment.undo()
        interpreter, out, err = shell(db)
        assert interpreter.attempt("SELECT 1;")
    began = time.monotonic()
    assert not interpreter.attempt("SELECT 2;")
    assert time.monotonic() - began < 20 and "cannot reach" in err.getvalue() and "--wait" in err.getvalue()
    with served(address=ListenAddress(port=port)):
        assert interpreter.attempt("SELECT 3;"), err.getvalue()
        connection.__exit__(None, None, None)
    assert "3" in out.getvalue()
