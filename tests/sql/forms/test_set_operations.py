"""UNION, INTERSECT and EXCEPT, with and without ALL, against PostgreSQL."""

from tests.sql.generated.combined_queries import set_operations
from tests.sql.standing import check_form


def test_set_operations_stand(twins, workers):
    check_form(twins, workers, set_operations())
