"""Performing experiments: one here, or several apart.

    perform(experiment, ...)    rehearses it small, runs it, saves JSON and pictures whatever happens on the way
    run_apart(names, ...)       each in a process of its own, so that none inherits another's memory

An interrupted run keeps what it found, marked partial. Nothing here writes to the terminal: the caller does.
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
from dataclasses import dataclass
from pathlib import Path

from kpg.bench import machine
from kpg.bench.experiment import Experiment
from kpg.bench.results import Result
from kpg.bench.run import Progress, Run, silent
from kpg.bench.table import pictures_of
from kpg.errors import InputError, Unavailable

REHEARSAL_SCALE = 0.0005
PATIENCE_SECONDS = 30.0  # for an interrupted experiment to end
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


@dataclass(frozen=True, slots=True)
class Options:
    """How experiments are run."""

    scale: float = 1.0
    seed: int = 0
    out: Path = Path("bench-results")
    peers: bool = True
    rehearse: bool = True
    data: Path | None = None
    workers: int | None = None  # the most to be tried; as many as there are cores


def perform(
    experiment: Experiment,
    options: Options,
    progress: Progress = silent,
    ended: Callable[[Result], object] = lambda result: None,
) -> Result:
    """Run one experiment in this process; whatever it found is saved, also if it is interrupted or wrong.

    `ended` is given the result, whatever became of it. One that was interrupted, or given a wrong file, with nothing
    found leaves an older one.
    """
    ready(experiment, options)
    progress(f"{experiment.id}: kernels", 0, 0)
    load_kernels()
    if options.rehearse and options.scale > REHEARSAL_SCALE:
        progress(f"{experiment.id}: rehearsal", 0, 0)
        experiment.run(Run(begun(experiment, REHEARSAL_SCALE, options.seed), peers=False))
        gc.collect()
    result = begun(experiment, options.scale, options.seed)
    result.data = options.data.name if options.data else ""

    def say(what: str, done: int, of: int) -> None:
        progress(f"{experiment.id}: {what}", done, of)

    clock, stopped = time.monotonic(), False
    try:
        experiment.run(
            Run(
                result,
                bars=experiment.bars,
                peers=options.peers,
                progress=say,
                data=options.data,
                workers=options.workers,
                keep=lambda: result.save(options.out),
            )
        )
        result.status, result.reason = "complete", ""
    except KeyboardInterrupt:
        result.reason, stopped = "interrupted; what was measured until then is kept", True
        raise
    except (InputError, Unavailable) as error:
        result.reason, stopped = f"{type(error).__name__}: {error}", True
        raise
    except BaseException as error:
        result.status, result.reason = "failed", f"{type(error).__name__}: {error}"
        raise
    finally:
        result.seconds = time.monotonic() - clock
        with uninterrupted():
            if result.rows or not stopped or not (options.out / f"{result.id}.json").exists():
                keep(result, options.out)
                ended(result)
    return result


def ready(experiment: Experiment, options: Options) -> None:
    """Refuse what could not end well, before anything is made: a file for nobody, no place for results, no memory."""
    if options.data is not None:
        if experiment.reads is None:
            raise InputError(f"{experiment.id} reads no file", hint="`kpg bench --help` says which do.")
        if not options.data.exists():
            what = experiment.reads.what
            raise Unavailable(f"there is no file {options.data}", hint=f"{experiment.id} reads {what}.")
        if options.data.is_dir() != bool(experiment.reads.tables):
            raise InputError(f"{experiment.id} reads {experiment.reads.what}", detail=f"Given was {options.data}.")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=options.out):
            pass
    except OSError as error:
        raise Unavailable(f"results cannot be written to {options.out}", detail=str(error)) from error
    machine.refuse_if_too_large(experiment, options.scale, data=options.data)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """No interrupt gets in here: who is impatient, or interrupts a whole group of processes, sends several."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def begun(experiment: Experiment, scale: float, seed: int) -> Result:
    """A result with nothing in it yet."""
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return Result(experiment.id, experiment.title, scale, seed, started, machine.describe(), experiment.paper)


def keep(result: Result, directory: Path) -> None:
    """Save a result and its pictures; those of an earlier run go."""
    for old in pictures_of(result.id, directory):
        old.unlink()
    directory.mkdir(parents=True, exist_ok=True)
    try:
        from kpg.bench.pictures import draw

        draw(result, directory)
    except ImportError as error:
        result.notes.append(f"no pictures: {error.name} is not installed")
    result.save(directory)


def load_kernels() -> None:
    """Have all kernels in this process, so that no round waits for one to be read from the cache."""
    from kpg.kernels.warm import all_examples, compile_kernel, warm

    warm()
    for kernel, arguments in all_examples():
        compile_kernel(kernel, arguments)


def run_apart(names: Sequence[str], options: Options, *, progress: bool) -> list[str]:
    """Each experiment in a process of its own; the names of those that failed, until one is interrupted."""
    failed = []
    for name in names:
        status = ended(subprocess.Popen(command(name, options, progress=progress), env={**os.environ, **THREADS}))
        if status == 130:
            raise KeyboardInterrupt
        if status:
            failed.append(name)
    return failed


def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process; one that is interrupted with us is given the time to save and draw what it has."""
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        raise


def command(name: str, options: Options, *, progress: bool) -> list[str]:
    """What runs one experiment in a new process."""
    made = [sys.executable, "-m", "kpg.cli", "bench", name, "--scale", str(options.scale), "--seed", str(options.seed)]
    made += ["--out", str(options.out)]
    made += ["--data", str(options.data)] if options.data else []
    made += ["--workers", str(options.workers)] if options.workers else []
    return made + ([] if options.peers else ["--no-peers"]) + ([] if progress else ["--no-progress"])
