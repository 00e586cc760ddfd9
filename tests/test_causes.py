"""What is told of a failure of Spark: the cause's own message, whatever stands around it."""

from __future__ import annotations

import pytest

from emberlog.causes import cause_of, is_cancellation

PYTHON = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "task.py", line 16, in f
    raise KeyError("a")
KeyError: 'a'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "task.py", line 18, in f
    raise ValueError("seven is not a node")
ValueError: seven is not a node
"""
STAGE = """An error occurred while calling o158.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0 in stage 3.0 (TID 2) (vm executor driver): org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "task.py", line 16, in f
    import pyarrow as pa
ModuleNotFoundError: No module named 'pyarrow'

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:572)
Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2790)
Caused by: org.apache.spark.SparkException: Python worker exited: there was a reason
\t... 1 more
"""  # noqa: E501
JAVA = """An error occurred while calling o158.parquet.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///bad.parquet.  SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:864)
Caused by: java.util.concurrent.ExecutionException: java.lang.RuntimeException: bad.parquet is not a Parquet file
\tat org.apache.parquet.hadoop.ParquetFileReader.readFooter(ParquetFileReader.java:560)
Caused by: java.io.IOException: java.lang.RuntimeException: bad.parquet is not a Parquet file. Expected magic number at tail
\t... 12 more
Caused by: java.lang.NullPointerException
\t... 13 more
"""  # noqa: E501
NO_PROGRAM = """An error occurred while calling o158.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure
Caused by: java.io.IOException: Cannot run program "python9": error=2, No such file or directory
\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
Caused by: java.io.IOException: error=2, No such file or directory
"""
CANCELLED = """An error occurred while calling o152.parquet.
: org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 2 cancelled as part of cancellation of all jobs SQLSTATE: XXKDA
\tat org.apache.spark.errors.SparkCoreErrors$.sparkJobCancelled(SparkCoreErrors.scala:222)
"""  # noqa: E501
BY_STAGE = """An error occurred while calling o47.count.
: org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 4 cancelled because Stage 4 was cancelled SQLSTATE: XXKDA
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (PYTHON, "ValueError: seven is not a node"),
        (STAGE, "ModuleNotFoundError: No module named 'pyarrow'"),
        (JAVA, "bad.parquet is not a Parquet file. Expected magic number at tail"),
        (NO_PROGRAM, 'Cannot run program "python9": error=2, No such file or directory'),
        (CANCELLED, "[SPARK_JOB_CANCELLED] Job 2 cancelled as part of cancellation of all jobs"),
        ("[USER_RAISED_EXCEPTION] no such luck SQLSTATE: P0001", "[USER_RAISED_EXCEPTION] no such luck"),
        ("Catalog Error: Table does not exist!\nDid you mean p?", "Catalog Error: Table does not exist!"),
        ("", "RuntimeError"),
    ],
)
def test_the_cause_is_told(text: str, cause: str) -> None:
    assert cause_of(RuntimeError(text)) == cause


def test_what_java_says_counts_where_the_message_has_no_cause() -> None:
    error = RuntimeError("Exception thrown in awaitResult: ")
    error._stackTrace = "x.SparkException: in awaitResult\nCaused by: java.io.IOException: No space left on device"  # type: ignore[attr-defined]
    assert cause_of(error) == "No space left on device"


@pytest.mark.parametrize(
    ("text", "cancelled"), [(CANCELLED, True), (BY_STAGE, True), (JAVA, False), ("the job was not cancelled", False)]
)
def test_cancelled_jobs_are_known(text: str, cancelled: bool) -> None:
    assert is_cancellation(RuntimeError(text)) is cancelled
