"""S9: how much longer does a client of a server wait for its change while another client does its worst?

A server process in memory, on one worker. One client inserts a row and waits until the answer that counts such rows
has changed. Another process, with 100 idle tenants, attacks meanwhile (`kpg/bench/offenders.py`): it asks for a product
of 12,000 by 12,000 rows, a recursion that does not end, or texts that are hard to parse, again as soon as the last
attempt has ended, with limits so high that a product runs for ten seconds. The client goes on until two attempts have
ended, so what their end costs counts, too. Wall time, against the same client's
undisturbed latency right before. Then every attack is tried once with the default limits. The bars hold as written
where `np.sort` of 10M int64 takes 0.16 s, grow in proportion on slower machines and stay on faster ones.
"""

from __future__ import annotations

import time

import kpg
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.measure import percentile_ms
from kpg.bench.offenders import ATTACKS, ENDLESS, Attempt, OffenderProcess, attempt, prepare
from kpg.bench.run import Run
from kpg.bench.served_process import MeasuringClient, served
from kpg.bench.tpch_speed import machine_slowdown

ROWS = 12_000  # of each side of the product
TENANTS = 100
ROUNDS = 500  # at least
MOST_SECONDS = 60.0  # beside one offender, if its attempts do not end
LEAST_ATTEMPTS = 2  # that end meanwhile
WARM_ROUNDS = 100
REHEARSAL_OPTIONS = ("--max-rounds", "10")  # recursions that do not end take no time
ADDED_P50_MS, ADDED_P99_MS = 3.0, 15.0
STOPPED_SECONDS = 2.0
CASES = {
    "a product": ("product",),
    "a diverging tenant among 100": ("diverging tenant",),
    "a counter": ("counter",),
    "texts that are hard to parse": ("long EDN", "parentheses", "long programs"),
}


def run(run: Run) -> None:
    """Measure each case, then each attack with the default limits."""
    options = REHEARSAL_OPTIONS if run.kind == "rehearsal" else ()
    with served(*options) as url, kpg.connect(url) as db:
        prepare(db, run.size(ROWS, least=100))
        client = MeasuringClient(db)
        client.latencies(run.fixed_rounds(WARM_ROUNDS))
        tenants, raised = run.size(TENANTS, least=3), run.kind == "measurement"
        with OffenderProcess(url, tenants=tenants, scale=run.scale, raised=raised) as offender:
            for number, (case, names) in enumerate(CASES.items()):
                run.progress(case, number, len(CASES))
                measure(run, client, offender, case, names)
        client.check(run)
        for name in ATTACKS:
            with kpg.connect(url) as wild:
                stop(run, wild, name)


def measure(run: Run, client: MeasuringClient, offender: OffenderProcess, case: str, names: tuple[str, ...]) -> None:
    """Measure the client alone, then beside an offender."""
    rounds = run.fixed_rounds(ROUNDS)
    undisturbed = client.latencies(rounds)
    until, ended = time.monotonic() + MOST_SECONDS, offender.ended + LEAST_ATTEMPTS * len(names)
    offender.begin(*names)
    disturbed = client.latencies(rounds)
    while offender.ended < ended and time.monotonic() < until:
        disturbed += client.latencies(run.fixed_rounds(WARM_ROUNDS))
    attempts = offender.end()
    p50_ms, p99_ms = percentile_ms(undisturbed, 50), percentile_ms(undisturbed, 99)
    slowdown = machine_slowdown(run)
    run.curve(f"beside {case}", disturbed)
    run.curve(f"before {case}", undisturbed)
    run.report(
        f"insert to change, beside {case}",
        f"p50 at most {ADDED_P50_MS:g} ms, p99 at most {ADDED_P99_MS:g} ms above the undisturbed {p50_ms:.3g} "
        f"and {p99_ms:.3g}",
        [
            at_most("p50_ms", p50_ms + ADDED_P50_MS * slowdown, on_any_machine=True),
            at_most("p99_ms", p99_ms + ADDED_P99_MS * slowdown, on_any_machine=True),
        ],
        p50_ms=percentile_ms(disturbed, 50), p99_ms=percentile_ms(disturbed, 99),
        undisturbed_p50_ms=p50_ms, undisturbed_p99_ms=p99_ms,
        rounds=len(disturbed), attempts=len(attempts), longest_attempt_seconds=max(one.seconds for one in attempts),
    )  # fmt: skip


def stop(run: Run, db: kpg.client.connection.Connection, name: str) -> None:
    """Try an attack with the default limits: the server refuses or stops it, or it is harmless and ends as soon."""
    last = attempt(db, name, run.scale)
    limit = STOPPED_SECONDS * machine_slowdown(run)
    if run.scale >= 1:  # small products are no offence
        run.check(is_contained(name, last, limit), f"{name} is refused, stopped or soon over")
    run.report(
        f"{name}, default limits", f"ends within {STOPPED_SECONDS:g} s",
        [at_most("seconds", limit, on_any_machine=True)],
        seconds=last.seconds, outcome=last.outcome,
    )  # fmt: skip


def is_contained(name: str, last: Attempt, max_seconds: float) -> bool:
    """Return whether an attempt was refused or stopped, or had an answer and got it soon."""
    return last.outcome != "answered" or (name not in ENDLESS and last.seconds <= max_seconds)


EXPERIMENT = engine_experiment(
    "S9",
    "latency of a client beside offenders",
    "a product of 12,000 by 12,000 rows, 100 tenants, texts of 400,000 characters; 500 inserts or more each",
    lambda scale: int(2e9 * scale + 6e8),
    run,
)
