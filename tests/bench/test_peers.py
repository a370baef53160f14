"""On small graphs the answers of peers are those of plain sets."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from kpg.bench import reference_answers
from kpg.bench.data.graphs import gnp, grid
from kpg.bench.interactive_queries import CLASSES, expected_answers
from kpg.bench.peers import datalog_engines, graph_stores, postgres
from kpg.bench.run import PeerAbsent

QUESTIONS = [(peer, question) for peer, (_, asked) in datalog_engines.BOUND.items() for question in asked]


@pytest.mark.parametrize(("peer", "question"), QUESTIONS)
def test_a_question_with_an_argument_is_answered_in_full(peer, question):
    pytest.importorskip({"cozo": "pycozo"}.get(peer, peer))
    program, column = question
    edges = grid(3) if program == "sg" else gnp(15, 0.12, 2)
    nodes = int(edges.max()) + 1
    if program == "sg":
        codes = reference_answers.same_generation(edges, nodes)
        pairs = {(code // nodes, code % nodes) for code in codes.tolist()}
    else:
        codes = reference_answers.closure(edges, edges, nodes)
        pairs = {(code % nodes, code // nodes) for code in codes.tolist()}
    turned = {(b, a) for a, b in pairs} if column == "y" else pairs
    arguments = list(range(nodes))
    answers, seconds = datalog_engines.BOUND[peer][0](question, edges, arguments)
    assert answers == [{b for a, b in turned if a == argument} for argument in arguments] and len(seconds) == nodes


@pytest.mark.parametrize("ask", [graph_stores.ask_postgres, graph_stores.ask_ladybug])
def test_the_four_classes_of_questions_are_answered_by_databases(ask):
    edges = np.concatenate([gnp(30, 0.08, 1), [[3, 4], [3, 4]]])  # one edge twice
    pairs = np.random.default_rng(2).integers(0, 30, (12, 2))
    pairs[0] = 3, 3
    try:
        asked = ask(edges, 3 * np.arange(30), dict.fromkeys(CLASSES, pairs))
    except (ImportError, PeerAbsent) as absent:
        pytest.skip(str(absent))
    expected = expected_answers(edges, dict.fromkeys(CLASSES, pairs.tolist()))
    expected["four-path"] = [row for a, b in pairs.tolist() for row in expected["four-path"] if row[:2] == (a, b)]
    assert {name: sorted(rows) for name, rows in asked.rows.items()} == {
        name: sorted(rows) for name, rows in expected.items()
    }
    assert asked.version


def test_postgresql_stops_when_the_process_that_started_it_is_killed():
    code = """
import os, sys
from kpg.bench.peers.postgres import SMALL_SETTINGS, server
with server(SMALL_SETTINGS) as address:
    print(address.directory, flush=True)
    os.kill(os.getpid(), 9)
"""
    try:
        postgres.installed_binaries()
    except PeerAbsent as absent:
        pytest.skip(str(absent))
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False)
    directory = Path(done.stdout.strip())
    deadline = time.monotonic() + 60
    while directory.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert done.returncode == -9 and not directory.exists()
