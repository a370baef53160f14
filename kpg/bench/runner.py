"""Running experiments: one in this process, or several in processes of their own.

    run_experiment(experiment, ...)    rehearse it at a small scale, run it, save JSON and pictures in every case
    run_in_processes(names, ...)       run each in a new process, so that no experiment inherits another's memory

An interrupted run keeps its rows and is marked partial. This module writes nothing to the terminal: its caller does.
"""

from __future__ import annotations

import datetime
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from kpg.bench import machine
from kpg.bench.experiment import Experiment
from kpg.bench.measure import load_kernels, sort_seconds
from kpg.bench.result_table import pictures_of
from kpg.bench.results import SORT_SECONDS, Result
from kpg.bench.run import PATHWAY_ROWS, Kind, Progress, Run, show_nothing
from kpg.errors import InputError, Unavailable

TOUCHED_PER_NEEDED = 2  # the system may give an experiment other pages than those that were touched
INTERRUPT_GRACE_SECONDS = 30.0  # for an interrupted experiment to save its result and its pictures
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


@dataclass(frozen=True, slots=True)
class Options:
    """How to run experiments."""

    scale: float = 1.0
    seed: int = 0
    out: Path = Path("bench-results")
    peers: bool = True
    rehearse: bool = True
    data: Path | None = None
    workers: int | None = None  # the maximum to try; None: as many as the machine has cores
    pathway_rows: int = PATHWAY_ROWS
    profile: bool = False
    count: bool = False


def run_experiment(
    experiment: Experiment,
    options: Options,
    progress: Progress = show_nothing,
    on_end: Callable[[Result], object] = lambda result: None,
) -> Result:
    """Run one experiment in this process and save its result, also if it is interrupted or its answer is wrong.

    `on_end` receives the result in every case. A run that is interrupted, or given a wrong file, before its first row
    leaves an older result in place.
    """
    prepare(experiment, options, progress)
    result = new_result(experiment, options.scale, options.seed)
    result.machine[SORT_SECONDS] = round(sort_seconds(), 4)
    result.data = options.data.name if options.data else ""
    started, stopped = time.monotonic(), False
    try:
        experiment.run(new_run(experiment, result, options, progress, "measurement"))
        result.status, result.reason = "complete", ""
    except KeyboardInterrupt:
        result.reason, stopped = "interrupted; the rows measured before are kept", True
        raise
    except (InputError, Unavailable) as error:
        result.reason, stopped = f"{type(error).__name__}: {error}", True
        raise
    except BaseException as error:
        result.status, result.reason = "failed", f"{type(error).__name__}: {error}"
        raise
    finally:
        result.seconds = time.monotonic() - started
        with uninterrupted():
            if result.rows or not stopped or not (options.out / f"{result.id}.json").exists():
                save_result(result, options.out)
                on_end(result)
    return result


def profile_experiment(experiment: Experiment, options: Options, progress: Progress = show_nothing) -> str:
    """Run one experiment under a profiler and return the profiles of its stopwatches as text; save nothing."""
    from kpg.bench.profiling import profiled

    prepare(experiment, options, progress)
    run = new_run(experiment, new_result(experiment, options.scale, options.seed), options, progress, "profile")
    return profiled(lambda: experiment.run(run))


def count_experiment(experiment: Experiment, options: Options, progress: Progress = show_nothing) -> Result:
    """Count the work of an experiment's tasks on several numbers of workers; save the counts by scale."""
    from kpg.bench.workers.count_command import COUNTED, count_work

    if experiment.id not in COUNTED:
        raise InputError(f"{experiment.id} has no counts", hint=f"--count takes {', '.join(COUNTED)}.")
    prepare(experiment, replace(options, rehearse=False), progress)
    result = new_result(experiment, options.scale, options.seed)
    result.id = f"{experiment.id}-counts-scale-{options.scale:g}"
    count_work(experiment.id, new_run(experiment, result, options, progress, "measurement"))
    result.status, result.reason = "complete", ""
    result.save(options.out)
    return result


def prepare(experiment: Experiment, options: Options, progress: Progress) -> None:
    """Check the options, touch the memory, load the kernels, and rehearse."""
    check_options(experiment, options)
    progress(f"{experiment.id}: first use of memory", 0, 0)
    machine.touch_memory(TOUCHED_PER_NEEDED * experiment.memory(options.scale))
    progress(f"{experiment.id}: kernels", 0, 0)
    load_kernels()
    if options.rehearse and options.scale > experiment.rehearsal_scale:
        progress(f"{experiment.id}: rehearsal", 0, 0)
        experiment.run(Run(new_result(experiment, experiment.rehearsal_scale, options.seed), kind="rehearsal"))
        gc.collect()


def new_run(experiment: Experiment, result: Result, options: Options, progress: Progress, kind: Kind) -> Run:
    """Return the run that an experiment receives."""

    def show(activity: str, done: int, of: int) -> None:
        progress(f"{experiment.id}: {activity}", done, of)

    def save() -> None:
        if kind == "measurement":
            result.save(options.out)

    return Run(
        result,
        kind=kind,
        limits=experiment.limits,
        peers=options.peers,
        pathway_rows=options.pathway_rows,
        progress=show,
        data=options.data,
        workers=options.workers,
        scratch=options.out,
        save=save,
    )


def check_options(experiment: Experiment, options: Options) -> None:
    """Refuse a run that cannot succeed before it creates any data: a wrong file, no place for results, no memory."""
    if options.data is not None:
        if experiment.reads is None:
            raise InputError(f"{experiment.id} reads no file", hint="`kpg bench --help` says which experiments do.")
        if not options.data.exists():
            what = experiment.reads.what
            raise Unavailable(f"there is no file {options.data}", hint=f"{experiment.id} reads {what}.")
        if options.data.is_dir() != bool(experiment.reads.tables):
            raise InputError(f"{experiment.id} reads {experiment.reads.what}", detail=f"--data is {options.data}.")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=options.out):
            pass
    except OSError as error:
        raise Unavailable(f"results cannot be written to {options.out}", detail=str(error)) from error
    machine.check_memory(experiment, options.scale, data=options.data)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore interrupts in this block: a terminal, and an impatient user, send several."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def new_result(experiment: Experiment, scale: float, seed: int) -> Result:
    """Return an empty result of an experiment that starts now."""
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return Result(experiment.id, experiment.title, scale, seed, started, machine.describe(), experiment.paper)


def save_result(result: Result, directory: Path) -> None:
    """Save a result and its pictures, and delete the pictures of an earlier run."""
    for picture in pictures_of(result.id, directory):
        picture.unlink()
    directory.mkdir(parents=True, exist_ok=True)
    try:
        from kpg.bench.plots import draw

        draw(result, directory)
    except ImportError as error:
        result.notes.append(f"no pictures: {error.name} is not installed")
    result.save(directory)


def run_in_processes(names: Sequence[str], options: Options, *, progress: bool) -> list[str]:
    """Run each experiment in a new process; return the names of those that failed. Stop if one is interrupted."""
    failed = []
    for name in names:
        status = wait_for(subprocess.Popen(command(name, options, progress=progress), env={**os.environ, **THREADS}))
        if status == 130:
            raise KeyboardInterrupt
        if status:
            failed.append(name)
    return failed


def wait_for(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process. If this process is interrupted, interrupt the other and let it save its result."""
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(INTERRUPT_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        raise


def command(name: str, options: Options, *, progress: bool) -> list[str]:
    """Return the command line that runs one experiment in a new process."""
    words = [sys.executable, "-m", "kpg.cli", "bench", name, "--here"]
    words += ["--scale", str(options.scale), "--seed", str(options.seed), "--out", str(options.out)]
    words += ["--pathway-rows", str(options.pathway_rows)]
    words += ["--data", str(options.data)] if options.data else []
    words += ["--workers", str(options.workers)] if options.workers else []
    words += ["--profile"] if options.profile else []
    words += ["--count"] if options.count else []
    return words + ([] if options.peers else ["--no-peers"]) + ([] if progress else ["--no-progress"])
