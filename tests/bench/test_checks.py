"""No experiment believes a db that loses rows: each compares its answers with what was computed another way."""

import pytest

from kpg.api.embedded_input import EmbeddedInput
from kpg.bench.catalogue import experiments
from kpg.bench.performing import begun
from kpg.bench.run import Run
from kpg.errors import DataError, WrongAnswer
from kpg.service import Service

ENOUGH = 15  # rows that come at once, of which one in three is lost


def fewer(rows):
    """Some of what should be inserted."""
    if isinstance(rows, dict):
        return {name: fewer(column) for name, column in rows.items()}
    return rows[: len(rows) * 2 // 3] if len(rows) >= ENOUGH else rows


@pytest.mark.jit
@pytest.mark.parametrize("experiment", experiments(), ids=lambda each: each.id)
def test_an_answer_that_is_not_right_is_found_out(experiment, monkeypatch):
    """X7, X8, X9, X10, X11, X12, X13, X14, X15, X16, X17, X18, X19, X20, X21, X22, X23, X24, X25,
    X26, X27, X28, X29, X30."""
    insert, put = EmbeddedInput.insert, Service.put
    monkeypatch.setattr(EmbeddedInput, "insert", lambda self, rows: insert(self, fewer(rows)))
    monkeypatch.setattr(EmbeddedInput, "insert_made", lambda self, make, **how: insert(self, fewer(make(0, 1, **how))))
    monkeypatch.setattr(Service, "put", lambda self, name, rows: put(self, name, fewer(rows)))
    # A row that was lost and is removed later leaves an answer that cannot even be read.
    with pytest.raises((WrongAnswer, DataError)):
        experiment.run(Run(begun(experiment, 0.0005, 1), peers=False))
