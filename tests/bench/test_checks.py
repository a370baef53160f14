"""Every experiment on one worker refuses the answers of a db that loses rows."""

import pytest

from kpg.api.embedded_input import EmbeddedInput
from kpg.bench.offenders import Attempt
from kpg.bench.registry import experiments
from kpg.bench.run import Run
from kpg.bench.runner import new_result
from kpg.bench.workers.s09_isolation import is_contained
from kpg.errors import DataError, WrongAnswer
from kpg.service import Service

LOSSY_ROWS = 15  # an insertion of at least this many rows loses a third of them
# Experiments of other families than S; those insert in other processes.
ONE_WORKER = [experiment for experiment in experiments() if experiment.family != "S"]


def fewer(rows):
    """Return two thirds of the rows of a large insertion."""
    if isinstance(rows, dict):
        return {name: fewer(column) for name, column in rows.items()}
    return rows[: len(rows) * 2 // 3] if len(rows) >= LOSSY_ROWS else rows


@pytest.mark.jit
@pytest.mark.parametrize("experiment", ONE_WORKER, ids=lambda experiment: experiment.id)
def test_an_answer_that_is_not_right_is_found_out(experiment, monkeypatch):
    """X1, X2, X3, X4, X5, X6, X7, X8, X9, X10, X11, X12, X13, X14, X15, X16, X17, X18, X19, X20,
    X21, X22, X23, X24, X25, X26, X27, X28, X29, X30."""
    insert, update_at, put = EmbeddedInput.insert, EmbeddedInput.update_at, Service.put
    monkeypatch.setattr(EmbeddedInput, "insert", lambda self, rows: insert(self, fewer(rows)))
    monkeypatch.setattr(EmbeddedInput, "insert_made", lambda self, make, **how: insert(self, fewer(make(0, 1, **how))))
    monkeypatch.setattr(
        EmbeddedInput, "update_at", lambda self, rows, times: update_at(self, fewer(rows), fewer(times))
    )
    monkeypatch.setattr(Service, "put", lambda self, name, rows: put(self, name, fewer(rows)))
    # A lost row that is removed later leaves an answer that cannot be read.
    with pytest.raises((WrongAnswer, DataError)):
        experiment.run(Run(new_result(experiment, experiment.rehearsal_scale, 1), kind="rehearsal"))


@pytest.mark.parametrize(
    ("name", "outcome", "seconds", "contained"),
    [
        ("product", "OverLimit", 0.1, True),
        ("long EDN", "answered", 1.9, True),  # harmless
        ("long EDN", "answered", 2.1, False),
        ("counter", "answered", 0.1, False),  # it has no answer
    ],
)
def test_an_offender_is_refused_or_stopped_or_ends_soon(name, outcome, seconds, contained):
    assert is_contained(name, Attempt(outcome, seconds), 2.0) is contained
