"""Joins of all kinds, against PostgreSQL."""

from tests.sql.generated.joined_queries import join_queries, natural_joins
from tests.sql.standing import check_form


def test_joins_stand(twins, workers):
    check_form(twins, workers, join_queries())


def test_joins_by_column_name_stand(twins, workers):
    check_form(twins, workers, natural_joins())
