"""WITH RECURSIVE, against PostgreSQL."""

from tests.sql.generated.combined_queries import recursive_queries
from tests.sql.standing import check_form


def test_recursive_queries_stand(twins, workers):
    check_form(twins, workers, recursive_queries())
