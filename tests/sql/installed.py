"""Whether kpg runs SQL statements at all; until it does, tests of them are skipped."""

from importlib.util import find_spec

import pytest


def require_sql() -> None:
    """Skip a test if `db.sql` has nothing to run statements with."""
    if find_spec("kpg.sql.database_methods") is None:
        pytest.skip("kpg runs no SQL statements yet")
