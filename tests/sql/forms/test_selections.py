"""Select, filter and distinct of one source, against PostgreSQL."""

from tests.sql.generated.joined_queries import selections
from tests.sql.standing import check_form


def test_selections_stand(twins, workers):
    check_form(twins, workers, selections())
