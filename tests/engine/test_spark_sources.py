"""`.input` from a database by JDBC and from Spark's catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emberlog

PROGRAM = """
.decl arc(x: number, y: number)
.input arc(IO=jdbc, url="jdbc:derby:memory:arcs;create=true", dbtable="ARCS",
           driver="org.apache.derby.jdbc.EmbeddedDriver")
.decl edge(x: number, y: number)
.input edge(IO=table, name="test_edges")
tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), edge(Z,Y).
.output tc
"""


def test_jdbc_and_tables(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(1, 2), (2, 3)], ["X", "Y"])
    driver = "org.apache.derby.jdbc.EmbeddedDriver"
    derby = {"url": "jdbc:derby:memory:arcs;create=true", "dbtable": "ARCS", "driver": driver}
    frame.write.format("jdbc").options(**derby).mode("overwrite").save()
    frame.createOrReplaceTempView("test_edges")
    (tmp_path / "program.dl").write_text(PROGRAM, encoding="utf-8")
    try:
        with emberlog.Engine(spark) as engine:
            result = engine.run_file(tmp_path / "program.dl", tmp_path, tmp_path / "out")
            assert sorted(result["tc"].rows()) == [(1, 2), (1, 3), (2, 3)]
        assert (tmp_path / "out" / "tc.csv").read_text() == "1\t2\n1\t3\n2\t3\n"
    finally:
        spark.catalog.dropTempView("test_edges")
