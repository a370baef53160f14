"""The version of the catalog that a statement is planned with.

    run_at_one_version(catalog, work)        do the work of a statement, again if definitions have changed meanwhile
    with planning(catalog): ...              bind and lower, within the limits of the catalog
    require_planned_version(catalog)         called before a plan is installed

Planning lets other requests run, which may drop what it has named. So it may fail in any way, or return a wrong plan.
A plan is installed only if the catalog is as it was when planning began. A statement has written nothing by then, so it
is planned again, up to MAX_ATTEMPTS times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TypeVar

from kpg.errors import ProgramError, TransactionConflict
from kpg.sql.session import sql_errors
from kpg.sql.session.sql_errors import sql_error

if TYPE_CHECKING:
    from kpg.sql.catalog.database_catalog import DatabaseCatalog

Result = TypeVar("Result")
MAX_ATTEMPTS: Final = 10

_version: ContextVar[int | None] = ContextVar("version of the catalog", default=None)


class CatalogChanged(Exception):
    """Definitions have changed since the planning of a statement began."""


def require_planned_version(catalog: DatabaseCatalog) -> None:
    """Raise CatalogChanged if definitions have changed since the planning of this statement began."""
    if _version.get() not in (None, catalog.version):
        raise CatalogChanged


@contextmanager
def planning(catalog: DatabaseCatalog) -> Iterator[None]:
    """Limit the time to plan in this block. Raise CatalogChanged if it fails after definitions have changed."""
    try:
        with catalog.planning():
            yield
    except (ProgramError, LookupError):
        require_planned_version(catalog)
        raise


def run_at_one_version(catalog: DatabaseCatalog, work: Callable[[], Result]) -> Result:
    """Do the work of a statement whose plans are made and installed at one version of the catalog."""
    for _ in range(MAX_ATTEMPTS):
        token = _version.set(catalog.version)
        try:
            return work()
        except CatalogChanged:
            continue
        finally:
            _version.reset(token)
    raise sql_error(
        TransactionConflict,
        sql_errors.SERIALIZATION_FAILURE,
        "definitions of tables and views changed again and again while the statement was planned",
        hint="Try again.",
    )
