"""Every method that a client has is on the page of the server."""

import re
from pathlib import Path

import pytest

from kpg.client.async_connection import AsyncConnection, AsyncSubscription
from kpg.client.connection import Connection, Subscription

PAGE = (Path(__file__).parent.parent.parent / "docs" / "server.md").read_text()
INTERNAL = {"run", "drive", "subscription", "conversation", "welcome"}


def methods(held: type) -> set[str]:
    return {name for name in dir(held) if not name.startswith("_")} - INTERNAL


@pytest.mark.parametrize("held", [Connection, Subscription])
def test_every_method_is_on_the_page(held):
    assert methods(held) <= set(re.findall(r"`(\w+)", PAGE))


@pytest.mark.parametrize("pair", [(Connection, AsyncConnection), (Subscription, AsyncSubscription)])
def test_blocking_and_awaited_connections_have_the_same_methods(pair):
    waits, awaited = pair
    assert methods(waits) - {"live"} == methods(awaited)  # a live view waits on a thread of its own
