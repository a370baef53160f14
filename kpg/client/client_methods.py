"""The methods of connections and subscriptions, one list for both kinds (`kpg.client.driven_methods`)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kpg.client import calls, procedures
from kpg.client.change_feed import ChangeFeed, Row, Step
from kpg.client.conversation import Conversation
from kpg.client.driven_methods import InterestMethod, asks, driven
from kpg.client.procedures import Procedure


class ConnectionMethods:
    """The methods of a connection: one for each call."""

    conversation: Conversation

    ping = asks(calls.ping)
    create_relation = asks(calls.create_relation)
    create_attribute = asks(calls.create_attribute)
    drop_relation = asks(calls.drop_relation)
    transact = asks(calls.transact)
    insert = asks(calls.insert)
    remove = asks(calls.remove)
    register = asks(calls.register)
    unregister = asks(calls.unregister)
    grant = asks(calls.grant)
    revoke = asks(calls.revoke)
    interest = InterestMethod(calls.interest)
    query = asks(calls.query)
    sql = asks(calls.sql)
    explain = asks(calls.explain)
    catalog = asks(calls.catalog)
    inspect = asks(calls.inspect)
    stop = asks(calls.stop)
    observe = asks(calls.observe)
    advance = asks(calls.advance)
    close_input = asks(calls.close_input)
    sink = asks(calls.sink)
    uninterest = asks(calls.uninterest)
    shutdown = asks(calls.shutdown)


class SubscriptionMethods:
    """The methods of a subscription: an answer that a client follows."""

    def __init__(self, conversation: Conversation, feed: ChangeFeed) -> None:
        self._conversation = conversation
        self._feed = feed

    @property
    def name(self) -> str:
        """The name of the rule or relation."""
        return self._feed.name

    @property
    def id(self) -> int:
        """The number of the interest."""
        return self._feed.interest

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._feed.schema.names

    @property
    def upto(self) -> int:
        """The time below which the rows that were read are exact."""
        return self._feed.upto

    def counted_rows(self) -> dict[Row, int]:
        """Return the rows of the steps that were read, each with its count; sends nothing."""
        return self._feed.counts()

    def read_table(self) -> pa.Table:
        """Return the rows of the steps that were read as an Arrow table; sends nothing."""
        return self._feed.table()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, upto={self.upto})"

    @driven
    def next(self, timeout: float | None = None) -> Procedure[Step]:
        """Wait for the next step and return it; TimeNotReached if none comes within `timeout` seconds."""
        return procedures.next_step(self._conversation, self._feed, timeout)

    @driven
    def add(self, arguments: calls.Arguments) -> Procedure[None]:
        """Add arguments: an update on the server, not a new dataflow."""
        yield from procedures.ask(self._conversation, calls.add_arguments(self._feed, arguments))

    @driven
    def remove(self, arguments: calls.Arguments) -> Procedure[None]:
        """Remove arguments; the rows that go arrive as changes."""
        yield from procedures.ask(self._conversation, calls.remove_arguments(self._feed, arguments))

    @driven
    def rows(self) -> Procedure[list[Row]]:
        """Return the current rows, each as often as its count; reads all steps that have arrived."""
        yield from procedures.catch_up(self._conversation, self._feed)
        return self._feed.rows()

    @driven
    def table(self) -> Procedure[pa.Table]:
        """Return the current rows as an Arrow table."""
        yield from procedures.catch_up(self._conversation, self._feed)
        return self._feed.table()

    @driven
    def to_pandas(self) -> Procedure[Any]:
        """Return the current rows as a pandas DataFrame."""
        yield from procedures.catch_up(self._conversation, self._feed)
        return self._feed.table().to_pandas()

    @driven
    def close(self) -> Procedure[None]:
        """End the interest; may be repeated."""
        return procedures.unfollow(self._conversation, self._feed)
