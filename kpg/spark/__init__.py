"""kpg on Spark: workers that live in executors, DataFrames and streams as relations, answers as DataFrames.

    db = kpg.open(spark=spark, workers=2)
    db.load("orders", df)                                      a DataFrame becomes a relation
    db.stream("orders", stream)                                so does a stream, each micro-batch at one epoch
    answer.to_spark()                                          an answer as a DataFrame
    spark.readStream.format("kpg").option("changes", True)     and its changes as a stream

Reading order: session (what a session must be), residents (ranks as Spark jobs), ledger and service (what the driver
decides), site and client (what a task knows), push (rows to ranks), source (the data source), database.
This is the only package that imports pyspark.
"""
