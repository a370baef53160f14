"""Workers load all kernels before a measurement."""

from pathlib import Path

from kpg.bench import papers, warm_workers


def test_a_worker_loads_every_kernel_and_returns_no_rows(monkeypatch):
    loaded = []
    monkeypatch.setattr(warm_workers, "load", lambda: (loaded.append(name) or name for name in ("sort", "merge")))
    assert len(warm_workers.load_share(0, 2)["k"]) == 0 and loaded == ["sort", "merge"]


def test_workers_load_kernels_before_the_db_is_yielded(monkeypatch):
    calls = []

    class Relation:
        def insert_made(self, function):
            calls.append(function)

        def drop(self):
            calls.append("dropped")

    class Opened:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            calls.append("closed")

        def input(self, name, **columns):
            return Relation()

        def advance(self):
            calls.append("advanced")

    monkeypatch.setattr(warm_workers, "open_database", lambda **options: Opened())
    with warm_workers.warm_database(2):
        assert calls == [warm_workers.load_share, "advanced", "dropped"]
    with warm_workers.warm_database(1):
        assert calls[3:] == ["closed"]


def test_no_experiment_measures_workers_that_were_not_warmed():
    texts = [path.read_text() for path in Path(papers.__file__).parent.glob("x*.py")]
    assert any("warm_database(workers)" in text for text in texts)
    assert not any("open_database(workers" in text for text in texts)
