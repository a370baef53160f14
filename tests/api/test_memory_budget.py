"""The memory limit holds while a computation works, and its error names the relation that grew."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import kpg
from kpg.api import free_memory
from kpg.api.memory import resident_bytes
from kpg.api.relation_growth import relation_sizes
from kpg.columns.memory_budget import LARGE_BYTES, budget, reserve
from kpg.columns.output_buffer import allocate_block
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile

MEGABYTE = 1 << 20
INPUTS = """
    .decl a(x: number)
    .input a
    .decl e(x: number, y: number)
    .input e
    .decl grows(x: number, y: number)
    .printsize grows
"""
EXPLOSIONS = {
    "a product": "grows(x, y) :- a(x), a(y).",
    "a recursion that is one operator": "grows(x, y) :- e(x, y). grows(x, z) :- grows(x, y), e(y, z).",
    "a loop": "grows(x, y) :- e(x, y). grows(x, z) :- grows(x, y), e(y, z), !a(0 - z).",
    "ranges": "grows(x, y) :- a(x), y = range(0, 100000).",
    "a recursion without end": "grows(0, 0). grows(x + 1, y) :- grows(x, y). grows(x, y + 1) :- grows(x, y), y < x.",
}


def write_facts(folder, n=20_000):
    numbers = np.random.default_rng(0).integers(0, n, (2 * n, 2))
    (folder / "a.facts").write_text("\n".join(map(str, range(1, n))) + "\n")
    (folder / "e.facts").write_text("\n".join(f"{x}\t{y}" for x, y in numbers.tolist()) + "\n")


SCRIPT = r"""
import contextlib, io, json, re, sys
from pathlib import Path
from kpg.api.memory import resident_bytes
from kpg.cli import main
main(["run", sys.argv[2], "-F", sys.argv[1] + "/small", "-D", sys.argv[1]])  # loads machine code
for program in sys.argv[2:]:
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of what came before, such as compiling
    limit, errors = resident_bytes() + 150_000_000, io.StringIO()
    with contextlib.redirect_stderr(errors):
        status = main(["run", program, "-F", sys.argv[1], "-D", sys.argv[1], "--memory-limit", str(limit)])
    peak = 1024 * int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])
    print(json.dumps([program, status, limit, peak, errors.getvalue()]))
"""


def test_programs_that_derive_too_much_end_with_the_relation_that_grew(tmp_path):
    """In a process of its own: the peak of its resident memory stays near the limit."""
    write_facts(tmp_path)
    (tmp_path / "small").mkdir()
    write_facts(tmp_path / "small", n=1_000)
    for name, rules in EXPLOSIONS.items():
        (tmp_path / name).write_text(INPUTS + rules)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), *[str(tmp_path / name) for name in EXPLOSIONS]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(results) == len(EXPLOSIONS), done.stderr
    for name, status, limit, peak, error in results:
        assert status == 1, name
        assert f"over the memory limit of {limit:,} bytes" in error, name
        assert re.search(r"grows with [\d,]+ rows|It was computing grows", error), error
        assert "--memory-limit" in error and "Traceback" not in error, name
        assert peak < limit + 200_000_000, name


def test_large_allocations_ask_the_budget_before_they_are_made():
    asked = []
    with budget(asked.append):
        reserve(LARGE_BYTES - 1)
        reserve(LARGE_BYTES)
        reserve()
        allocate_block(2, LARGE_BYTES // 8)
        with budget(None):
            reserve(LARGE_BYTES)
    reserve(LARGE_BYTES)
    assert asked == [LARGE_BYTES, 0, 2 * LARGE_BYTES]


def test_a_program_over_its_limit_fails_and_the_db_continues():
    text = INPUTS.replace(".printsize", ".output") + EXPLOSIONS["a recursion that is one operator"]
    with kpg.open(memory_limit=resident_bytes() + 300 * MEGABYTE) as db:
        installed = InstalledProgram(db, compile(parse(text)))
        installed.inputs["e"].insert(np.random.default_rng(0).integers(0, 20_000, (60_000, 2)))
        db.advance()
        with pytest.raises(kpg.OverBudget, match=r"grows with [\d,]+ rows"):
            installed.rows("grows")
        rows = installed.inputs["a"].count().output("rows")
        installed.inputs["a"].insert([(1,)])
        db.advance()
        assert rows.rows() == [(1,)]


def test_rows_that_only_the_answer_of_a_relation_keeps_count_for_it():
    with kpg.open() as db:
        installed = InstalledProgram(db, compile(parse(INPUTS + EXPLOSIONS["a product"])))
        installed.inputs["a"].insert([(x,) for x in range(20)])
        db.advance()
        assert len(installed.rows("grows")) == 400
        assert relation_sizes(db.worker.dataflows.values())["grows"].rows == 400


def test_control_groups_limit_the_free_memory(tmp_path):
    """Version 2, nested, with cached files; version 1; no limit at all."""
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    write_group(inner, "memory", max="max", current="70", cached=0)
    write_group(tmp_path / "outer", "memory", max="100", current="80", cached=30)
    own = tmp_path / "own"
    own.write_text("0::/outer/inner\n")
    assert list(free_memory.group_bytes(tmp_path, own)) == [50]
    old = tmp_path / "memory" / "service"
    old.mkdir(parents=True)
    (old / "memory.limit_in_bytes").write_text("1000\n")
    (old / "memory.usage_in_bytes").write_text("400\n")
    (old / "memory.stat").write_text("cache 1\ntotal_inactive_file 10\n")
    own.write_text("5:cpu:/x\n4:cpuset,memory:/service\n")
    assert list(free_memory.group_bytes(tmp_path, own)) == [610]
    own.write_text("0::/elsewhere\n")
    assert list(free_memory.group_bytes(tmp_path, own)) == []


def write_group(folder, prefix, max, current, cached):
    (folder / f"{prefix}.max").write_text(f"{max}\n")
    (folder / f"{prefix}.current").write_text(f"{current}\n")
    (folder / f"{prefix}.stat").write_text(f"anon 5\ninactive_file {cached}\n")


def test_the_default_limit_leaves_a_quarter_of_the_free_memory():
    free = free_memory.free_bytes()
    if free is None or not os.path.exists("/proc/meminfo"):
        pytest.skip("the system does not say how much memory is free")
    limit = free_memory.default_limit()
    assert limit is not None and resident_bytes() < limit < resident_bytes() + free
