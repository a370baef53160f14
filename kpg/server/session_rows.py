"""Encoded rows that sessions of a server keep between requests, so that the db does not free the symbols in them.

These are changes of cursors of SUBSCRIBE at epochs that are not complete, and the changes that interests delay to the
end of an interval. The db knows the other holders of rows itself (`db.outputs`, `db.holders`).
"""

from __future__ import annotations

from collections.abc import Iterator

from kpg.columns.schema import Schema
from kpg.columns.updates import Updates
from kpg.service import Service
from kpg.service.subscription import GranularInterest
from kpg.sql.catalog.database_catalog import catalog_of
from kpg.sql.session.subscribe_changes import SqlSubscription


class SessionRows:
    """The rows that the sessions of a service keep; a member of `db.holders`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        service.db.holders.add(self)

    def unread(self) -> Iterator[tuple[Schema, Updates]]:
        """Yield the rows with the columns of their lanes, as outputs do."""
        for subscription in tuple(catalog_of(self._service.db).subscriptions):
            if isinstance(subscription, SqlSubscription):
                for updates in subscription._unread:
                    yield subscription.schema, updates
        for interest in tuple(self._service.interests.values()):
            if isinstance(interest, GranularInterest):
                if len(interest._schema):
                    for parts in interest._delayed._delayed._parts.values():
                        yield from ((interest._schema, updates) for updates in parts)
