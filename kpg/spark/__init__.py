"""kpg on Spark: workers in executors, DataFrames and streams as relations, answers as DataFrames and streams.

    db = kpg.open(spark=spark, workers=2)
    db.load("orders", df)                                      a DataFrame into a relation
    db.stream("orders", stream)                                a stream, each micro-batch at one epoch
    answer.to_spark()                                          an answer as a DataFrame
    spark.readStream.format("kpg").option("changes", True)     and its changes as a stream

Reading order: spark_session (requirements of a session), residents (ranks as Spark jobs), driver_requests, ledger and
driver_service (what the driver decides), site and task_client (what a task knows), row_pusher (rows to ranks),
data_source, batch_reader and stream_reader (the data source), spark_database.
This is the only package that imports pyspark.
"""
