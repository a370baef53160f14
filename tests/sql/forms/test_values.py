"""Values of the rarer types, and queries that fail on some rows, against PostgreSQL."""

import pytest

from tests.sql.generated.failing_queries import failing_queries
from tests.sql.generated.tables import RARE
from tests.sql.generated.value_queries import value_queries
from tests.sql.standing import check_form


def test_queries_of_rare_types_stand(twins, workers):
    check_form(twins, workers, value_queries(), (RARE,))


def test_a_view_fails_exactly_while_its_query_fails(twins, workers):
    check_form(twins, workers, failing_queries())


@pytest.mark.parametrize(
    "query",
    [
        "SELECT -1234567890123456789012345.12345 AS v",
        "SELECT w AS v FROM (VALUES (-1234567890123456789012345.12345), (0.00001)) AS x (w)",
        "SELECT gcd(1234567890123456789012345.12345, 0.00030) AS v",
        "SELECT to_char(-1234567890123456789012345.12345, '9999999999999999999999999D99999') AS v",
        "SELECT width_bucket(1234567890123456789012345.1, 1234567890123456789012345.4, 1234567890123456789012345.0, 4)",
    ],
)
def test_numerics_keep_digits_that_python_rounds(twins, query):
    twins.run(query)


@pytest.mark.parametrize(
    "text", ["1969-12-31 +05", "1969-12-31 -05:30", "1969-12-31+05", "1969-12-31 UTC", "20240501 z", "May 1, 2024 +02"]
)
def test_a_zone_may_follow_a_date(twins, text):
    twins.run(f"SELECT timestamptz '{text}' AS v, timestamp '{text}' AS w")


def test_the_variance_of_equal_numbers_is_zero(twins):
    twins.run("SELECT variance(x) AS v, stddev_pop(x) AS w FROM (VALUES (1.5), (1.5)) AS t (x)")


@pytest.mark.parametrize("count", [1, 8, 9, 20])
def test_rows_of_values_count_although_no_column_is_read(twins, count):
    values = ", ".join(f"({number})" for number in range(count))
    twins.run(f"SELECT count(*) AS n FROM (VALUES {values}) AS a (x)")
    twins.run(f"SELECT 1 AS one FROM (VALUES {values}) AS a (x), (VALUES {values}) AS b (y)")
    twins.run(f"SELECT count(*) AS n FROM (VALUES {values}) AS a (x), (VALUES {values}, {values}) AS b (y)")
