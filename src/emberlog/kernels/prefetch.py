"""An instruction that Python has no word for: a line of memory is fetched while other work goes on."""

from __future__ import annotations

from typing import Any

from emberlog.kernels.cache import COMPILES

READ, KEEP, DATA = 0, 3, 1  # to read it, to keep it in the nearest cache, of data


def prefetch(array: Any, place: Any) -> None:
    """Asks for the line in which an element of an array stands. A place outside of the array does no harm, and plain
    Python has no use for it."""


if COMPILES:
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.extending import intrinsic

    def _instruction(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.bitcast(builder.gep(held.data, [arguments[1]]), cgutils.voidptr_t)
        number = ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0i8")  # type: ignore[no-untyped-call]
        builder.call(function, [address, number(READ), number(KEEP), number(DATA)])
        return context.get_dummy_value()

    def _typed(_: Any, array: Any, place: Any) -> Any:
        return types.void(array, types.uint64), _instruction

    prefetch = intrinsic(_typed)  # type: ignore[assignment]
