"""Views whose relations are on Spark: versions of them as Parquet, tasks as Spark's queries."""
