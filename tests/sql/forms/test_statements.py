"""INSERT, UPDATE, DELETE with constraints, conflicts and RETURNING: rows and SQLSTATEs are PostgreSQL's."""

from hypothesis import given, settings

from tests.sql.generated.statements import DEFINITION, OTHER, statement_lists

QUERY = "SELECT c.id, c.k, c.t, c.n, c.v, o.k AS other FROM c LEFT JOIN o ON o.id = c.id"


def test_statements_do_what_postgresql_does(twins, workers):
    @settings(max_examples=(settings.default.max_examples if workers == 1 else 10))
    @given(statement_lists())
    def same(statements):
        twins.reset()
        twins.create_tables({"c": DEFINITION, "o": OTHER})
        twins.install("answer", QUERY)
        for statement in statements:
            twins.run(statement)
            twins.run("SELECT * FROM c")
            twins.compare_views()

    same()
