"""Subqueries in every place, against PostgreSQL."""

from tests.sql.generated.subqueries import (
    filtered_by_subquery,
    joined_by_subquery,
    selected_subqueries,
    subqueries_of_groups,
)
from tests.sql.standing import check_form


def test_subqueries_in_where_stand(twins, workers):
    check_form(twins, workers, filtered_by_subquery())


def test_subqueries_in_select_stand(twins, workers):
    check_form(twins, workers, selected_subqueries())


def test_subqueries_of_groups_stand(twins, workers):
    check_form(twins, workers, subqueries_of_groups())


def test_subqueries_in_join_conditions_stand(twins, workers):
    check_form(twins, workers, joined_by_subquery())
