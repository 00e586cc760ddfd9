"""Formulas: what stands in the body of a rule."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from emberlog.syntax import nodes
from emberlog.syntax.extrema import Extremum
from emberlog.syntax.terms import TermParser
from emberlog.syntax.tokens import Token
from emberlog.syntax.vocabulary import AGGREGATES, COLLECTORS, COMPARISONS, DELTAS, EXTREMA, INFIX, INFIX_WORDS, TESTS

# Spellings of other languages, and what is written here.
_MISSPELT = {"==": "=", "===": "=", "=<": "<=", "=>": ">=", "=!=": "!=", "\\=": "!="}
_AFTER_TERM = frozenset(INFIX) | COMPARISONS | frozenset(_MISSPELT) | {"<-", "**"}
_AFTER_NULLARY = frozenset({",", ";", ".", ")", "}", "end"})
_UNTIL_SHAPE = "a condition such as `{sum[delta r] < 0.001}`"


class FormulaParser(TermParser):
    """Reads bodies. `nested` is set inside brackets, where the goals about a whole rule may not stand."""

    # Words for goals (`sort`, `limit`) that this program uses as names of relations.
    relation_words: frozenset[str] = frozenset()

    @cached_property
    def extrema(self) -> list[Extremum]:
        """The goals `is_min` and `is_max` of the rule at hand."""
        return []

    def body(self) -> nodes.Formula:
        """The bodies of a rule, after its first arrow: `a, b; :- c; {until}`, up to the `.`."""
        begin = self.at
        parts = [self.conjunction(nested=False)]
        span = self.since(begin)
        while self.accept(";"):
            self.accept("<-")
            if self.kind in (".", "end"):  # a `;` after the last body
                break
            parts.append(self.conjunction(nested=False))
            span = self.since(begin)
        return parts[0] if len(parts) == 1 else nodes.Or(tuple(parts), span=span)

    def alternatives(self) -> nodes.Formula:
        begin = self.at
        parts = [self.conjunction(nested=True)]
        while self.accept(";"):
            parts.append(self.conjunction(nested=True))
        return parts[0] if len(parts) == 1 else nodes.Or(tuple(parts), span=self.since(begin))

    def conjunction(self, nested: bool) -> nodes.Formula:
        begin = self.at
        parts = [self.goal(nested)]
        while self.goes_on():
            parts.append(self.goal(nested))
        return parts[0] if len(parts) == 1 else nodes.And(tuple(parts), span=self.since(begin))

    def goes_on(self) -> bool:
        """Step over what joins a goal to the next one."""
        token = self.token
        if token.kind == "&&" or self.is_word("and"):
            self.report("E0108", f"`{token.text}` does not join goals", token, "write `,`")
            self.at += 1
            return True
        return self.accept(",")

    def goal(self, nested: bool) -> nodes.Formula:
        token = self.token
        match token.kind:
            case "!":
                return self.negation(nested)
            case "(" if self.bracket(self.at)[0] not in _AFTER_TERM:
                return self.group(token)
            case "{":
                return self.about_rule(self.until, nested)
            case "name":
                return self.named_goal(token, nested)
            case "parameter" if self.tokens[self.at + 1].kind == "(":
                return self.atom()
            case "," | ";" | "." | ")" | "}" | "<-" | "end":
                raise self.unexpected("a goal (a relation, a comparison or a negation)")
            case _:
                return self.comparison()

    def negation(self, nested: bool) -> nodes.Formula:
        begin = self.at
        sign = self.advance()
        self.descend(sign)
        inner = self.goal(nested=True)
        self.ascend()
        return nodes.Not(inner, span=self.since(begin))

    def group(self, opening: Token) -> nodes.Formula:
        self.at += 1
        self.descend(opening)
        inner = self.alternatives()
        self.expect(")", "`,`, `;` or `)`", opened=opening)
        self.ascend()
        return inner

    def named_goal(self, token: Token, nested: bool) -> nodes.Formula:
        name = token.text
        if name == "not":
            return self.negation(nested)
        following = self.tokens[self.at + 1]
        if following.kind == "(":
            return self.applied_goal(name, nested)
        if following.kind in _AFTER_NULLARY or self.starts_next_clause(self.at + 1):
            self.at += 1
            if name in ("true", "false"):
                return nodes.Truth(name == "true", span=self.span(token))
            return nodes.Atom(name, (), span=self.span(token))
        return self.comparison()

    def starts_next_clause(self, index: int) -> bool:
        """Does the text look as if a `.` were missing before this token?"""
        token = self.tokens[index]
        return token.kind == "name" and token.text not in INFIX_WORDS and self.on_new_line(index)

    def applied_goal(self, name: str, nested: bool) -> nodes.Formula:
        """A goal that starts with a name and a bracket."""
        after, commas = self.bracket(self.at + 1)
        if after in _AFTER_TERM or (after == ":" and name in COLLECTORS):
            return self.comparison()
        inside = self.tokens[self.at + 2].kind
        if name == "sort" and inside == "(" and name not in self.relation_words:
            return self.about_rule(self.sort, nested)
        if name == "limit" and commas == 0 and inside in ("number", "parameter") and name not in self.relation_words:
            return self.about_rule(self.limit, nested)
        if name in EXTREMA and inside == "(" and name not in self.relation_words:
            return self.about_rule(self.extremum, nested)
        if name in TESTS:
            begin = self.at
            self.at += 1
            call = nodes.Call(name, self.arguments(), span=self.since(begin))
            return nodes.Test(call, span=call.span)
        return self.atom()

    def atom(self) -> nodes.Atom:
        """`p(t, ...)`, `p(column=t, ...)`, `p`, or a list that the caller gives: `$NAME(t)`."""
        begin = self.at
        name = self.advance() if self.kind == "parameter" else self.expect_name("the name of a relation")
        if self.kind != "(":
            return nodes.Atom(name.text, (), span=self.since(begin))
        arguments, names = self.maybe_named_arguments()
        return nodes.Atom(name.text, arguments, names, span=self.since(begin))

    def comparison(self) -> nodes.Comparison:
        begin = self.at
        left = self.term()
        operator = self.comparison_sign()
        right = self.term()
        if self.kind in COMPARISONS or self.kind in _MISSPELT:
            help = "split it in two: `a < b, b < c`"
            raise self.unexpected("`,`, `;` or the end of the goal", help)
        return nodes.Comparison(operator, left, right, span=self.since(begin))

    def comparison_sign(self) -> str:
        token = self.token
        if token.kind in _MISSPELT:
            meant = _MISSPELT[token.kind]
            self.report("E0108", f"`{token.text}` is not an operator", token, f"write `{meant}`")
            self.at += 1
            return meant
        if self.at_less():
            self.take_less()
            return "<"
        if token.kind not in COMPARISONS:
            raise self.unexpected("a comparison (= != < <= > >=)", self.why_no_comparison())
        self.at += 1
        return token.kind

    def why_no_comparison(self) -> str | None:
        token, before = self.token, self.tokens[self.at - 1]
        if token.kind == "<-":
            return "a rule has one arrow; a further body starts after `;`"
        if before.kind == "name" and token.kind in ("[", "{"):
            return f"the arguments of a relation stand in `()`: `{before.text}(...)`"
        if token.kind == "name" and token.text in ("is", "eq"):
            return "write `=`"
        if token.kind in ("name", "!"):
            return "a `,` may be missing between two goals"
        return None

    # --- goals about the whole rule ----------------------------------------------------------------------------------

    def about_rule(self, read: Callable[[], nodes.Formula], nested: bool) -> nodes.Formula:
        begin = self.at
        goal = read()
        if nested:
            help = "put it last in the rule, outside of brackets and negation"
            self.report("E0101", "this says how the whole rule is evaluated", self.since(begin), help)
        return goal

    def sort(self) -> nodes.Formula:
        """`sort((Z, desc), (X, asc))`"""
        begin = self.at
        self.at += 1
        opening = self.expect("(")
        keys = [self.sort_key()]
        while self.accept(","):
            keys.append(self.sort_key())
        self.expect(")", "`,` or `)`", opened=opening)
        return nodes.Sort(tuple(keys), span=self.since(begin))

    def sort_key(self) -> tuple[nodes.Variable, bool]:
        opening = self.expect("(", "a key such as `(X, desc)`")
        variable = self.expect_name("a variable")
        descends = False
        if self.accept(","):
            order = self.expect_name("`asc` or `desc`")
            if order.text.lower() not in ("asc", "desc"):
                raise self.error("E0101", f"`{order.text}` is no order", order, "write `asc` or `desc`")
            descends = order.text.lower() == "desc"
        self.expect(")", opened=opening)
        return nodes.Variable(variable.text, span=self.span(variable)), descends

    def extremum(self) -> nodes.Formula:
        """`is_min((X, Z), D)`: kept beside the body, until the rule's head is known to have that aggregate."""
        begin = self.at
        function = EXTREMA[self.advance().text]
        opening = self.expect("(")
        inner = self.expect("(", "the groups, in brackets")
        groups = [self.expect_name("a variable").text]
        while self.accept(","):
            groups.append(self.expect_name("a variable").text)
        self.expect(")", "`,` or `)`", opened=inner)
        self.expect(",")
        value = self.expect_name("the variable whose extremum it is").text
        self.expect(")", opened=opening)
        place = nodes.Truth(True, span=self.since(begin))
        self.extrema.append(Extremum(function, frozenset(groups), value, place, place.span))
        return place

    def limit(self) -> nodes.Formula:
        """`limit(10)`"""
        begin = self.at
        self.at += 1
        (count,) = self.arguments()
        return nodes.Limit(count, span=self.since(begin))

    def until(self) -> nodes.Formula:
        """`{sum[delta r] < 0.001}`"""
        begin = self.at
        opening = self.expect("{")
        function = self.expect_name(_UNTIL_SHAPE)
        if function.text not in AGGREGATES:
            self.at -= 1
            raise self.unexpected(_UNTIL_SHAPE)
        bracket = self.advance()
        closing = {"[": "]", "(": ")", "<": ">"}.get(bracket.kind)
        if closing is None:
            self.at -= 1
            raise self.unexpected("`[`", f"write {_UNTIL_SHAPE}")
        variable = self.changed_variable()
        self.expect(closing, opened=bracket)
        operator = self.comparison_sign()
        bound = self.term()
        self.expect("}", opened=opening)
        canonical = AGGREGATES[function.text][0]
        return nodes.Until(canonical, variable, operator, bound, span=self.since(begin))

    def changed_variable(self) -> str:
        """`delta r`, `Δ r` or `Δr`: the name of the variable."""
        sign = self.token
        if sign.kind == "name" and sign.text in DELTAS:
            self.at += 1
            return self.expect_name("the variable whose change is measured").text
        if sign.kind == "name" and sign.text[0] in DELTAS and not sign.text[1].isdecimal():
            self.at += 1
            return sign.text[1:]
        raise self.unexpected("`delta` and a variable", f"write {_UNTIL_SHAPE}")
