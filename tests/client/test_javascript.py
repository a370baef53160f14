"""The JavaScript client in Node and in Chromium: the same guarantees as in Python."""

import functools
import http.server
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

import kpg
from kpg.server.listener import ListenAddress
from tests.server.cutting_proxy import CuttingProxy
from tests.server.serving import USER, served

HERE = Path(__file__).parent
CLIENT = Path(kpg.__file__).parent / "client" / "kpg.js"
CHROMIUM = shutil.which("chromium")
NODE = shutil.which("node")
BATCHES = 30
LONGEST = 4_000  # bytes of a connection through the proxy
PATIENCE = 120.0


def has_sockets() -> bool:
    """Whether Node is installed, in a version that has WebSocket."""
    code = "process.exit(typeof WebSocket === 'function' ? 0 : 1)"
    command = [str(NODE), "--experimental-websocket", "--eval", code]
    return NODE is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0


needs_node = pytest.mark.skipif(not has_sockets(), reason="no Node with WebSocket is installed")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


def in_node(call: str, *arguments: object) -> dict:
    """Return what a function of following.mjs returns in Node."""
    given = json.dumps(arguments)[1:-1]
    code = (
        f"const kpg = await import('file://{CLIENT}');"
        f"const tests = await import('file://{HERE / 'following.mjs'}');"
        f"console.log(JSON.stringify(await tests.{call}(kpg, {given})));"
    )
    command = [NODE, "--experimental-websocket", "--input-type=module", "--eval", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Files(http.server.SimpleHTTPRequestHandler):
    """Serves the client and its tests to a browser."""

    def do_GET(self) -> None:
        file = CLIENT if self.path == "/kpg.js" else HERE / "following.mjs"
        body = b"<!doctype html><title>test</title>" if self.path == "/" else file.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if self.path == "/" else "text/javascript")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


@contextmanager
def page_server() -> Iterator[str]:
    """The origin of a web page that may use the client."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        threading.Thread(target=functools.partial(server.serve_forever, 0.05), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def browser_page(origin: str):
    """A page in Chromium."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            page = browser.new_page()
            page.goto(f"{origin}/")
            yield page
        finally:
            browser.close()


def in_page(page, call: str, *arguments: object) -> dict:
    """Return what a function of following.mjs returns in a browser."""
    given = json.dumps(arguments)[1:-1]
    return page.evaluate(
        f"async () => (await import('/following.mjs')).{call}(await import('/kpg.js'), {given})",
    )


def with_relation(server) -> None:
    with kpg.connect(server.url, token=USER) as db:
        db.create_relation("n", {"x": int, "text": str}, semantics="raw")


@needs_node
def test_in_node_a_subscriber_over_a_cut_connection_sees_the_answer_at_each_time():
    with served() as server, CuttingProxy(server.url, 3) as cut:
        with_relation(server)
        cut.cut_later(LONGEST)
        assert in_node("follow", cut.url, USER, BATCHES)["resets"] == 0
        assert cut.cuts > 1


@needs_chromium
def test_in_chromium_a_subscriber_over_a_cut_connection_sees_the_answer_at_each_time():
    with page_server() as origin, served(address=ListenAddress(port=0, origins=(origin,))) as server:
        with_relation(server)
        with CuttingProxy(server.url, 4) as cut, browser_page(origin) as page:
            cut.cut_later(LONGEST)
            assert in_page(page, "follow", cut.url, USER, BATCHES)["resets"] == 0
            assert cut.cuts > 1
            assert in_page(page, "roundTrip", server.url, USER) == VALUES


VALUES = {
    "large": str(2**60), "number": "NaN", "bytes": [0, 255], "day": {"date": "2024-05-01"},
    "error": "UndefinedName", "after": "Unreachable",
}  # fmt: skip


@needs_node
def test_values_of_all_kinds_go_and_come_back_in_node():
    with served() as server:
        assert in_node("roundTrip", server.url, USER) == VALUES


def test_a_server_offers_the_client():
    with served() as server:
        with urlopen(f"{server.url.replace('ws', 'http', 1)}/kpg.js") as answer:
            assert answer.headers["Content-Type"].startswith("text/javascript")
            assert answer.read().decode() == CLIENT.read_text()


def test_the_file_is_one_module_with_types():
    text = CLIENT.read_text()
    assert text.startswith("// @ts-check") and "import(" not in text and "\nimport " not in text
    assert max(len(line) for line in text.splitlines()) <= 130
