"""Directives: `.decl`, `.input` and their like, and BigDatalog's `database({...})`."""

from __future__ import annotations

from emberlog.diagnostics import did_you_mean
from emberlog.syntax import nodes
from emberlog.syntax.formulas import FormulaParser
from emberlog.syntax.literals import LiteralError, read_number, read_string, write_string
from emberlog.syntax.tokens import Token
from emberlog.syntax.vocabulary import COMPARISONS, DIRECTIVES, QUALIFIERS, RELATION_DIRECTIVES

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}
_OptionValue = str | int | float | bool
_SUPPORTED = "supported are " + " ".join(f".{name}" for name in sorted(DIRECTIVES))
_NOT_A_QUALIFIER_BEFORE = frozenset({"(", "<-", ",", "="})


class DirectiveParser(FormulaParser):
    """Reads what declares relations and says where their rows come from and go to."""

    def starts_directive(self, index: int) -> bool:
        """Is the token the `.` of a directive that this program may have meant?"""
        token, word = self.tokens[index], self.tokens[index + 1]
        return token.kind == "." and word.kind == "name" and self.touches(index)

    def directive(self) -> list[nodes.Item]:
        begin = self.at
        self.at += 1
        word = self.advance()
        match word.text:
            case "decl":
                return self.declarations(begin)
            case "type" | "symbol_type" | "number_type":
                return [self.type_declaration(begin, word.text)]
            case "pragma":
                return [self.pragma(begin)]
            case "plan":
                return [self.plan(begin)]
            case kind if kind in RELATION_DIRECTIVES:
                return self.relation_directives(kind)
        self.skip_block()
        help = did_you_mean(f".{word.text}", (f".{name}" for name in DIRECTIVES)) or _SUPPORTED
        raise self.error("E0109", f"`.{word.text}` is not supported", word, help)

    def skip_block(self) -> None:
        """Step over the `{ ... }` of a directive that is not supported, so that what is inside is not blamed."""
        index = self.at
        while self.tokens[index].kind in ("name", "<", ">", ",", ":") and not self.on_new_line(index):
            index += 1
        if self.tokens[index].kind != "{":
            return
        level = 0
        while self.tokens[index].kind != "end":
            level += {"{": 1, "}": -1}.get(self.tokens[index].kind, 0)
            index += 1
            if level == 0:
                break
        self.at = index

    # --- declarations ------------------------------------------------------------------------------------------------

    def declarations(self, begin: int) -> list[nodes.Item]:
        """After `.decl`: `a, b(x: number, y: symbol) inline output`."""
        names = [self.expect_name("the name of a relation")]
        while self.accept(","):
            names.append(self.expect_name("the name of a relation"))
        attributes = self.attributes()
        qualifiers, requests = self.qualifiers()
        span = self.since(begin)
        items: list[nodes.Item] = [
            nodes.Declaration(name.text, attributes, tuple(qualifiers), span=span) for name in names
        ]
        for word in requests:
            items += [nodes.Directive(word.text, name.text, span=self.span(word)) for name in names]
        return items

    def attributes(self) -> tuple[nodes.Attribute, ...]:
        opening = self.expect("(", "`(` and the attributes")
        if self.accept(")"):
            return ()
        attributes = [self.attribute()]
        while self.accept(","):
            attributes.append(self.attribute())
        self.expect(")", "`,` or `)`", opened=opening)
        return tuple(attributes)

    def attribute(self) -> nodes.Attribute:
        begin = self.at
        name = self.expect_name("the name of an attribute")
        self.expect(":", "`:` and a type", help=f"write `{name.text}: number`")
        type = self.type_name()
        where: tuple[nodes.Comparison, ...] = ()
        if self.is_word("where"):
            self.at += 1
            where = self.attribute_condition(name.text)
        return nodes.Attribute(name.text, type, where, span=self.since(begin))

    def attribute_condition(self, name: str) -> tuple[nodes.Comparison, ...]:
        """After `where`: `w >= 0`, `0 <= w` or `0 <= w <= 1`, with the attribute on the left of each comparison."""
        begin = self.at
        help = f"a condition compares `{name}` with numbers: `{name} >= 0` or `0 <= {name} <= 1`"
        parts: list[nodes.Term] = [self.term()]
        signs: list[str] = []
        while self.kind in COMPARISONS or self.at_less():
            signs.append(self.comparison_sign())
            parts.append(self.term())
        found: list[nodes.Comparison] = []
        for left, sign, right in zip(parts, signs, parts[1:], strict=False):
            if _is_number(left):
                left, sign, right = right, _MIRRORED.get(sign, sign), left
            if left != nodes.Variable(name) or not _is_number(right) or sign not in _MIRRORED:
                raise self.error("E0101", "this is not a condition on the column", self.since(begin), help)
            found.append(nodes.Comparison(sign, left, right, span=self.since(begin)))
        if not 1 <= len(found) <= 2:
            raise self.error("E0101", "this is not a condition on the column", self.since(begin), help)
        return tuple(found)

    def type_name(self) -> str:
        """A type: a name, or a name with sizes such as `decimal(10, 2)`."""
        name = self.expect_name("the name of a type").text
        opening = self.token
        if not self.accept("("):
            return name
        sizes = [self.expect("number", "a size").text]
        while self.accept(","):
            sizes.append(self.expect("number", "a size").text)
        self.expect(")", "`,` or `)`", opened=opening)
        return f"{name}({','.join(sizes)})"

    def qualifiers(self) -> tuple[list[str], list[Token]]:
        """Words after a declaration. `input`, `output` and `printsize` are directives in an old spelling."""
        kept: list[str] = []
        requests: list[Token] = []
        while self.at_qualifier():
            word = self.advance()
            if word.text in RELATION_DIRECTIVES:
                requests.append(word)
            elif word.text == "choice" and self.kind == "-" and self.is_word("domain", ahead=1):
                self.at += 2
                kept.append("choice-domain " + self.choice_domains())
            else:
                kept.append(word.text)
        return kept, requests

    def at_qualifier(self) -> bool:
        token, following = self.token, self.tokens[self.at + 1]
        if token.kind != "name" or following.kind in _NOT_A_QUALIFIER_BEFORE:
            return False
        if following.kind == "." and not self.starts_directive(self.at + 1):
            return False  # a fact without arguments
        return token.text in QUALIFIERS or not self.on_new_line(self.at)

    def choice_domains(self) -> str:
        domains = [self.choice_domain()]
        while self.accept(","):
            domains.append(self.choice_domain())
        return ", ".join(domains)

    def choice_domain(self) -> str:
        opening = self.token
        if not self.accept("("):
            return self.expect_name("the name of an attribute").text
        names = [self.expect_name("the name of an attribute").text]
        while self.accept(","):
            names.append(self.expect_name("the name of an attribute").text)
        self.expect(")", "`,` or `)`", opened=opening)
        return f"({', '.join(names)})"

    def database(self) -> list[nodes.Item]:
        """`database({arc(X: Integer, Y: Integer), ...}).`; the `.` may be missing."""
        self.at += 1
        opening = self.expect("(")
        self.expect("{")
        items: list[nodes.Item] = []
        while self.kind != "}":
            begin = self.at
            name = self.expect_name("the name of a relation or `}`")
            attributes = self.attributes()
            items.append(nodes.Declaration(name.text, attributes, base=True, span=self.since(begin)))
            if not self.accept(","):
                break
        self.expect("}", "`,` or `}`")
        self.expect(")", opened=opening)
        if self.kind == "." and (self.touches(self.at - 1) or not self.starts_directive(self.at)):
            self.at += 1
        return items

    # --- types -------------------------------------------------------------------------------------------------------

    def type_declaration(self, begin: int, word: str) -> nodes.TypeDeclaration:
        name = self.expect_name("the name of a type").text
        if word != "type":
            return nodes.TypeDeclaration(name, (word.removesuffix("_type"),), True, span=self.since(begin))
        if self.accept("<:"):
            parents = (self.type_name(),)
            return nodes.TypeDeclaration(name, parents, True, span=self.since(begin))
        if self.accept("="):
            if self.kind in ("[", "{"):
                raise self.error("E0109", "record types are not supported", self.token, "give each part a column")
            members = [self.type_name()]
            while self.accept("|"):
                members.append(self.type_name())
            if self.kind == "{":
                raise self.error("E0109", "algebraic types are not supported", self.token, "give each part a column")
            return nodes.TypeDeclaration(name, tuple(members), False, span=self.since(begin))
        return nodes.TypeDeclaration(name, ("symbol",), True, span=self.since(begin))

    # --- input, output and the rest ----------------------------------------------------------------------------------

    def relation_directives(self, kind: str) -> list[nodes.Item]:
        """After `.input`: `A, B(IO=file)`. Options hold for the relations since the last options."""
        items: list[nodes.Item] = []
        waiting: list[Token] = []
        while True:
            waiting.append(self.expect_name("the name of a relation"))
            options = self.options() if self.kind == "(" else None
            more = self.accept(",")
            if options is not None or not more:
                items += [nodes.Directive(kind, name.text, options or (), span=self.span(name)) for name in waiting]
                waiting = []
            if not more:
                return items

    def options(self) -> tuple[tuple[str, _OptionValue], ...]:
        opening = self.expect("(")
        if self.accept(")"):
            return ()
        options = [self.option()]
        while self.accept(","):
            options.append(self.option())
        self.expect(")", "`,` or `)`", opened=opening)
        return tuple(options)

    def option(self) -> tuple[str, _OptionValue]:
        name = self.expect_name("the name of an option")
        self.expect("=", help=f"an option is written `{name.text}=value`")
        return name.text, self.option_value()

    def option_value(self) -> _OptionValue:
        negative = self.accept("-")
        token = self.token
        if token.kind not in ("number", "string", "name") or (negative and token.kind != "number"):
            raise self.unexpected("a value (a string, a number, a name, true or false)")
        self.at += 1
        try:
            if token.kind == "number":
                return read_number(token.text, negative)[0]
            if token.kind == "string":
                return read_string(token.text)
        except LiteralError as error:
            raise self.error("E0105", error.message, token, error.help) from None
        return token.text == "true" if token.text in ("true", "false") else token.text

    def pragma(self, begin: int) -> nodes.Pragma:
        words = [self.expect("string", "a quoted name")]
        if self.kind == "string":
            words.append(self.advance())
        try:
            text = " ".join(write_string(read_string(word.text)) for word in words)
        except LiteralError as error:
            raise self.error("E0106", error.message, self.since(begin), error.help) from None
        return nodes.Pragma("pragma", text, span=self.since(begin))

    def plan(self, begin: int) -> nodes.Pragma:
        """`.plan 0:(1,2), 1:(2,1)`: the order of goals for each version of the rule before."""
        plans = [self.plan_version()]
        while self.accept(","):
            plans.append(self.plan_version())
        return nodes.Pragma("plan", ", ".join(plans), span=self.since(begin))

    def plan_version(self) -> str:
        version = self.expect("number", "the number of a version").text
        self.expect(":")
        opening = self.expect("(")
        order = [self.expect("number", "the number of a goal").text]
        while self.accept(","):
            order.append(self.expect("number", "the number of a goal").text)
        self.expect(")", "`,` or `)`", opened=opening)
        return f"{version}:({','.join(order)})"


def _is_number(term: nodes.Term) -> bool:
    match term:
        case nodes.Call("neg", (inner,)):
            return _is_number(inner)
        case nodes.Constant(value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return False
