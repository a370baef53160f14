"""Streams on a busy machine.

Spark starts a process of Python for each source and sink of a stream, and gives it ten seconds to connect, which no
setting changes. Where others need the machine too that may not do; then the stream is started again, as a user would.
"""

from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming import StreamingQuery

SECONDS = 200  # for a stream to end that ends by itself
ATTEMPTS = 5
BUSY = "Python worker failed to connect back"


def ended(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Start a stream and wait for its end; raises what it failed with."""
    for attempt in range(ATTEMPTS):
        query = start()
        try:
            assert query.awaitTermination(SECONDS)
            break
        except StreamingQueryException as error:
            if BUSY not in str(error) or attempt == ATTEMPTS - 1:
                raise
    return query


def going(query: StreamingQuery, start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """A stream that should be running: itself, or started again."""
    if query.isActive:
        return query
    assert BUSY in str(query.exception()), query.exception()
    return start()
