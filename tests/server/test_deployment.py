"""The files of deploy/: a container, a unit of systemd, settings and a dashboard, checked against the program."""

import configparser
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kpg.cli import make_parser
from kpg.observe.metrics import FAMILIES
from kpg.server.config_file import read_config
from kpg.server.serve_command import add_options
from kpg.server.server_metrics import SERVER_FAMILIES

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", " ", (DEPLOY / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines]


def test_the_container_runs_the_server_as_a_user_with_a_health_check():
    lines = instructions()
    known = {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK"}
    assert {name for name, _ in lines} <= known | {"ENTRYPOINT", "CMD"}
    assert all(
        ":" in rest.split()[0] and not rest.split()[0].endswith(":latest") for name, rest in lines if name == "FROM"
    )
    last = dict(lines)
    assert last["USER"] == "kpg" and last["STOPSIGNAL"] == "SIGTERM" and "/readyz" in last["HEALTHCHECK"]
    command = [*json.loads(last["ENTRYPOINT"]), *json.loads(last["CMD"])]
    options = make_parser().parse_args(command[1:])
    assert command[0] == "kpg" and options.directory == Path("/data") and options.host == "0.0.0.0"
    cache = re.search(r"\bKPG_CACHE_DIR=(\S+)", last["ENV"])
    assert cache is not None and not cache[1].startswith(last["VOLUME"].strip('[]"'))  # a volume would hide the kernels
    made, warmed = (next(n for n, (_, rest) in enumerate(lines) if part in rest) for part in ("install -d", "kpg warm"))
    assert cache[1] in lines[made][1] and made < warmed
    for name, rest in lines:
        if name == "COPY" and "--from" not in rest:
            assert all((ROOT / source).exists() for source in rest.split()[:-1])


def test_the_unit_starts_the_server_and_passes_the_linter_of_systemd(tmp_path):
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(DEPLOY / "kpg.service")
    service = unit["Service"]
    make_parser().parse_args(service["ExecStart"].split()[1:])
    stop, settings = int(service["TimeoutStopSec"]), read_config(DEPLOY / "kpg.toml", add_options)
    assert stop > settings["shutdown_seconds"]
    linter = shutil.which("systemd-analyze")
    if linter is None:
        pytest.skip("systemd-analyze is not installed")
    # The linter wants the program to exist.
    text = (DEPLOY / "kpg.service").read_text().replace("/opt/kpg/bin/kpg serve", "/bin/true serve")
    (tmp_path / "kpg.service").write_text(text)
    result = subprocess.run(
        [linter, "verify", "--man=no", str(tmp_path / "kpg.service")], capture_output=True, text=True, timeout=60
    )
    complaints = [line for line in result.stderr.splitlines() if "kpg.service" in line]
    assert not complaints, complaints


def test_the_dashboard_asks_for_metrics_that_exist():
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    families = {**FAMILIES, **SERVER_FAMILIES}
    known = set(families)
    known |= {f"{name}_bucket" for name, family in families.items() if family.kind == "histogram"}
    asked = {
        name for panel in dashboard["panels"] for target in panel["targets"]
        for name in re.findall(r"kpg_\w+", target["expr"])
    }  # fmt: skip
    assert asked <= known and len(asked) > 12
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
