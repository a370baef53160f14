"""A directory that is opened with another history=: all workers read the past from the same time on."""

from pathlib import Path
from typing import Any

import kpg

HORIZONS = f"{__name__}:horizons"


def horizons(db: Any) -> list[int]:
    """Return the earliest time of each relation, on a worker."""
    return [db.horizon(frozenset({name})).elements[0][0] for name in ("all on one worker", "spread")]


def test_workers_that_compacted_differently_agree_on_the_past(tmp_path: Path) -> None:
    """One worker has all rows of a relation, and compacts them; the other has none, and nothing to compact."""
    with kpg.open(tmp_path / "db", workers=2) as db:
        single, spread = (db.input(name, k=int, v=int) for name in ("all on one worker", "spread"))
        answers = [source.count("k").output(f"{source.name} answer") for source in (single, spread)]
        for epoch in range(12):
            single.insert([(1, epoch)])
            spread.insert([(key, epoch) for key in range(epoch, 30)])
            db.advance()
            if epoch % 5 == 4:
                db.checkpoint()
        assert answers[0].rows() == [(1, 12)]
    with kpg.open(tmp_path / "db", workers=2, history=None) as db:
        single, spread = (db.input(name, k=int, v=int) for name in ("all on one worker", "spread"))
        first, second = db.call_workers(HORIZONS)
        assert first == second and first[0] > 0
        answer = single.count("k").output("count")
        for time in range(db.epoch):
            if time < first[0]:
                try:
                    db.set_reader("too early", time, of=[single.name])
                    raise AssertionError(time)
                except kpg.TimeTooEarly:
                    pass
                continue
            db.set_reader("reader", time, of=[single.name])
            assert answer.rows(as_of=time) == [(1, min(time, 11) + 1)]
        spread.insert([(1, 99)])
        last = db.advance()
        assert answer.rows(as_of=last) == [(1, 12)]
