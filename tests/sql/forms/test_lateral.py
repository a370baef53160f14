"""LATERAL subqueries, also with an order and a limit, against PostgreSQL."""

from tests.sql.generated.subqueries import lateral_joins
from tests.sql.standing import check_form


def test_lateral_joins_stand(twins, workers):
    check_form(twins, workers, lateral_joins())
