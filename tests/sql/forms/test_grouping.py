"""GROUP BY, HAVING, FILTER, ROLLUP and GROUPING SETS with all aggregates, against PostgreSQL."""

from tests.sql.generated.grouped_queries import grouped_queries, grouping_sets
from tests.sql.standing import check_form


def test_groups_stand(twins, workers):
    check_form(twins, workers, grouped_queries())


def test_grouping_sets_stand(twins, workers):
    check_form(twins, workers, grouping_sets())
