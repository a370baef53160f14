"""Servers for tests: on a thread, on a free port, with two tokens."""

from dataclasses import replace

from kpg.server.listener import ListenAddress
from kpg.server.running_server import RunningServer, Settings
from kpg.server.session_limits import SessionLimits
from kpg.server.tokens import tokens_of

ADMIN, USER = "the-admin-token", "the-user-token"
TOKENS = tokens_of([("admin", ADMIN), ("user", USER)])
PATIENCE = 60.0  # seconds to wait for a reply, which takes milliseconds on an idle machine
PATHS = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."


def served(limits_: SessionLimits | None = None, **settings) -> RunningServer:
    """A server to be entered."""
    defaults = Settings(address=ListenAddress(port=0), tokens=TOKENS, session_limits=limits_ or SessionLimits())
    return RunningServer(replace(defaults, **settings))
