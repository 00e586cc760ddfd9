"""Functions of Python applied to columns of Arrow. What raises, or gives nothing or a value of another type, is null.

This module travels to Spark's workers as it is: it needs nothing else of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emberlog.callables import PythonFunction
    from emberlog.types import Type

NUMBERS = {"number": (-(2**63), 2**63 - 1), "unsigned": (0, 2**64 - 1)}


@dataclass(frozen=True)
class Calling:
    """A function with the kinds of its arguments, and the kind of its result with the digits of a decimal."""

    name: str
    call: Callable[..., Any]
    kinds: tuple[str, ...]
    result: str
    precision: int
    scale: int
    vectorized: bool

    def of(self, values: Sequence[Any]) -> Any:
        """The value for these arguments. Raises what the function raises, or TypeError for what is no value of its
        type."""
        if not self.vectorized:
            return self._value(self.call(*values))
        import pyarrow as pa

        pairs = zip(values, self.kinds, strict=True)
        found = self.call(*(pa.array([v], None if kind == "decimal" else arrow_type(kind)) for v, kind in pairs))
        if len(found) != 1:
            raise TypeError(f"gave {len(found)} values for 1 row")
        return self._value(found[0])

    def _value(self, found: Any) -> Any:
        """What the function gave, as a value of the type of its result."""
        plain = found.as_py() if hasattr(found, "as_py") else found.item() if hasattr(found, "item") else found
        match self.result, plain:
            case _, None:
                raise TypeError("gave no value")
            case "bool", bool():
                return plain
            case (("number" | "unsigned"), int()) if not isinstance(plain, bool):
                low, high = NUMBERS[self.result]
                if low <= plain <= high:
                    return plain
            case "float", int() | float() if not isinstance(plain, bool):
                return float(plain) + 0.0  # no value is -0.0
            case "symbol", str():
                return plain
            case "timestamp", datetime() if plain.tzinfo is None:
                return plain
            case "date", date() if not isinstance(plain, datetime):
                return plain
            case "decimal", int() | Decimal() if not isinstance(plain, bool):
                return self._decimal(Decimal(plain))
        raise TypeError(f"gave {plain!r}, which is no {self.result}")

    def _decimal(self, value: Decimal) -> Decimal:
        shifted = value.scaleb(self.scale)
        if shifted != shifted.to_integral_value() or abs(shifted) >= 10**self.precision:
            raise TypeError(f"gave {value}, which does not fit decimal({self.precision},{self.scale})")
        return value

    # --- columns -------------------------------------------------------------------------------------------------

    def column(self, columns: Sequence[Any], type: Any) -> Any:
        """The values for columns of arguments, as an array of this type of Arrow."""
        import pyarrow as pa

        plain = [column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in columns]
        if self.vectorized and not any(column.null_count for column in plain):
            try:
                return self._at_once(plain, type)
            except Exception:  # of some row: one by one they tell which
                pass
        lists = [_python_values(column, kind) for column, kind in zip(plain, self.kinds, strict=True)]
        return pa.array([self._or_none(row) for row in zip(*lists, strict=True)], type)

    def _at_once(self, columns: Sequence[Any], type: Any) -> Any:
        """The values of all rows by one call. Raises for what is no column of values of the type."""
        import pyarrow as pa
        import pyarrow.compute as pc

        given = [
            column if kind == "decimal" else column.cast(arrow_type(kind))
            for column, kind in zip(columns, self.kinds, strict=True)
        ]
        found = self.call(*given)
        values = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        values = values if isinstance(values, pa.Array) else pa.array(values, from_pandas=False)
        if len(values) != len(given[0]) or (self.result in NUMBERS and not pa.types.is_integer(values.type)):
            raise TypeError(f"gave {len(values)} values of {values.type} for {len(given[0])} rows")
        fitted = values.cast(type)
        return pc.add(fitted, 0.0) if self.result == "float" else fitted  # no value is -0.0

    def _or_none(self, row: Sequence[Any]) -> Any:
        if any(value is None for value in row):
            return None
        try:
            return self.of(row)
        except Exception:  # whether that is an error, the rest of the rule says
            return None


def calling_of(function: PythonFunction, kinds: Sequence[Type]) -> Calling:
    """How a function is called with arguments of these types."""
    result = function.result
    return Calling(
        function.name,
        function.call,
        tuple(kind.kind for kind in kinds),
        result.kind,
        result.precision,
        result.scale,
        function.vectorized,
    )


def _python_values(column: Any, kind: str) -> list[Any]:
    values: list[Any] = column.to_pylist()
    if kind != "unsigned":
        return values
    return [None if value is None else int(value) for value in values]  # Spark has them as decimals


def arrow_type(kind: str, precision: int = 38, scale: int = 0) -> Any:
    """The type of Arrow for values of a kind."""
    import pyarrow as pa

    if kind == "decimal":
        return pa.decimal128(precision, scale)
    types = {
        "number": pa.int64(),
        "unsigned": pa.uint64(),
        "float": pa.float64(),
        "symbol": pa.string(),
        "bool": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
    }
    return types[kind]
