"""Workers that live in Spark."""


def test_a_db_on_spark_gives_the_same_answers(db):
    """CHECKLIST A1.2, A1.15."""
    edges = db.input("edges", src=int, dst=int)
    degrees = edges.group_by("src").count().output("degrees")
    edges.insert([(1, 2), (1, 3), (2, 3)])
    db.advance()
    assert degrees.rows() == [(1, 2), (2, 1)]
    degrees.release()


def test_rows_of_a_dataframe_become_a_relation(db, spark):
    frame = spark.range(1000).selectExpr("id % 10 AS k", "id AS v")
    db.load("numbers", frame)
    counts = db["numbers"].group_by("k").count().output("counts")
    assert counts.rows() == [(k, 100) for k in range(10)]
    frame = counts.to_spark()
    assert sorted(map(tuple, frame.collect())) == [(k, 100) for k in range(10)]
