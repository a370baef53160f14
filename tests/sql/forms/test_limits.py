"""ORDER BY with LIMIT and OFFSET, and DISTINCT ON, against PostgreSQL."""

from hypothesis import given

from tests.sql.generated.combined_queries import distinct_on, limited_queries, ordered_queries
from tests.sql.generated.tables import TABLES, filled
from tests.sql.standing import check_form


def test_first_rows_stand(twins, workers):
    check_form(twins, workers, limited_queries())


def test_distinct_on_stands(twins, workers):
    check_form(twins, workers, distinct_on())


def test_rows_come_in_the_order_of_the_query(twins):
    @given(filled(*TABLES.values()), ordered_queries())
    def ordered(rows, query):
        twins.reset()
        twins.create_tables({table.name: table.definition for table in TABLES.values()})
        twins.run_all(rows)
        twins.ordered(query)

    ordered()
