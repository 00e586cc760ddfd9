"""Every code that a mistake found by the analysis can have, and those of warnings: `docs/errors.md` explains."""

from __future__ import annotations

CODES = {
    # names
    "E0201": "unknown predicate",
    "E0202": "wrong number of arguments of a predicate",
    "E0203": "declared twice",
    "E0204": "unknown type",
    "E0205": "unknown function",
    "E0206": "wrong number of arguments of a function",
    "E0207": "a directive or goal names an unknown relation",
    "E0208": "no source for a base relation",
    "E0209": "an input without declared columns",
    "E0210": "a parameter without a value that can stand there",
    "E0211": "an aggregate where none may stand",
    "E0212": "different aggregates in one column",
    "E0213": "topk or limit without a positive whole number",
    "E0214": "unquoted constant",
    "E0215": "`_` where a value is needed",
    "E0216": "a goal with a computed argument",
    "E0217": "sort, limit or until in the wrong place",
    "E0218": "a body with too many alternatives",
    "E0219": "a qualifier that would change the answer",
    "E0220": "a pattern that is not a regular expression, or has what engines read differently",
    "E0221": "a condition on a column that is not a loaded number",
    "E0222": "an argument by name, for a column that there is not or that is named twice",
    "E0223": "a witness that a minimum or maximum cannot have here",
    "E0224": "an argument of a function that must be a constant of the program",
    # strata
    "E0301": "negation through recursion",
    "E0302": "a non-monotonic aggregate through recursion",
    "E0303": "sort or limit through recursion",
    "E0304": "several aggregates in a recursive predicate",
    "E0305": "an iteration whose rules do not agree on the index",
    "E0306": "a termination clause without recursion",
    # safety
    "E0401": "unbound variable in a head",
    "E0402": "a variable only in a negation",
    "E0403": "a variable only in a comparison",
    "E0404": "a variable only in a computed argument",
    "E0405": "a variable that only an aggregate's body binds",
    "E0406": "a variable that several aggregates' bodies could bind",
    # types
    "E0501": "type conflict",
    "E0502": "an operand that has no such operation",
    "E0503": "not a date",
    "E0504": "a number that does not fit its type",
    # verdicts
    "E0505": "an aggregate that is wrong inside recursion",
    "E0506": "an aggregate that is not known to be right inside recursion",
}

WARNINGS = {
    "W0201": "a variable that stands once in its rule",
    "W0202": "a relation without rules, facts or source",
    "W0203": "rules for a relation that has a registered source",
    "W0204": "a termination clause without effect",
    "W0600": "a folder for compiled loops that cannot be used, or is not to be trusted",
    "W0800": "rows dropped or collapsed, a file that may be read in another way than was meant, or an empty recursion",
}
