"""`match`: the same texts on every engine, whether the pattern stands in the program or comes from the facts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import emberlog
from emberlog import patterns
from emberlog.patterns import BadPattern, read
from engine.places import Place
from naive.values import matches

# A pattern, texts that it matches, texts that it does not.
CASES: list[tuple[str, list[str], list[str]]] = [
    ("(?i)é", ["é", "É"], ["e", "E"]),
    ("(?i)straße", ["STRAẞE", "Straße"], ["STRASSE"]),
    ("(?i)[a-z]+", ["AbC", "\N{KELVIN SIGN}", "\N{LATIN SMALL LETTER LONG S}"], ["1", ""]),
    ("(?i)[^é]", ["e"], ["É", "é"]),
    ("(?i:a)b", ["Ab", "ab"], ["aB"]),
    ("(a(?i)b)c", ["aBc"], ["aBC", "ABc"]),
    ("(?i)σ", ["Σ", "ς", "σ"], ["s"]),
    ("a.b", ["a\rb", "a\u2028b", "a\u0085b", "a😀b"], ["a\nb", "ab"]),
    ("(?s)a.b", ["a\nb"], ["ab"]),
    ("a$", ["a"], ["a\n", "a\r"]),
    ("a$\\n", [], ["a\n", "a"]),
    ("(?m)a$\\n^b", ["a\nb"], ["a\rb"]),
    ("\\d+", ["12"], ["\N{ARABIC-INDIC DIGIT ONE}", ""]),
    ("\\w+", ["a_1"], ["é", "a b"]),
    ("\\W", ["é", " "], ["a"]),
    ("\\s", [" ", "\t", "\v", "\f"], ["\u00a0", "\u2003"]),
    ("[\\s\\d]+", ["1 2\v"], ["a"]),
    ("a\\b.*", ["a é", "aé", "a"], ["ab"]),
    ("é\\b.*", ["éa"], ["é a", "é"]),
    ("a\\B.*", ["ab"], ["aé", "a"]),
    ("[a-c-]+", ["a-b"], ["d"]),
    ("[]a]+", ["]a"], ["b"]),
    ("[$.^]+", ["$.^"], ["a"]),
    ("a{2,3}", ["aa", "aaa"], ["a", "aaaa"]),
    ("x{", ["x{"], ["x"]),
    ("(ab|c)*d?", ["", "abcd", "cc"], ["abd d"]),
    ("a|", ["a", ""], ["b"]),
    ("(?P<year>[0-9]{4})-.*", ["2024-01"], ["24-01"]),
    ("\\x{1F600}\\u00e9\\t", ["😀é\t"], ["😀e\t"]),
    ("'\"%_\\\\", ["'\"%_\\"], ["'\"%_"]),
]
REFUSED = (
    "(", "a)", "[a", "*a", "a**", "a*+", "(?=a)", "(?<!a)", "(a)\\1", "(?>a)", "(?x)a", "(?U)a", "\\p{L}", "\\Z", "\\h",
    "\\Qa\\E", "[[:alpha:]]", "[a&&b]", "a{3,2}", "a{1001}", "(a{100}){100}", "^*", "\\", "a{,3}", "[b-a]",
)  # fmt: skip


def test_a_pattern_of_the_program_means_the_same_everywhere(place: Place) -> None:
    rules = [f"p({i}, T) <- t(T), match({json.dumps(pattern)}, T)." for i, (pattern, _, _) in enumerate(CASES)]
    texts = sorted({text for _, good, bad in CASES for text in (*good, *bad)})
    found = set(place.run("\n".join(rules), {"t": [(text,) for text in texts]})["p"].rows())
    for i, (pattern, good, bad) in enumerate(CASES):
        assert [text for text in good if (i, text) not in found] == [], pattern
        assert [text for text in bad if (i, text) in found] == [], pattern
        if "(?i)" not in pattern[1:]:
            assert [text for text in texts if matches(pattern, text)] == [t for t in texts if (i, t) in found], pattern


def test_a_pattern_of_the_facts_means_the_same_everywhere(place: Place) -> None:
    pairs = [(pattern, text) for pattern, good, bad in CASES for text in (*good, *bad)]
    found = place.run("p(P, T) <- t(P, T), match(P, T). n(P, T) <- t(P, T), !match(P, T).", {"t": pairs})
    assert sorted(found["p"].rows()) == sorted({(pattern, text) for pattern, good, _ in CASES for text in good})
    assert sorted(found["n"].rows()) == sorted({(pattern, text) for pattern, _, bad in CASES for text in bad})


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_engines_read_differently_is_no_pattern(pattern: str, local: Place) -> None:
    with pytest.raises(BadPattern):
        read(pattern)
    with pytest.raises(emberlog.ProgramError, match="not a regular expression"):
        local.run(f"p(T) <- t(T), match({json.dumps(pattern)}, T).", {"t": [("a",)]})


def test_a_fact_that_is_no_pattern_counts_only_where_the_rest_of_the_rule_holds(place: Place) -> None:
    sources = {"t": [("a*+", "aa"), ("a+", "aa")], "good": [("a+",)]}
    assert place.run("p(T) <- t(P, T), match(P, T), good(P).", sources)["p"].rows() == [("aa",)]
    with pytest.raises(emberlog.DataError, match=r"P = 'a\*\+'.*is not a regular expression: possessive"):
        place.run("p(T) <- t(P, T), match(P, T).", sources)["p"].rows()


def test_patterns_are_read_in_workers_that_do_not_have_the_package(tmp_path: Path) -> None:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(patterns)  # type: ignore[no-untyped-call]
    try:
        sent = cloudpickle.dumps(patterns.for_java_or_none)  # type: ignore[no-untyped-call]
    finally:
        cloudpickle.unregister_pickle_by_value(patterns)  # type: ignore[no-untyped-call]
    text = """
import sys; sys.modules["emberlog"] = None
from pathlib import Path
from pyspark import cloudpickle
read = cloudpickle.loads(Path(sys.argv[1]).read_bytes())
print(read("(?i)a.b"), read("("), read("(?i)a.b"))
"""
    (tmp_path / "function").write_bytes(sent)
    command = [sys.executable, "-c", text, str(tmp_path / "function")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == r"\A(?:[Aa][^\x{A}][Bb])\z None \A(?:[Aa][^\x{A}][Bb])\z" + "\n"


def test_long_texts(place: Place) -> None:
    goals = [f'match("{pattern}", T)' for pattern in ("(a|b)*", "(ab)*", "(ab|c)*", "(a+b)*", "(a?b?)*", "[^c]*")]
    found = place.run(f"p(N) <- t(T), {', '.join(goals)}, N = strlen(T).", {"t": [("ab" * 50_000,), ("ab",), ("ac",)]})
    assert sorted(found["p"].rows()) == [(2,), (100_000,)]
    facts = {"t": [("(ab|c)*", "ab" * 50_000), ("(ab|c)*", "ab" * 50_000 + "a"), ("(a+b)*", "ab")]}
    found = place.run("p(P, N) <- t(P, T), match(P, T), N = strlen(T).", facts)
    assert sorted(found["p"].rows()) == [("(a+b)*", 2), ("(ab|c)*", 100_000)]


@pytest.mark.parametrize(("pattern", "good", "bad"), CASES)
def test_python_reads_patterns_alike(pattern: str, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not patterns.matches(text, pattern)] == []
    assert [text for text in bad if patterns.matches(text, pattern)] == []
    assert patterns.matches("a", "(") is None


def test_patterns_that_are_nested_deeply(local: Place) -> None:
    with pytest.raises(emberlog.ProgramError, match="nested too deeply"):
        local.run(f'p(T) <- t(T), match("{"(" * 5000}a{")" * 5000}", T).', {"t": [("a",)]})
