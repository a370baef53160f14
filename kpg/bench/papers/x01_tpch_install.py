"""X1: how long does a query of TPC-H take to install while rows stream in, with and without shared arrangements?

Ten queries are active, and arrive and retire in random order (`tpch_sessions`). The clock runs from the statement to
the first answer. Queries on lineitem see rows from their installation on, so their first answer needs few rows; the
five others need all. A last part installs all queries, shared, over a lineitem whose rows are kept.
"""

from __future__ import annotations

from kpg.bench.experiment import Experiment, PaperFigure, at_most
from kpg.bench.measure import percentile_ms
from kpg.bench.run import Run
from kpg.bench.tpch_sessions import TpchSession, columns_of_all, serve
from kpg.bench.tpch_speed import machine_slowdown
from kpg.bench.tpch_stream import TpchStream
from kpg.bench.tpch_views import measured_queries
from kpg.opening import open as open_database
from kpg.sql.tpch.tpch_data import load_tables


def run(run: Run) -> None:
    """Install queries shared and not, then over a kept lineitem."""
    for share in (True, False):
        served = serve(run, share)
        name = "shared" if share else "not shared"
        for lineitem, reads in ((True, "on lineitem"), (False, "on other tables")):
            seconds = served.installs(lineitem=lineitem)
            run.latencies(f"{name}, {reads}", seconds)
            if share:
                figure = f"scaled_install_p50_ms_{reads.replace(' ', '_')}"
                run.figure(figure, percentile_ms(seconds, 50) / machine_slowdown(run))
        for number in sorted(served.installing):
            run.record(f"{name}, Q{number}", p50_ms=percentile_ms(served.installing[number], 50))
    over_kept_lineitem(run)


def over_kept_lineitem(run: Run) -> None:
    """Install each query once where lineitem is kept, so that it reads all rows."""
    tables = load_tables(run.scale, columns_of_all())
    with open_database() as db:
        session = TpchSession(db, TpchStream(tables, columns_of_all()), share=True, keep_lineitem=True)
        session.load(1.0)
        for number in measured_queries(run):
            run.progress("over a kept lineitem", number, 22)
            session.install(number)
            run.record(f"kept lineitem, Q{number}", seconds=session.served.installing[number][-1])
        session.check(run)


EXPERIMENT = Experiment(
    id="X1",
    title="TPC-H: queries arrive and retire, installation",
    paper="Shared Arrangements, figure 1a",
    claim="With shared arrangements most queries install in milliseconds; without, in one to two seconds.",
    size="scale factor 1, ten active queries (the paper: scale factor 10, 32 workers)",
    printed=(
        PaperFigure("shared, queries on lineitem", "milliseconds"),
        PaperFigure("shared, the five others", "100 ms to 1 s"),
        PaperFigure("not shared", "1 to 2 s; Q1 and Q6 unchanged"),
    ),
    memory=lambda scale: int(1.2e10 * scale + 1e9),
    run=run,
    limits=(
        at_most("scaled_install_p50_ms_on_lineitem", 20),
        at_most("scaled_install_p50_ms_on_other_tables", 1_000),
    ),
    rehearsal_scale=0.001,
)
