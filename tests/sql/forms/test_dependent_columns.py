"""Queries whose plans rely on keys: groups, limits and joins of rows that a key identifies, against PostgreSQL."""

from hypothesis import strategies as st

from tests.sql.generated.tables import E, R, S
from tests.sql.standing import check_form

NUMBERS = st.integers(-1, 4)


def described_groups() -> st.SearchStrategy[str]:
    """Generate groups of rows by the key of another table, and by columns that the key decides."""
    return st.builds(
        "SELECT r.id, {}count(*) AS n, sum({}) AS total FROM r , s"
        " WHERE r.id = s.a AND {} > {} GROUP BY r.id, r.t, r.n".format,
        st.sampled_from(["", "r.t, ", "r.n, r.t, "]),
        st.sampled_from(["s.c", "s.a"]),
        st.sampled_from(["s.c", "r.b"]),
        NUMBERS,
    )


def groups_asked_for() -> st.SearchStrategy[str]:
    """Generate rows that are compared with an aggregate of the rows with the same key."""
    return st.builds(
        "SELECT s.a, s.c FROM s , r"
        " WHERE r.id = s.a AND r.b = {} AND s.c {} (SELECT {}(x.c) FROM {} WHERE x.a = r.id)".format,
        NUMBERS,
        st.sampled_from(["<", ">=", "="]),
        st.sampled_from(["min", "max", "avg", "count", "sum"]),
        st.sampled_from(["s AS x", "s AS x JOIN e ON e.a = x.a"]),
    )


def first_rows() -> st.SearchStrategy[str]:
    """Generate the first rows of an order, where a key decides the ties."""
    return st.builds(
        "SELECT {} FROM r ORDER BY {} LIMIT {} OFFSET {}".format,
        st.sampled_from(["id, a, b, t, n", "a, id, b, t, n", "t, n, id, a, b"]),
        st.sampled_from(["a", "b DESC", "n DESC, a", "id"]),
        st.integers(1, 4),
        st.integers(0, 2),
    )


def matched_keys() -> st.SearchStrategy[str]:
    """Generate rows with or without a match, by a key, and distinct rows that are distinct already."""
    return st.sampled_from(
        [
            "SELECT a, c FROM s WHERE a IN (SELECT id FROM r WHERE b > 0)",
            "SELECT a, c FROM s WHERE a NOT IN (SELECT id FROM r WHERE b > 0)",
            "SELECT s.a FROM s , e WHERE s.a = e.a AND NOT EXISTS (SELECT 1 FROM r WHERE r.id = e.b)",
            "SELECT DISTINCT id, t FROM r WHERE a > 0",
            "SELECT (SELECT t FROM r WHERE id = s.a), s.c FROM s",
            "SELECT x.a, y.c FROM s AS x , s AS y , r WHERE x.a = r.id AND y.a = r.id AND x.c < 2",
        ]
    )


def test_groups_that_a_key_decides_stand(twins, workers):
    check_form(twins, workers, described_groups(), (R, S))


def test_groups_that_a_join_asks_for_stand(twins, workers):
    check_form(twins, workers, groups_asked_for(), (R, S, E))


def test_first_rows_whose_ties_a_key_decides_stand(twins, workers):
    check_form(twins, workers, first_rows(), (R,))


def test_matches_of_keys_stand(twins, workers):
    check_form(twins, workers, matched_keys(), (R, S, E))
