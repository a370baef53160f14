"""The first hour with kpg: cells that run twice, forgotten calls, and schemas in the forms that users have.

Everything here holds for a db in this process, in the background, and on several workers.
"""

import copy
import gc
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kpg
from kpg.api.background import Background
from kpg.api.pending_warning import PendingRowsWarning
from kpg.columns.schema import Schema


@pytest.fixture(scope="module", params=["embedded", "background", "workers"])
def db(request: pytest.FixtureRequest) -> Iterator[Any]:
    options = {"embedded": {}, "background": {"background": True}, "workers": {"workers": 2}}[request.param]
    with kpg.open(**options) as opened:
        yield opened


@pytest.fixture
def edges(db: Any) -> Iterator[Any]:
    source = db.input("edges", src=int, dst=int)
    yield source
    for name in list(db.outputs):
        db.outputs[name].release()
    gc.collect()
    db.advance()  # which releases the outputs without a handle
    source.drop()


# Cells that run twice


def test_a_cell_that_declares_and_installs_can_run_twice(db: Any, edges: Any) -> None:
    answers = []
    for number in range(2):
        again = db.input("edges", exist_ok=True, src=int, dst=int)
        again.insert([(1, number)])
        answers.append(again.count("src").output("degrees", replace=True))
        db.advance()
        assert answers[-1].rows() == [(1, number + 1)]
    with pytest.raises(kpg.Closed):
        answers[0].rows()
    assert len(list(db.outputs)) == 1 and db["degrees"].rows() == [(1, 2)]


def test_a_second_declaration_must_agree(db: Any, edges: Any) -> None:
    assert db.input("edges", exist_ok=True).schema == edges.schema
    assert db.input("edges", {"src": int, "dst": int}, exist_ok=True).name == "edges"
    with pytest.raises(kpg.InUse, match="exist_ok"):
        db.input("edges", src=int, dst=int)
    with pytest.raises(kpg.SchemaMismatch, match="other columns"):
        db.input("edges", src=int, dst=str, exist_ok=True)
    with pytest.raises(kpg.SchemaMismatch, match="another key"):
        db.input("edges", src=int, dst=int, key="src", exist_ok=True)
    edges.output("taken")
    with pytest.raises(kpg.InUse, match="replace=True"):
        edges.output("taken")


def test_an_output_without_a_name_ends_with_its_handle(db: Any, edges: Any) -> None:
    edges.insert([(1, 2)])
    db.advance()
    before = len(list(db.outputs))
    for _ in range(3):
        assert edges.output().rows() == [(1, 2)]
        gc.collect()
        assert len(list(db.outputs)) == before
    kept = edges.output()
    db.advance()
    assert len(list(db.outputs)) == before + 1 and kept.rows() == [(1, 2)]
    kept.release()
    edges.keep_by("src")
    db.advance()
    assert "output 0" not in db.explain()


def test_an_output_without_a_name_stays_while_a_function_listens(db: Any, edges: Any) -> None:
    heard: list[Any] = []
    stop = edges.output().on_change(lambda changes: heard.extend(changes))
    gc.collect()
    db.advance()
    edges.insert([(1, 2)])
    db.advance()
    assert [row for row, _, _ in heard] == [(1, 2)]
    stop()
    del stop
    gc.collect()
    db.advance()
    assert not list(db.outputs)


def test_a_listener_hears_the_unread_changes_and_then_the_later_ones(db: Any, edges: Any) -> None:
    edges.insert([(1, 2)])
    db.advance()
    answer = edges.output("answer")
    heard: list[Any] = []
    stop = answer.on_change(lambda changes: heard.append([(row, diff) for row, _, diff in changes]))
    assert heard == []
    edges.insert([(2, 3)])
    db.advance()
    assert [sorted(part) for part in heard] == [[((1, 2), 1), ((2, 3), 1)]]
    stop()


# Forgotten calls


@pytest.mark.parametrize("name", ["rows", "snapshot", "to_pandas", "changes", "on_change", "head"])
def test_a_collection_says_that_it_must_be_installed_to_be_read(db: Any, edges: Any, name: str) -> None:
    for collection in (edges, edges.count("src")):
        with pytest.raises(AttributeError, match=r"install it first, as in answer = collection.output\(\)"):
            getattr(collection, name)
        assert not hasattr(collection, "no_such_name")


def test_reading_without_an_advance_warns(db: Any, edges: Any) -> None:
    other = db.input("other", n=int)
    answer = edges.count("src").output("answer")
    db.advance()
    other.insert([(1,)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert answer.rows() == []  # it does not depend on the pending rows
    edges.insert([(1, 2)])
    with pytest.warns(PendingRowsWarning, match=r"pending rows of edges: call db.advance\(\)") as caught:
        assert answer.rows() == []
    assert len(caught) == 1
    if not isinstance(db, Background):  # there the caller is on another thread
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert answer.rows(as_of=db.epoch - 1) == []  # a time that the caller names is no accident
        db.advance()
        assert answer.rows() == [(1, 1)]
    other.drop()


# Columns in the forms that users have

FORMS = {
    "dict": {"n": int, "t": str | None},
    "schema": Schema.of({"n": int, "t": str | None}),
    "arrow": pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("t", pa.string())]),
    "table": pa.table({"n": [1, 2], "t": ["a", None]}),
    "batch": pa.RecordBatch.from_pydict({"n": [1, 2], "t": ["a", None]}),
    "lists": {"n": [1, 2], "t": ["a", None]},
    "arrays": {"n": np.array([1, 2]), "t": pa.array(["a", None])},
    "pandas": pd.DataFrame({"n": [1, 2], "t": ["a", None]}),
    "polars": pl.DataFrame({"n": [1, 2], "t": ["a", None]}),
}


@pytest.mark.parametrize("form", FORMS)
def test_columns_can_be_given_in_many_forms(db: Any, form: str) -> None:
    source = db.input(f"from {form}", FORMS[form])
    assert source.schema == Schema.of({"n": int, "t": str | None})
    if form in ("table", "batch", "lists", "pandas", "polars"):
        source.insert(FORMS[form])
        db.advance()
        assert sorted(source.output().rows()) == [(1, "a"), (2, None)]
    source.drop()


@pytest.mark.parametrize("form", [3, "text", [1, 2], np.zeros((2, 2)), object(), pd.DataFrame({"n": [None, None]})])
def test_other_values_are_refused_with_an_error_of_kpg(db: Any, form: Any) -> None:
    with pytest.raises(kpg.KpgError) as refused:
        db.input("refused", form)
    assert "src=int" in str(refused.value)
    with pytest.raises(kpg.SchemaMismatch, match="twice"):
        db.input("refused", {"n": int}, n=int)


def test_columns_may_be_called_like_options(db: Any) -> None:
    kv = db.input("kv", value=int, key=str, exist_ok=bool)
    assert kv.schema.names == ("value", "key", "exist_ok") and not kv.key
    keyed = db.input("keyed", {"key": str, "value": int}, key="key")
    keyed.upsert([("a", 1)])
    keyed.upsert([("a", 2)])
    db.advance()
    assert keyed.output().rows() == [("a", 2)] and keyed.key == ("key",)
    kv.drop(), keyed.drop()


# Copies, and what an editor shows


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_objects_of_a_db_refuse_copies(db: Any, edges: Any, duplicate: Any) -> None:
    index = edges.arrange("src")
    for live in (db, edges, edges.count("src"), edges.output("answer", replace=True), index):
        with pytest.raises(kpg.InputError, match="cannot be copied or pickled"):
            duplicate(live)
    index.release()


def test_dir_of_an_input_shows_the_contract_only() -> None:
    for options in ({}, {"workers": 2}):
        with kpg.open(**options) as db:  # type: ignore[call-overload]
            names = dir(db.input("edges", src=int, dst=int))
        assert {"insert", "remove", "upsert", "schema", "name", "key", "output", "join", "select", "close"} <= set(
            names
        )
        internals = {"take_lanes", "replace_lanes", "base", "flush", "present", "node", "latest", "on_disk", "label"}
        assert not internals & set(names) and not [name for name in names if name.startswith("_")]
