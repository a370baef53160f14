"""PostgreSQL judges the binder: names and types of results, and what is refused.

for all queries:  what PostgreSQL accepts binds, with its names and types of columns
for all texts:    what PostgreSQL refuses to parse or type, kpg refuses; what kpg alone refuses is not supported
"""

import pytest
from hypothesis import given, settings

from kpg.errors import KpgError
from kpg.sql.tpch.tpch_queries import NUMBERS, query_text
from kpg.sql.tpch.tpch_tables import COLUMNS, create_table
from tests.sql.bind.judged_cases import CASES
from tests.sql.bind.table_catalog import TableCatalog
from tests.sql.generated.forms import FORMS
from tests.sql.generated.tables import RARE, E, R, S, U

DEFINITIONS = [f"CREATE TABLE {table.name} ({table.definition})" for table in (R, S, U, E, RARE)]
SHORT_NAMES = {
    "int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real", "float8": "double precision",
    "bool": "boolean", "varchar": "character varying", "bpchar": "character", "time": "time without time zone",
    "timestamp": "timestamp without time zone", "timestamptz": "timestamp with time zone",
}  # fmt: skip
RUN_TIME = ("22", "21")  # classes of errors that PostgreSQL finds while it folds constants; kpg finds them in rows


@pytest.fixture(scope="module")
def catalog(postgres):
    postgres.reset()
    for definition in DEFINITIONS:
        postgres.rows(definition)
    return TableCatalog(*DEFINITIONS)


def type_name(shown):
    name = shown.removesuffix("[]").partition("(")[0]
    return SHORT_NAMES.get(name, name) + ("[]" if shown.endswith("[]") else "")


def columns_of(query):
    columns = query.relation.columns[: len(query.names)]
    return [(name, type_name(str(column.type))) for name, column in zip(query.names, columns, strict=True)]


def expected_columns(postgres, text):
    answer = postgres.rows(f"SELECT * FROM ({text}\n) AS judged LIMIT 0")
    return [(name, type_name(shown)) for name, shown in zip(answer.names, answer.types, strict=True)]


@pytest.mark.parametrize("form", FORMS)
def test_results_have_the_names_and_types_of_postgresql(postgres, catalog, form):
    @settings(max_examples=25)
    @given(FORMS[form])
    def check(text):
        assert columns_of(catalog.bind(text)) == expected_columns(postgres, text)

    check()


@pytest.mark.parametrize("text", CASES)
def test_a_case_is_what_postgresql_says(postgres, catalog, text):
    theirs = postgres.checked(text)
    try:
        query = catalog.bind(text)
    except KpgError as error:
        refused = theirs is not None and theirs.sqlstate == error.sqlstate
        assert refused or error.sqlstate == "0A000" or error.sqlstate.startswith(RUN_TIME), f"{theirs}\n{error}"
    else:
        assert theirs is None or theirs.sqlstate.startswith(RUN_TIME), f"kpg accepts {text}\n{theirs}"
        if theirs is None:
            assert columns_of(query) == expected_columns(postgres, text)


def test_all_queries_of_tpch_bind(postgres):
    postgres.reset()
    catalog = TableCatalog()
    for table in COLUMNS:
        postgres.rows(create_table(table))
        catalog.create(create_table(table))
    for number in NUMBERS:
        text = query_text(number).rstrip(";")
        assert columns_of(catalog.bind(text)) == expected_columns(postgres, text), f"query {number}"
