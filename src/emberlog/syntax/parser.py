"""Program text to syntax tree.

The way down: `parser` (clauses, and going on after a mistake) -> `directives` -> `formulas` -> `terms` -> `cursor`
(tokens and mistakes) -> `tokens`. Each module adds one layer of the grammar to one recursive-descent parser.
All mistakes of a text are collected and raised as one ProgramError.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager

from emberlog.diagnostics import Diagnostic, Label, ProgramError
from emberlog.source import Source, Span
from emberlog.syntax import nodes
from emberlog.syntax.cursor import Rejected, describe
from emberlog.syntax.directives import DirectiveParser
from emberlog.syntax.extrema import aggregated, without
from emberlog.syntax.facts import read_fact
from emberlog.syntax.tokens import Token, scan
from emberlog.syntax.vocabulary import COMPARISONS, DIRECTIVES, EXTREMA

MAX_HEIGHT = 150
"""How high a clause's tree may be: `1 + 1 + ...` grows one level for each sign, and later stages recurse on it."""

_LABEL = re.compile(r"r[0-9]+")


def parse(source: Source) -> nodes.Program:
    """The program that `source` says. Raises ProgramError with every syntax error in it."""
    with _no_garbage_collection():
        tokens, found = scan(source)
        parser = ProgramParser(source, tokens, bigdatalog=_declares_database(tokens))
        parser.relation_words = frozenset(word for word in ("sort", "limit", *EXTREMA) if _names_relation(tokens, word))
        items = parser.program()
    _raise_any([*found, *parser.found])
    return nodes.Program(tuple(items), parser.bigdatalog, span=Span(source, 0, len(source.text)))


def parse_goal(text: str, *, bigdatalog: bool = False) -> nodes.Goal:
    """The goal `tc(1, Y)`, with or without `?-` before and `.` after it.

    `bigdatalog` says that the goal belongs to a program with `database({...})`: lower-case names are constants.
    """
    source = Source("<goal>", text)
    tokens, found = scan(source)
    parser = ProgramParser(source, tokens, bigdatalog=bigdatalog)
    goal = None
    try:
        goal = parser.lone_goal()
        parser.check_height(goal, tokens[0])
    except Rejected as rejected:
        parser.record(rejected)
    _raise_any([*found, *parser.found])
    assert goal is not None
    return goal


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Pause the collector: a growing tree has no cycles to find, and looking for them doubles the time to read it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _declares_database(tokens: list[Token]) -> bool:
    for index, token in enumerate(tokens):
        if token.text == "database" and [later.kind for later in tokens[index + 1 : index + 3]] == ["(", "{"]:
            return True
    return False


def _names_relation(tokens: list[Token], word: str) -> bool:
    """Does the program declare a relation `word`, or have a clause for it?"""
    before = "."
    for index, token in enumerate(tokens):
        if token.text == word:
            following = [later.kind for later in tokens[index + 1 : index + 4]]
            if following == ["(", "name", ":"] or before in (".", "fact"):
                return True
        elif token.kind == "fact" and token.text.startswith(f"{word}("):
            return True
        before = token.kind
    return False


def _raise_any(found: list[Diagnostic]) -> None:
    if found:
        raise ProgramError(sorted(found, key=lambda diagnostic: diagnostic.span.start if diagnostic.span else 0))


class ProgramParser(DirectiveParser):
    """Reads a program clause by clause."""

    def program(self) -> list[nodes.Item]:
        items: list[nodes.Item] = []
        while self.kind != "end":
            begin = self.at
            token = self.tokens[begin]
            if token.kind == "fact":
                self.at += 1
                items.append(read_fact(self.source, token.text, token.start))
                continue
            try:
                items += self.item()
                if self.at - begin > MAX_HEIGHT:
                    self.check_height(items[-1], token)
            except Rejected as rejected:
                self.record(rejected)
                self.recover(begin)
        return items

    def record(self, rejected: Rejected) -> None:
        if rejected.diagnostic is not None:
            self.found.append(rejected.diagnostic)
        self.depth = 0

    def recover(self, begin: int) -> None:
        """Go on where the next clause seems to start: after a `.`, or at a line that is not indented more."""
        margin = self.column(begin)
        while self.kind != "end":
            if self.at > begin and self.starts_item_line(margin):
                return
            if self.advance().kind == ".":
                return

    def starts_item_line(self, margin: int) -> bool:
        if not self.on_new_line(self.at) or self.column(self.at) > margin:
            return False
        return self.kind in ("name", "?-") or self.starts_directive(self.at)

    # --- items -------------------------------------------------------------------------------------------------------

    def item(self) -> list[nodes.Item]:
        token = self.token
        match token.kind:
            case "name":
                following = self.tokens[self.at + 1].kind
                if token.text == "database" and following == "(" and self.tokens[self.at + 2].kind == "{":
                    return self.database()
                if following in (".", ":") and self.skip_label():
                    return []
                return [self.rule()]
            case "." if self.starts_directive(self.at):
                return self.directive()
            case "?-":
                return [self.goal_item()]
        raise self.unexpected("a fact, a rule, a directive or a goal", self.why_no_item())

    def why_no_item(self) -> str | None:
        match self.kind:
            case ".":
                return "a directive has no `.` at its end, and a clause only one"
            case "<-":
                return "a rule starts with its head; a goal starts with `?-`"
            case "!":
                return "only bodies may negate"
        return None

    def skip_label(self) -> bool:
        """Step over a label as papers print them: `r1.`, `r1.1.` or `r1:` before a clause on the same line."""
        if not _LABEL.fullmatch(self.token.text):
            return False
        index = self.at + 1
        if self.tokens[index].kind == "." and self.tokens[index + 1].kind == "number":
            index += 2
        if self.tokens[index].kind not in (".", ":"):
            return False
        clause, following = self.tokens[index + 1 : index + 3]
        if "\n" in self.source.text[self.token.start : clause.start]:
            return False
        if clause.kind != "fact" and not (clause.kind == "name" and following.kind in ("(", "<-", ",")):
            return False
        self.at = index + 1
        return True

    def rule(self) -> nodes.Rule:
        begin = self.at
        self.extrema.clear()  # of a rule that was given up
        heads = [self.head()]
        while self.accept(","):
            heads.append(self.head())
        body = None
        expected = "`,`, `:-` or `.`"
        if self.accept("<-"):
            body = self.body()
            expected = "`,`, `;` or `.`"
            if self.kind == "end" and self.tokens[self.at - 1].kind == ";":
                return self.with_extrema(nodes.Rule(tuple(heads), body, span=self.since(begin)))
        self.end_clause(begin, expected)
        return self.with_extrema(nodes.Rule(tuple(heads), body, span=self.since(begin)))

    def with_extrema(self, rule: nodes.Rule) -> nodes.Rule:
        """The rule with the aggregates that its goals `is_min` and `is_max` say."""
        goals = list(self.extrema)
        self.extrema.clear()
        for goal in goals:
            assert rule.body is not None
            heads = tuple(aggregated(head, rule.body, goal) for head in rule.heads)
            known = tuple(head for head in heads if head is not None)
            if len(known) < len(heads):
                help = "name the head's columns, or those of an atom of the head's relation: the groups, then the value"
                raise self.error("E0110", f"`is_{goal.function}` is about nothing that the head keeps", goal.span, help)
            named = rule.named | goal.groups | {goal.value}
            rule = nodes.Rule(known, without(rule.body, goal), named=named, span=rule.span)
        return rule

    def head(self) -> nodes.Atom:
        begin = self.at
        name = self.expect_name("the name of a relation")
        arguments = self.head_arguments() if self.kind == "(" else ()
        return nodes.Atom(name.text, arguments, span=self.since(begin))

    def end_clause(self, begin: int, expected: str) -> None:
        """Step over the `.`. If it is missing and the next clause starts here, say so and go on with that."""
        token, word = self.tokens[self.at : self.at + 2]
        before_directive = self.starts_directive(self.at) and word.text in DIRECTIVES and self.on_new_line(self.at)
        if token.kind == "." and not before_directive:
            self.at += 1
            return
        if not before_directive and token.kind != "end" and not self.starts_item_line(self.column(begin)):
            raise self.unexpected(expected, self.why_no_end())
        last = self.tokens[self.at - 1]
        missing = Span(self.source, last.end - 1, last.end)
        found = f"`.{word.text}`" if before_directive else describe(token)
        labels = (Label(self.span(token), f"expected {expected}"), Label(missing, "a `.` is missing after this"))
        message = f"found {found}, expected {expected}"
        self.found.append(Diagnostic("E0102", message, labels, "end the clause with `.`"))

    def why_no_end(self) -> str | None:
        token = self.token
        match token.kind:
            case ")" | "]" | "}":
                return f"no bracket is open that this `{token.text}` closes"
            case "||" | "|":
                return "alternatives are joined by `;`"
            case "<-":
                return "a rule has one arrow; a further body starts after `;`"
            case "<=":
                return "an arrow is written `:-` or `<-`; rules that drop rows (subsumption) are not supported"
            case "name" if token.text == "or":
                return "alternatives are joined by `;`"
            case "name" | "!" | "(":
                return "a `,` may be missing between two goals"
        return None

    def goal_item(self) -> nodes.Goal:
        begin = self.at
        self.at += 1
        atom, rest = self.asked()
        if self.kind != "end":
            self.end_clause(begin, "`,` or `.`")
        return nodes.Goal(atom, rest, span=self.since(begin))

    def asked(self) -> tuple[nodes.Atom, nodes.Formula | None]:
        """The atom whose rows are asked for, and the conditions after it."""
        atom = self.atom()
        if self.kind in COMPARISONS:
            raise self.unexpected("`,` or `.`", "a goal begins with the atom whose rows it asks for")
        return atom, self.conjunction(nested=True) if self.accept(",") else None

    def lone_goal(self) -> nodes.Goal:
        """A text that is one goal and nothing else."""
        begin = self.at
        token = self.token
        if token.kind == "fact":
            self.at += 1
            atom, rest = read_fact(self.source, token.text, token.start).heads[0], None
        else:
            self.accept("?-")
            atom, rest = self.asked()
        self.accept(".")
        if self.kind != "end":
            raise self.unexpected("the end of the goal", "a goal is an atom, as in `tc(1, Y)`, and conditions on it")
        return nodes.Goal(atom, rest, span=self.since(begin))

    # --- height ------------------------------------------------------------------------------------------------------

    def check_height(self, item: nodes.Item, first: Token) -> None:
        """Reject a clause whose tree later stages could not walk by recursion."""
        level: list[object] = [item]
        for _ in range(MAX_HEIGHT):
            level = [child for node in level for child in _children(node)]
            if not level:
                return
        raise self.error("E0107", "this clause is nested too deeply", first, "split its long expression into rules")


def _children(node: object) -> tuple[object, ...]:
    match node:
        case nodes.Rule():
            return (*node.heads, *(() if node.body is None else (node.body,)))
        case nodes.Goal():
            return (node.atom, *(() if node.rest is None else (node.rest,)))
        case nodes.Atom() | nodes.Call():
            return node.arguments
        case nodes.Aggregate():
            return (*node.arguments, node.limit)
        case nodes.And() | nodes.Or():
            return node.parts
        case nodes.Not():
            return (node.formula,)
        case nodes.Comparison():
            return node.left, node.right
        case nodes.Test():
            return (node.call,)
        case nodes.Collect():
            return node.body, node.target
        case nodes.Until():
            return (node.bound,)
    return ()
