"""SQLAlchemy and pandas against a server: reflection, statements, frames."""

import pandas as pd
import pytest
import sqlalchemy as sa


@pytest.fixture
def engine(pg_address):
    url = sa.URL.create(
        "postgresql+psycopg",
        pg_address["user"],
        pg_address["password"],
        pg_address["host"],
        pg_address["port"],
        pg_address["dbname"],
    )
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")  # DDL runs outside transactions
    yield engine
    engine.dispose()


def test_tables_are_created_reflected_written_and_read(engine):
    declared = sa.Table(
        "reflected", sa.MetaData(),
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(20), nullable=False, server_default="x"),
        sa.Column("total", sa.Numeric(10, 2)),
        sa.UniqueConstraint("name", "total"),
    )  # fmt: skip
    declared.create(engine)
    inspector = sa.inspect(engine)
    assert inspector.has_table("reflected") and not inspector.has_table("nowhere")
    table = sa.Table("reflected", sa.MetaData(), autoload_with=engine)
    assert [str(column.type) for column in table.columns] == ["INTEGER", "VARCHAR(20)", "NUMERIC(10, 2)"]
    assert [column.name for column in table.primary_key] == ["id"] and not table.c.name.nullable
    unique = [item for item in table.constraints if isinstance(item, sa.UniqueConstraint)]
    assert [[column.name for column in item.columns] for item in unique] == [["name", "total"]]
    with engine.connect() as connection:
        connection.execute(table.insert(), [{"id": n, "name": str(n), "total": n} for n in range(5)])
        found = connection.execute(sa.select(table.c.name).where(table.c.id.in_([1, 3])).order_by(table.c.id))
        assert found.scalars().all() == ["1", "3"]
    frame = pd.read_sql("SELECT id, total FROM reflected WHERE id > %(least)s ORDER BY id", engine, params={"least": 2})
    assert frame["id"].tolist() == [3, 4]
    table.drop(engine)


def test_a_session_of_the_orm_commits_and_rolls_back(engine):
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE orm (a integer PRIMARY KEY)")
    transactional = engine.execution_options(isolation_level="REPEATABLE READ")
    with transactional.begin() as connection:
        connection.exec_driver_sql("INSERT INTO orm VALUES (1)")
        assert sa.inspect(connection).has_table("orm")  # the catalog is read inside the transaction
    with pytest.raises(ZeroDivisionError), transactional.begin() as connection:
        connection.exec_driver_sql("INSERT INTO orm VALUES (2)")
        raise ZeroDivisionError
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT a FROM orm").all() == [(1,)]
        connection.exec_driver_sql("DROP TABLE orm")
