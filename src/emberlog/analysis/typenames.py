"""Names of types: the built-in spellings, and what `.type` adds."""

from __future__ import annotations

import re
from collections.abc import Mapping

from emberlog.diagnostics import Diagnostic, Label, did_you_mean
from emberlog.source import Span
from emberlog.syntax.nodes import Program, TypeDeclaration
from emberlog.types import BOOL, DATE, FLOAT, NUMBER, SYMBOL, TIMESTAMP, UNSIGNED, Type

BUILT_IN: Mapping[str, Type] = {
    **dict.fromkeys(("number", "int", "integer", "long", "int64"), NUMBER),
    **dict.fromkeys(("unsigned", "uint64"), UNSIGNED),
    **dict.fromkeys(("float", "float64", "double", "real"), FLOAT),
    **dict.fromkeys(("symbol", "string", "varchar", "text"), SYMBOL),
    **dict.fromkeys(("bool", "boolean"), BOOL),
    **dict.fromkeys(("datetime", "timestamp"), TIMESTAMP),
    "date": DATE,
    **{f"int{bits}": Type("number", bits) for bits in (8, 16, 32)},
    **{f"uint{bits}": Type("unsigned", bits) for bits in (8, 16, 32)},
    "float32": Type("float", 32),
}
_DECIMAL = re.compile(r"decimal\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)", re.IGNORECASE)


class TypeNames:
    """Resolves names of types in one program. `found` has the mistakes of the `.type` declarations themselves."""

    def __init__(self, program: Program) -> None:
        self.found: list[Diagnostic] = []
        self._declared: dict[str, TypeDeclaration] = {}
        self._resolved: dict[str, Type | None] = {}
        for item in program.items:
            if not isinstance(item, TypeDeclaration):
                continue
            first = self._declared.setdefault(item.name, item)
            if first is not item:
                labels = (Label(item.span, "declared again"), Label(first.span, "declared first"))
                self.found.append(Diagnostic("E0203", f"the type `{item.name}` is declared twice", labels))
        for declaration in self._declared.values():
            self._declaration(declaration, ())

    def resolve(self, name: str, span: Span) -> tuple[Type | None, Diagnostic | None]:
        """The type of this name, or what is wrong with it. A type whose declaration is wrong is None without a word."""
        if name in self._declared:
            return self._resolved[name], None
        built_in = type_named(name)
        if built_in is not None:
            return built_in, None
        help = did_you_mean(name, (*BUILT_IN, *self._declared))
        return None, Diagnostic("E0204", f"unknown type `{name}`", (Label(span),), help)

    def _declaration(self, declaration: TypeDeclaration, path: tuple[str, ...]) -> Type | None:
        name = declaration.name
        if name in self._resolved:
            return self._resolved[name]
        if name in path:
            cycle = " -> ".join((*path[path.index(name) :], name))
            self._wrong(declaration, f"the type `{name}` is made of itself: {cycle}")
            return None
        types = [self._parent(parent, declaration, (*path, name)) for parent in declaration.parents]
        known = [type for type in types if type is not None]
        if len({type.kind for type in known}) > 1:
            shown = ", ".join(str(type) for type in dict.fromkeys(known))
            self._wrong(declaration, f"the type `{name}` joins types of different kinds: {shown}")
            known = []
        whole = known[0] if known and len(known) == len(types) else None
        if whole is not None and any(type != whole for type in known):
            whole = max(known, key=lambda type: type.bits)
        self._resolved[name] = whole
        return whole

    def _parent(self, parent: str, declaration: TypeDeclaration, path: tuple[str, ...]) -> Type | None:
        if parent in self._declared:
            return self._declaration(self._declared[parent], path)
        type, mistake = self.resolve(parent, declaration.span)
        self.found.extend([mistake] if mistake else [])
        return type

    def _wrong(self, declaration: TypeDeclaration, message: str) -> None:
        self.found.append(Diagnostic("E0204", message, (Label(declaration.span),)))


def type_named(name: str) -> Type | None:
    """The built-in type of this name."""
    return BUILT_IN.get(name) or BUILT_IN.get(name.lower()) or _decimal(name)


def _decimal(name: str) -> Type | None:
    match = _DECIMAL.fullmatch(name.strip())
    if match is None:
        return Type("decimal", precision=10, scale=0) if name.lower() == "decimal" else None
    precision, scale = int(match[1]), int(match[2])
    return Type("decimal", precision=precision, scale=scale) if scale <= precision <= 38 else None
