"""Results as Parquet parts, and the manifest that says which count."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberlog.diagnostics import ExecutionError
from emberlog.kernels.cluster import parts
from emberlog.kernels.cluster.manifest import Manifest, checksum, load, publish
from emberlog.kernels.cluster.parts import Kinds, Output, Part

RELATIONS: dict[str, Kinds] = {"tc": ("int64", "int64"), "rank": ("int64", "float64")}


@settings(max_examples=30)
@given(
    chunks=st.lists(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False)), max_size=30)),
    group=st.sampled_from([1, 3, 8, 1000]),
)
def test_rows_are_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[list[tuple[int, float]]], group: int
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "GROUP_ROWS", group)
        output = Output(folder, folder, RELATIONS)
        with output.writer("rank") as writer:
            for chunk in chunks:
                columns = [np.array([row[i] for row in chunk], kind) for i, kind in enumerate(RELATIONS["rank"])]
                writer.write(columns)
                for column in columns:
                    column[:] = 0  # the caller may use its arrays again
        found = output.finish()
    expected = [row for chunk in chunks for row in chunk]
    if not expected:
        assert found == ()
        return
    (part,) = found
    table = pq.read_table(folder / part.path)
    assert table.schema.types == [pa.int64(), pa.float64()]
    assert list(zip(*table.to_pydict().values(), strict=True)) == expected
    assert part.rows == len(expected) and part.bytes == (folder / part.path).stat().st_size
    assert part.crc32 == checksum(folder / part.path)


def test_narrow_integers_are_written_as_64_bits(tmp_path: Path) -> None:
    output = Output(tmp_path, tmp_path, RELATIONS)
    with output.writer("tc") as writer:
        writer.write([np.array([1, -2], np.int32), np.arange(4, dtype=np.uint8)[::2]])
    table = pq.read_table(tmp_path / output.finish()[0].path)
    assert table.schema.types == [pa.int64(), pa.int64()] and table.to_pydict() == {"c0": [1, -2], "c1": [0, 2]}


def test_several_writers_of_one_relation(tmp_path: Path) -> None:
    output = Output(tmp_path, tmp_path, RELATIONS)
    writers = [output.writer("tc") for _ in range(3)]
    for number, writer in enumerate(writers):
        writer.write([np.full(number, number)] * 2)
    made = Manifest(tmp_path, RELATIONS, output.finish())
    assert made.rows("tc") == 3 and len(made.paths("tc")) == 2 and made.rows("rank") == 0


def test_columns_must_fit(tmp_path: Path) -> None:
    with Output(tmp_path, tmp_path, RELATIONS).writer("tc") as writer:
        for columns in ([np.arange(2)], [np.arange(2), np.arange(3)]):
            with pytest.raises(ValueError, match="2 arrays of one length"):
                writer.write(columns)


def made_manifest(folder: Path) -> Manifest:
    output = Output(folder, folder, RELATIONS)
    with output.writer("tc") as writer:
        writer.write([np.arange(1000), np.arange(1000) % 7])
    made = Manifest(folder, RELATIONS, output.finish())
    publish(made)
    return made


def test_a_manifest_is_read_as_published(tmp_path: Path) -> None:
    made = made_manifest(tmp_path)
    assert load(tmp_path) == made
    load(tmp_path).check("tc", verify=True)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_damage_is_found(tmp_path: Path) -> None:
    made = made_manifest(tmp_path)
    (path,) = made.paths("tc")
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    made.check("tc")
    with pytest.raises(ExecutionError, match="not what was written"):
        made.check("tc", verify=True)
    path.write_bytes(content[:-1])
    with pytest.raises(ExecutionError, match="not what was written"):
        made.check("tc")
    path.unlink()
    with pytest.raises(ExecutionError, match="is gone"):
        made.check("tc")


@pytest.mark.parametrize("text", ["", "{}", '{"crc32": 0, "content": "{}"}'])
def test_what_is_no_manifest(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ExecutionError, match="is not the manifest of a run"):
        load(tmp_path)


def test_a_manifest_that_was_changed(tmp_path: Path) -> None:
    path = publish(Manifest(tmp_path, RELATIONS, (Part("tc", "x", 1, 2, 3),)))
    outer = json.loads(path.read_text())
    outer["content"] = outer["content"].replace('"rows": 1', '"rows": 9')
    path.write_text(json.dumps(outer))
    with pytest.raises(ExecutionError, match="checksum"):
        load(tmp_path)
