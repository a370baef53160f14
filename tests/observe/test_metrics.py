"""Metrics of a db: they equal its state, and the text is in Prometheus' format."""

import re

import kpg
from kpg.observe.attributes import NAME
from kpg.observe.event_log import EventLog
from kpg.observe.metrics import FAMILIES, Metric, as_prometheus, snapshot

LINE = re.compile(r'^[a-z_]+(\{([a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+\})? -?[0-9][0-9.e+-]*$')


def value(metrics: list[Metric], name: str, **labels: str) -> float:
    """The only sample with a name and labels."""
    (sample,) = [metric for metric in metrics if metric.name == name and labels.items() <= dict(metric.labels).items()]
    return sample.value


def test_figures_are_what_the_db_holds():
    with kpg.open(memory_limit=1 << 40) as db:
        edges = db.input("edges", src=int, dst=int)
        edges.arrange("src").count("src").output("degree")
        edges.insert([(1, 2), (1, 3), (2, 3)])
        before = value(snapshot(db), "kpg_steps_total")
        db.advance()
        metrics = snapshot(db)
        assert value(metrics, "kpg_arrangement_rows", arrangement="edges by src") == 3
        assert value(metrics, "kpg_arrangement_readers", arrangement="edges by src") == 1
        assert (
            value(metrics, "kpg_epoch") == 1
            and value(metrics, "kpg_inputs") == 1
            and value(metrics, "kpg_outputs") == 1
        )
        assert value(metrics, "kpg_steps_total") > before
        assert value(metrics, "kpg_resident_bytes") > 1e6 and value(metrics, "kpg_memory_limit_bytes") == 1 << 40


def test_the_time_of_a_dataflow_is_measured_while_a_log_is_open():
    with kpg.open() as db:
        db.input("r", k=int).count("k").output("counts")
        names = {metric.name for metric in snapshot(db)}
        with EventLog(db, [NAME]):
            db["r"].insert([(1,)])
            db.advance()
            metrics = snapshot(db)
        assert "kpg_dataflow_seconds_total" not in names
        assert 0 < value(metrics, "kpg_dataflow_seconds_total", dataflow="counts") < 60
        assert value(metrics, "kpg_dataflow_steps_total", dataflow="counts") > 0


def test_a_db_on_disk_has_metrics_of_its_log(tmp_path):
    with kpg.open(tmp_path / "db") as db:
        db.input("r", k=int).insert([(1,)])
        db.advance()
        assert value(snapshot(db), "kpg_log_bytes") > 0 and value(snapshot(db), "kpg_log_trouble") == 0


def test_a_db_in_the_background_has_the_same_figures():
    with kpg.open(background=True) as db:
        db.input("r", k=int).insert([(1,)])
        db.advance()
        assert value(snapshot(db), "kpg_inputs") == 1


def test_no_two_lines_have_the_same_labels_and_every_line_is_well_formed():
    with kpg.open() as db:
        odd = db.input('odd "name"\\\n', k=int)
        for _ in range(2):  # alike in name
            odd.filter(kpg.col("k") > 1).arrange("k")
        odd.insert([(1,), (2,)])
        db.advance()
        text = as_prometheus(snapshot(db))
    lines = text.splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert all(LINE.match(line) for line in samples), samples
    keys = [line.rpartition(" ")[0] for line in samples]
    assert len(keys) == len(set(keys))
    assert text.endswith("\n") and '\\"name\\"\\\\\\n' in text


def test_each_name_is_explained_once_before_its_figures():
    with kpg.open() as db:
        lines = as_prometheus(snapshot(db)).splitlines()
    seen: set[str] = set()
    for index, line in enumerate(lines):
        if line.startswith("# TYPE"):
            _, _, name, kind = line.split()
            assert name not in seen and kind == FAMILIES[name].kind and lines[index - 1].startswith(f"# HELP {name} ")
            seen.add(name)
        elif not line.startswith("#"):
            assert re.split(r"[{ ]", line)[0] in seen


def test_counters_are_named_as_prometheus_wants_them():
    assert all(name.endswith("_total") == (family.kind == "counter") for name, family in FAMILIES.items())
