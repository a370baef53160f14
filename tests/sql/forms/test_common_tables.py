"""Common table expressions, against PostgreSQL."""

from tests.sql.generated.combined_queries import common_tables
from tests.sql.standing import check_form


def test_common_tables_stand(twins, workers):
    check_form(twins, workers, common_tables())
