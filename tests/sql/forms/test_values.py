"""Values of the rarer types, and queries that fail on some rows, against PostgreSQL."""

from tests.sql.generated.failing_queries import failing_queries
from tests.sql.generated.tables import RARE
from tests.sql.generated.value_queries import value_queries
from tests.sql.standing import check_form


def test_queries_of_rare_types_stand(twins, workers):
    check_form(twins, workers, value_queries(), (RARE,))


def test_a_view_fails_exactly_while_its_query_fails(twins, workers):
    check_form(twins, workers, failing_queries())
