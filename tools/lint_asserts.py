"""Assertions of tests that hold whatever the tested code does."""
import glob
import os
import re

CALL = re.compile(r"\b(CHECK|REQUIRE)(?:_FALSE)?\(")
SEARCH = re.compile(r"\.(find|starts_with|ends_with)\(")
TEXT = re.compile(r'"(?:[^"\\]|\\.)+"|\'')   # a literal that is not empty
FOUND = re.compile(r"\s*[!=]=\s*(?:[\w:.]*npos|0)\b")
MATCHER = re.compile(r"\bCatch::(?:Contains|StartsWith|EndsWith)\(")
GUARD = re.compile(r"\bif \(")
STRING = re.compile(r'R"([^(\s]*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'', re.S)


def argument(source, begin):
    """(text, end) of what is in the parentheses that have just been opened."""
    depth, at = 1, begin
    while depth and at < len(source):
        literal = STRING.match(source, at) if source[at] in "\"'R" and not source[at - 1].isalnum() else None
        if literal:
            at = literal.end()
            continue
        depth += {"(": 1, ")": -1}.get(source[at], 0)
        at += 1
    return source[begin:at - 1], at


def complaints_of(path, source):
    found = []

    def complain(at, why):
        found.append(f"{path}:{source.count(chr(10), 0, at) + 1}: {why}")

    for call in CALL.finditer(source):
        text, end = argument(source, call.end())
        for search in SEARCH.finditer(text):
            part, after = argument(text, search.end())
            if not TEXT.search(part) and (search[1] != "find" or FOUND.match(text, after)):
                complain(call.start(), f"`{part.strip()}` may be empty, and every text contains that: use {call[1]}_THAT with kube::test::contains()")
    for matcher in MATCHER.finditer(source):
        part, _ = argument(source, matcher.end())
        if not TEXT.search(part):
            complain(matcher.start(), f"`{part.strip()}` may be empty, and every text contains that: use the matchers of kube/tests/catch.hh")
    for guard in GUARD.finditer(source):
        condition, end = argument(source, guard.end())
        assertion = re.compile(r"\s*\{?\s*(?:CHECK|REQUIRE)\(").match(source, end)
        if assertion and argument(source, assertion.end())[0].strip() == condition.strip():
            complain(assertion.start(), "the condition around it implies it")
    return found


def complaints(root):
    found = []
    for pattern in ("tests/**/*.cc", "tests/**/*.hh", "subprojects/*/tests/**/*.cc", "subprojects/*/tests/**/*.hh"):
        for path in sorted(glob.glob(os.path.join(root, pattern), recursive=True)):
            if path.endswith("kube/tests/catch.hh"):   # it has the matchers that refuse
                continue
            with open(path) as f:
                found += complaints_of(os.path.relpath(path, root), f.read())
    return found
