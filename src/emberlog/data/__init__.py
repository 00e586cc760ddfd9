"""Data in and out of Emberlog, as Arrow tables.

    arrow       types of the language as Arrow types and back; tables with columns c0..ck; rows as Python values
    text        one value written as text: reading it, telling the type of a column of texts
    records     a text file split into records, exactly, with the line of each; the bad rows of a file
    convert     an Arrow table made to fit declared columns: nulls, casts, the first value that does not fit
    facts       facts files and csv files: read, header, schema
    values      lists of Python tuples and pandas frames as Arrow tables
    partitions  columns that stand in the names of folders, typed as Spark types them
    sources     what a relation's rows come from: `engine.register`, `.input`; schema and loading
    load        the rows of a source with those that stand in the program
    paths       names of files that callers and programs give, and programs that are confined to two folders
    write       facts, csv, Parquet and Arrow files, written whole or not at all
    directives  the source that an `.input` names, the file that an `.output` writes

A table of a relation has the columns c0..ck, each of the Arrow type that `arrow.arrow_type` gives. A relation without
columns is a table without columns that has one row when it is true (`arrow.nullary_table`).
Modules import pyarrow and numpy, never pyspark, duckdb, pandas or polars.
"""
