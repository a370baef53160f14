"""`kpg sql`: scripts, statements and commands, errors with their position in the file, and the prompt."""

import io
import re

import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import kpg
from kpg.cli import main
from kpg.shell.sql_interpreter import COMMANDS, SqlInterpreter
from kpg.shell.sql_prompt import SqlCompleter, converse


@pytest.fixture
def opened():
    with kpg.open() as db:
        db.sql("CREATE TABLE orders (id INT PRIMARY KEY, who TEXT CHECK (who <> '')); CREATE INDEX ON orders (who)")
        db.sql("INSERT INTO orders VALUES (1, 'ann'); CREATE VIEW names AS SELECT who FROM orders")
        out, errors = io.StringIO(), io.StringIO()
        yield SqlInterpreter(db, out, errors), out, errors


def test_a_script_runs_to_its_first_error(tmp_path, capsys):
    script = tmp_path / "s.sql"
    script.write_text("CREATE TABLE t (a INT);\n-- rows;\nINSERT INTO t VALUES (1);\n\n  SELECT b FROM t;\nSELECT 9;")
    assert main(["sql", str(tmp_path / "db"), "-f", str(script)]) == 1
    out, err = capsys.readouterr()
    assert "INSERT 0 1" in out and "9" not in out
    assert f"{script}:5:10" in err and "42703" in err
    assert main(["sql", str(tmp_path / "db"), "-c", "SELECT count(*) AS n FROM t", "-c", "SELECT 'two'"]) == 0
    assert re.search(r" n\s+-+\s+1\s+\(1 row\)", capsys.readouterr().out)


def test_statements_come_from_standard_input(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT $$a;b$$ AS x;\n\\x\nSELECT 1 AS one;"))
    assert main(["sql"]) == 0
    out = capsys.readouterr().out
    assert "a;b" in out and "-[ RECORD 1 ]-" in out


def test_a_missing_script_is_an_error(tmp_path, capsys):
    assert main(["sql", "-f", str(tmp_path / "none.sql")]) != 0


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("\\d", "orders"), ("\\dt", "orders"), ("\\dv", "names"), ("\\di", "orders_who_idx"),
        ("\\d orders", "Primary key: id"), ("\\d names", "who"), ("\\timing", "Timing is on."),
        ("\\x on", "Expanded display is on."), ("\\?", "\\watch"), ("\\q", ""),
    ],
)  # fmt: skip
def test_commands(opened, command, shown):
    interpreter, out, errors = opened
    assert interpreter.script(command) == 0, errors.getvalue()
    assert shown in out.getvalue()
    assert interpreter.ended == (command == "\\q")


@pytest.mark.parametrize("command", ["\\nothing", "\\d missing", "\\i /none.sql", "\\watch", "\\watch soon"])
def test_wrong_commands_are_refused(opened, command):
    interpreter, _, errors = opened
    assert interpreter.script(command) == 1 and "ERROR" in errors.getvalue()


def test_scripts_include_scripts_and_not_themselves(opened, tmp_path):
    interpreter, out, errors = opened
    path = tmp_path / "loop.sql"
    path.write_text(f"SELECT 'once';\n\\i {path}\n")
    assert interpreter.script(f"\\i {path}") == 1
    assert "include each other" in errors.getvalue() and "once" in out.getvalue()


def test_watch_repeats_the_last_query_until_it_is_interrupted(opened, monkeypatch):
    interpreter, out, _ = opened
    pauses = iter([None, KeyboardInterrupt()])

    def pause(seconds):
        end = next(pauses)
        if end is not None:
            raise end

    monkeypatch.setattr("time.sleep", pause)
    interpreter.script("SELECT 'tick' AS t;\n\\watch 1")
    assert out.getvalue().count("tick") == 3


def test_the_prompt_reads_statements_over_several_lines(opened):
    interpreter, out, errors = opened
    with create_pipe_input() as keys:
        keys.send_text("SELECT id,\r who\rFROM orders;\rSELECT missing;\r\\dt\r\\q\r")
        assert converse(interpreter, session=PromptSession(input=keys, output=DummyOutput())) == 0
    assert "ann" in out.getvalue() and "42703" in errors.getvalue()


def test_names_keywords_and_commands_are_completed(opened):
    completer = SqlCompleter(opened[0])

    def completed(text):
        return {completion.text for completion in completer.get_completions(Document(text), CompleteEvent())}

    assert "orders" in completed("SELECT * FROM ord") and "who" in completed("SELECT wh")
    assert "SELECT" in completed("SEL") and "select" in completed("sel")
    assert completed("\\tim") == {"\\timing"} and set(COMMANDS) >= completed("\\")


def test_help_shows_examples(capsys):
    with pytest.raises(SystemExit):
        main(["sql", "--help"])
    assert "kpg sql data/ -f script.sql" in capsys.readouterr().out
