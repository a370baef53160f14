"""Facts in files: every kind of storage gives back what was written; options, missing files and wrong values."""

import gzip
import io
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import kpg
from kpg.query.datalog import parse
from kpg.query.datalog.io_options import check_options
from kpg.query.datalog.relation_files import read_relation, write_relation
from kpg.query.datalog.run_files import run

COLUMNS = {"number": pa.int64(), "unsigned": pa.uint64(), "float": pa.float64(), "symbol": pa.string()}
PLAIN = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\t\x85\u2028\u2029"), max_size=4)
ANY = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), max_size=4)
KINDS = [
    # (options, strategy of symbols that the format can hold)
    ("", PLAIN),
    ("headers=true", PLAIN),
    ("compress=true", PLAIN),
    ('delimiter=" | ", filename="sub/x.txt"', st.text("abc", max_size=3)),
    ("rfc4180=true", ANY),
    ('rfc4180=true, delimiter=";", headers=true, compress=true', ANY),
    ("IO=sqlite", ANY),
    ('IO=sqlite, dbname="all.db"', ANY),
    ("IO=jsonfile", ANY),
    ("IO=jsonfile, format=object", ANY),
]


@st.composite
def tables(draw, symbols):
    """Draw the types of some columns, and rows, each once."""
    kinds = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=3))
    values = {
        "number": st.integers(-(2**63), 2**63 - 1), "unsigned": st.integers(0, 2**64 - 1),
        "float": st.floats(allow_nan=False).map(lambda value: value + 0.0), "symbol": symbols,
    }  # fmt: skip
    rows = draw(st.lists(st.tuples(*(values[kind] for kind in kinds)), unique=True, max_size=5))
    return kinds, rows


@pytest.mark.parametrize(("options", "symbols"), KINDS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_what_is_written_is_read_back(tmp_path_factory, options, symbols, data):
    kinds, rows = data.draw(tables(symbols))
    folder = tmp_path_factory.mktemp("io")
    columns = ", ".join(f"c{number}: {kind}" for number, kind in enumerate(kinds))
    given_options = options + ("" if "filename" in options or "IO" in options else ', filename="r"')
    given_options = given_options.lstrip(", ")
    program = parse(f".decl r({columns})\n.output r({given_options})\n.input r({given_options})")
    (relation,) = program.relations
    arrays = [pa.array([row[n] for row in rows], COLUMNS[kind]) for n, kind in enumerate(kinds)]
    table = pa.table(arrays, names=[column.name for column in relation.columns])
    for directive in program.directives:
        check_options(directive, relation)
    write_relation(relation, program.directives[0], table, folder, io.StringIO())
    read = [
        tuple(row.values())
        for part in read_relation(relation, program.directives[1], folder)
        for row in part.to_pylist()
    ]
    assert sorted(read) == sorted(rows)


def play(folder: Path, text: str, **options) -> str:
    """Run a program in a directory; return what it prints."""
    (folder / "program.dl").write_text(text)
    out = io.StringIO()
    run(folder / "program.dl", facts=folder, out=folder / "out", stdout=out, **options)
    return out.getvalue()


def test_sqlite_has_the_layout_of_souffle(tmp_path):
    play(
        tmp_path, '.decl r(x: number, s: symbol)\n.output r(IO=sqlite, dbname="x.db")\nr(1, "a"). r(2, "b"). r(3, "a").'
    )
    with closing(sqlite3.connect(tmp_path / "out" / "x.db")) as db:
        assert sorted(db.execute("SELECT x, s FROM r")) == [(1, "a"), (2, "b"), (3, "a")]
        ids = dict(db.execute("SELECT symbol, id FROM __SymbolTable"))
        assert sorted(db.execute('SELECT "0", "1" FROM _r')) == [(1, ids["a"]), (2, ids["b"]), (3, ids["a"])]


def test_several_relations_share_a_database_and_are_replaced(tmp_path):
    text = '.decl r(s: symbol)\n.decl q(s: symbol)\n.output r, q(IO=sqlite, filename="x.db")\nr("a"). q("a"). q("b").'
    play(tmp_path, text)
    play(tmp_path, text.replace('r("a").', 'r("c").'))
    with closing(sqlite3.connect(tmp_path / "out" / "x.db")) as db:
        assert list(db.execute("SELECT s FROM r")) == [("c",)] and len(list(db.execute("SELECT s FROM q"))) == 2


def test_any_table_of_a_database_can_be_read(tmp_path):
    with closing(sqlite3.connect(tmp_path / "db")) as db, db:
        db.execute("CREATE TABLE people (name TEXT, age INTEGER, note TEXT)")
        db.executemany("INSERT INTO people VALUES (?, ?, ?)", [("ann", 7, "x"), (None, 8, None)])
    text = '.decl r(s: symbol, n: number)\n.input r(IO=sqlite, filename="db", name="people")\n.output r(IO=stdout)'
    assert "ann\t7\nn/a\t8\n" in play(tmp_path, text)
    with pytest.raises(kpg.Unavailable, match="has no table or view called 'r'"):
        play(tmp_path, text.replace(', name="people"', ""))
    with pytest.raises(kpg.SchemaMismatch, match="'ann' is not a value of type number"):
        play(tmp_path, text.replace("s: symbol", "s: number"))
    with pytest.raises(kpg.SchemaMismatch, match="people has 3 columns, r has 4"):
        play(tmp_path, text.replace("s: symbol", "s: symbol, t: symbol, u: symbol"))


def test_compressed_facts_are_recognised(tmp_path):
    (tmp_path / "r.facts").write_bytes(gzip.compress(b"1\n2\n"))
    (tmp_path / "q.facts.gz").write_bytes(gzip.compress(b"3\n"))
    text = (
        '.decl r, q(x: number)\n.input r\n.input q(filename="q.facts.gz", compress=true)\n.output r, q(compress=true)'
    )
    play(tmp_path, text)
    assert gzip.decompress((tmp_path / "out" / "r.csv.gz").read_bytes()) == b"1\n2\n"
    assert gzip.decompress((tmp_path / "out" / "q.csv.gz").read_bytes()) == b"3\n"
    (tmp_path / "r.facts").write_bytes(gzip.compress(b"1\nx\n"))
    with pytest.raises(kpg.SchemaMismatch, match="r.facts:2: 'x'"):
        play(tmp_path, text)
    (tmp_path / "r.facts").write_bytes(gzip.compress(b"1\n2\n")[:-9])
    with pytest.raises(kpg.Unavailable, match="cannot read"):
        play(tmp_path, text)


def test_columns_are_chosen_by_number(tmp_path):
    (tmp_path / "r.facts").write_text("a\t1\tx\nb\t2\ty\n")
    text = '.decl r(n: number, s: symbol)\n.input r(columns="1:0")\n.output r(IO=stdout)'
    assert "1\ta\n2\tb\n" in play(tmp_path, text)
    (tmp_path / "r.facts").write_text("a\t1\tx\nb\n")
    with pytest.raises(kpg.SchemaMismatch, match="r.facts:2: values are missing"):
        play(tmp_path, text)


def test_json_of_both_forms(tmp_path):
    (tmp_path / "r.json").write_text(json.dumps([[1, "a"], {"s": "b", "n": 2, "more": 0}]))
    text = ".decl r(n: number, s: symbol)\n.input r(IO=jsonfile)\n.output r(IO=json)\n.output r(IO=json, format=object)"
    assert play(tmp_path, text) == '[[1, "a"],\n[2, "b"]]\n[{"n": 1, "s": "a"},\n{"n": 2, "s": "b"}]\n'
    for wrong, words in {
        "{}": "no array",
        "[": "not JSON",
        "[[1]]": "values are missing",
        '[{"n": 1}]': "for 's'",
    }.items():
        (tmp_path / "r.json").write_text(wrong)
        with pytest.raises(kpg.SchemaMismatch, match=words):
            play(tmp_path, text)


@pytest.mark.parametrize(("content", "rows"), [("", 0), ("\n", 1), ("()\n", 1), ("()", 1), ("\n\n", 1)])
def test_any_line_is_the_row_of_a_relation_without_columns(tmp_path, content, rows):
    (tmp_path / "c.facts").write_text(content)
    assert play(tmp_path, ".decl c()\n.input c\n.printsize c") == f"c\t{rows}\n"


def test_names_and_headers(tmp_path):
    (tmp_path / "in.facts").write_text("1\t2\n")
    text = '.decl r(x: number, y: number)\n.input r(name="in")\n.output r(name="out", headers=true)\n'
    text += '.output r(rfc4180=true, headers=true, filename="r.csv")\n.printsize r(name="size")\n'
    text += '.output r(filename="a.csv", headers=true, attributeNames="left right")'
    assert play(tmp_path, text) == "size\t1\n"
    written = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert written == {"out.csv": "x\ty\n1\t2\n", "r.csv": "x,y\n1,2\n", "a.csv": "left right\n1\t2\n"}


def test_the_terminal_shows_the_names_of_the_columns(tmp_path):
    text = ".decl r(x: number, y: number)\n.output r(IO=sqlite)\nr(1, 2).\n.decl c()\n.output c"
    lines = "---------------\nr\nx\ty\n===============\n1\t2\n===============\n"
    assert play(tmp_path, text, to_stdout=True) == lines + "---------------\nc\n\n===============\n===============\n"


def test_a_missing_file_is_an_error_or_empty(tmp_path):
    text = ".decl r(x: number)\n.input r\n.decl q(x: number)\n.input q(IO=sqlite)\nr(7).\n.printsize r, q"
    with pytest.raises(kpg.Unavailable, match=r"the file .*r\.facts does not exist"):
        play(tmp_path, text)
    assert play(tmp_path, text, missing_facts_ok=True) == "r\t1\nq\t0\n"


def test_several_directives_of_one_relation(tmp_path):
    (tmp_path / "a.facts").write_text("1\n2\n")
    (tmp_path / "b.facts").write_text("2\n3\n")
    text = '.decl r(x: number)\n.input r(filename="a.facts")\n.input r(filename="b.facts")\n.output r\n.printsize r'
    assert play(tmp_path, text) == "r\t3\n" and (tmp_path / "out" / "r.csv").read_text() == "1\n2\n3\n"


def test_facts_come_from_the_standard_input(tmp_path):
    (tmp_path / "p.dl").write_text(
        '.decl r(x: number, y: symbol)\n.input r(IO=stdin, delimiter=",")\n.output r(IO=stdout)'
    )
    command = [sys.executable, "-m", "kpg.cli", "run", str(tmp_path / "p.dl")]
    done = subprocess.run(command, input="1,a\n2,b\n", capture_output=True, text=True, check=True)
    assert "1\ta\n2\tb\n" in done.stdout


WRONG_OPTIONS = [
    (".input r(IO=stdout)", "IO=stdout is not supported for .input"),
    (".output r(IO=stdin)", "IO=stdin is not supported for .output"),
    (".output r(IO=postgres)", "IO=postgres is not supported"),
    (".input r(filname=x)", "no option is called 'filname'"),
    (".input r(IO=sqlite, delimiter=x)", "IO=sqlite has no option called 'delimiter'"),
    ('.input r(delimiter="")', "the delimiter is empty"),
    ('.input r(rfc4180=true, delimiter="\\"")', "the delimiter contains a quote"),
    (".input r(headers=maybe)", "headers=maybe is neither true nor false"),
    ('.input r(columns="1")', "columns=1 does not choose 2 columns"),
    ('.input r(columns="1:1")', "does not choose 2 columns"),
    ('.input r(columns="a:b")', "does not choose 2 columns"),
    (".output r(IO=json, format=rows)", "format=rows is not supported"),
]


@pytest.mark.parametrize(("directive", "words"), WRONG_OPTIONS)
def test_wrong_options_are_refused_with_their_position(tmp_path, directive, words):
    with pytest.raises(kpg.ProgramError) as caught:
        play(tmp_path, f".decl r(x: number, y: number)\n{directive}")
    assert words in str(caught.value) and caught.value.line == 2


@example(rows=[[1, 2]])
@settings(max_examples=10)
@given(rows=st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=2), max_size=4))
def test_changes_end_in_every_kind_of_file(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("changes")
    (folder / "r.facts").write_text("".join(f"{x}\t{y}\n" for x, y in rows))
    (folder / "changes").write_text("begin\nput r 1,2 +1\ncommit\n")
    text = ".decl r(x: number, y: number)\n.input r\n.output r\n.output r(IO=sqlite)\n.output r(IO=jsonfile)\n"
    play(folder, text, changes=folder / "changes")
    expected = sorted({(1, 2), *map(tuple, rows)})
    assert (folder / "out" / "r.csv").read_text() == "".join(f"{x}\t{y}\n" for x, y in expected)
    assert [tuple(row) for row in json.loads((folder / "out" / "r.json").read_text())] == expected
    with closing(sqlite3.connect(folder / "out" / "r.sqlite")) as db:
        assert sorted(db.execute("SELECT * FROM r")) == expected


@pytest.mark.parametrize("options", ["rfc4180=true", "IO=sqlite", "IO=jsonfile", "IO=jsonfile, format=object"])
@settings(max_examples=4, deadline=None)
@given(lists=st.lists(st.lists(st.tuples(st.integers(-9, 9), ANY), max_size=3), min_size=1, max_size=3))
def test_records_are_read_back_from_files_with_quotes(tmp_path_factory, options, lists):
    folder = tmp_path_factory.mktemp("records")
    types = ".type L = [n: number, s: symbol, rest: L]\n.type T = Leaf {} | Node {l: L, s: symbol}\n"
    records = []
    for fields in lists:
        record = "nil"
        for number, text in fields:
            record = f"[{number}, {json.dumps(text, ensure_ascii=False)}, {record}]"
        records.append(record)
    facts = "".join(f'r({record}, $Node({record}, "a, b")).\nr({record}, $Leaf()).\n' for record in records)
    play(folder, f"{types}.decl r(l: L, t: T)\n.output r({options})\n{facts}")
    file = next((folder / "out").iterdir()).name
    text = f'{types}.decl q, r, x(l: L, t: T)\n.input q({options}, filename="out/{file}", name="r")\n{facts}'
    text += "x(l, t) :- q(l, t), !r(l, t); r(l, t), !q(l, t).\n.printsize q, x"
    size = 2 * len(set(records))
    assert play(folder, text) == f"q\t{size}\nx\t0\n"


def test_commas_may_separate_columns_and_the_fields_of_records(tmp_path):
    (tmp_path / "r.facts").write_text("[1, 2],3,$B(4, [5,6])\n[4,5],6,$A\nnil,7,$A\n")
    text = ".type L = [a: number, b: number]\n.type T = A {} | B {n: number, l: L}\n.decl r(x: L, y: number, t: T)\n"
    text += '.input r(delimiter=",")\n.output r(IO=stdout)'
    lines = play(tmp_path, text).splitlines()[3:-1]
    assert sorted(lines) == ["[1, 2]\t3\t$B(4, [5, 6])", "[4, 5]\t6\t$A", "nil\t7\t$A"]


def test_numbers_of_facts_have_a_sign_and_a_base(tmp_path):
    (tmp_path / "r.facts").write_text("0x10\n-0x10\n0b11\n-0b11\n-5\n007\n")
    assert "-16\n-5\n-3\n3\n7\n16\n" in play(tmp_path, ".decl r(x: number)\n.input r\n.output r(IO=stdout)")
