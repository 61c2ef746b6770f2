"""Draws mutants of C++ sources: small faults that the tests should find.

A mutant is one edit in the body of a function, or of a constant beside functions. The sources are read as tokens, in the layout of
clang-format: a binary operator has spaces around it, the brackets of a template have not.
"""
import collections
import random
import re

Mutant = collections.namedtuple("Mutant", "path kind begin end text")   # source[begin:end] is replaced by `text`
Token = collections.namedtuple("Token", "kind text begin end")

KINDS = ("comparison", "condition", "branch", "constant", "statement")

_TOKEN = re.compile(r"""
    (?P<space>\s+ | //[^\n]* | /\*.*?\*/)
  | (?P<directive>\#[^\n]*(?:\\\n[^\n]*)*)
  | (?P<string>(?:u8|[uUL])?R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)" | (?:u8|[uUL])?"(?:[^"\\\n]|\\.)*")
  | (?P<character>'(?:[^'\\\n]|\\.)+')
  | (?P<number>\.?\d(?:[\w.]|'(?=\w)|(?<=[eEpP])[+-])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<symbol><=>|->\*|<<=|>>=|\.\.\.|::|->|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.X | re.S)

_TURNED = {"==": ["!="], "!=": ["=="], "<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "&&": ["||"], "||": ["&&"]}
_NO_STATEMENT = {"if", "for", "while", "do", "else", "switch", "case", "default", "return", "co_return", "throw", "goto", "try", "catch", "using", "namespace",
                 "static", "static_assert", "const", "constexpr", "auto", "struct", "class", "enum", "union", "template", "typedef", "public", "private",
                 "protected", "operator"}
_PAIRS = {"(": ")", "[": "]", "{": "}"}


def tokens(source):
    """The tokens, without spaces, comments and directives."""
    return [Token(m.lastgroup, m[0], m.start(), m.end()) for m in _TOKEN.finditer(source) if m.lastgroup not in ("space", "directive")]


def _closers(found):
    """Index of an opening bracket -> index of the one that closes it."""
    closers, stack = {}, []
    for i, token in enumerate(found):
        if token.kind == "symbol" and token.text in _PAIRS:
            stack.append(i)
        elif token.kind == "symbol" and token.text in _PAIRS.values() and stack:
            closers[stack.pop()] = i
    return closers


def _bodies(found, closers):
    """(begin, end) of each outermost body of a function, as indices of its braces, and of each initializer of a `constexpr`."""
    bodies, i, head = [], 0, 0
    while i < len(found):
        text = found[i].text
        if text in (";", "}"):
            head = i + 1
        elif text == "{" and i in closers:
            words = [t.text for t in found[head:i]]
            if "namespace" in words or (words and words[0] in ("struct", "class", "union", "extern")):
                head = i + 1
            elif "enum" in words or "=" in words or "(" not in words:
                if "constexpr" in words:
                    bodies.append((i, closers[i]))
                i = closers[i]
            else:
                bodies.append((i, closers[i]))
                i = head = closers[i]
                head += 1
        elif text == "=" and "constexpr" in [t.text for t in found[head:i]]:
            end = i
            while end + 1 < len(found) and found[end].text != ";":
                end = closers.get(end, end) + 1
            bodies.append((i, end))
            i, head = end, end + 1
        i += 1
    return bodies


class _Source:
    def __init__(self, path, source):
        self.path, self.source = path, source
        self.found = tokens(source)
        self.closers = _closers(self.found)
        self.mutants = []

    def add(self, kind, begin, end, text):
        self.mutants.append(Mutant(self.path, kind, begin, end, text))

    def is_spaced(self, i):
        token = self.found[i]
        return self.source[token.begin - 1].isspace() and self.source[token.end].isspace()

    def draw(self):
        for begin, end in _bodies(self.found, self.closers):
            open_at = []   # the brackets that are open
            asserted_until = -1   # the compiler decides a static_assert, no test
            for i in range(begin, end):
                text = self.found[i].text
                if text == "static_assert":
                    asserted_until = self.closers.get(i + 1, i)
                if i <= asserted_until:
                    continue
                is_of_condition = False
                if self.found[i].kind == "symbol" and text in _PAIRS:
                    open_at.append(i)
                elif self.found[i].kind == "symbol" and text in _PAIRS.values() and open_at:
                    opener = open_at.pop()
                    is_of_condition = text == ")" and self.found[opener - 1].text in ("if", "for", "while", "constexpr")
                inside = self.found[open_at[-1]].text if open_at else ""
                self.token(i, is_in_subscript=inside == "[")
                if inside == "{" and (is_of_condition or text in (";", "{", "}", "else")):
                    self.statement(i + 1, end)
        return self.mutants

    def token(self, i, is_in_subscript):
        token = self.found[i]
        if token.kind == "symbol" and token.text in _TURNED and self.is_spaced(i):
            for turned in _TURNED[token.text]:
                self.add("comparison", token.begin, token.end, turned)
        elif token.text == "!" and self.source[token.end] != "=":
            self.add("condition", token.begin, token.end, "")
        elif token.text == "if" and self.found[i + 1].text == "(" and i + 1 in self.closers:
            self.condition(i + 1)
        elif token.text in ("true", "false"):
            self.add("constant", token.begin, token.end, "false" if token.text == "true" else "true")
        elif token.kind == "number" and not is_in_subscript and self.found[i - 1].text != "<":
            self.number(token)
        elif token.kind == "string" and re.fullmatch(r'"[^\s\\{}]+"', token.text):   # a name; a sentence decides nothing
            self.add("constant", token.end - 1, token.end - 1, "?")

    def number(self, token):
        m = re.fullmatch(r"([\d']+)([uUlL]*)", token.text)
        if m:
            value = int(m[1].replace("'", ""))
            for other in {value + 1, max(value - 1, 0)} - {value}:
                self.add("constant", token.begin, token.end, f"{other}{m[2]}")

    def condition(self, opener):
        """The condition of an `if`: what follows its initializer. One that declares a variable is left alone."""
        closer = self.closers[opener]
        begin, i = opener + 1, opener + 1
        while i < closer:
            if self.found[i].text == ";":
                begin = i + 1
            i = self.closers.get(i, i) + 1
        inside, i = [], begin
        while i < closer:
            inside.append(self.found[i].text)
            i = self.closers.get(i, i) + 1
        if begin == closer or "=" in inside:
            return
        first, last = self.found[begin].begin, self.found[closer].begin
        text = self.source[first:last]
        self.add("condition", first, last, f"!({text})")
        self.add("branch", first, last, f"false && ({text})")
        self.add("branch", first, last, f"true || ({text})")

    def statement(self, begin, end):
        """A call, an assignment or a jump that begins at this token."""
        if begin >= end:
            return
        first = self.found[begin]
        if first.text in _NO_STATEMENT or first.kind not in ("word", "symbol") or first.text in (";", "{", "}"):
            return
        i, texts = begin, []
        while i < end and self.found[i].text not in (";", "{", "}"):
            texts.append(self.found[i])
            i = self.closers.get(i, i) + 1
        if i >= end or self.found[i].text != ";":
            return
        # Two words side by side declare something, and so does a bracket of a template beside a word.
        for a, b in zip(texts, texts[1:]):
            if a.kind == "word" and b.kind == "word":
                return
            if a.text in (">", "&", "*") and b.kind == "word" and not self.source[a.begin - 1].isspace() and a is not texts[0]:
                return
        words = [t.text for t in texts]
        is_jump = words in (["continue"], ["break"], ["return"])
        is_effect = first.text in ("++", "--") or any(w in ("=", "+=", "-=", "|=", "&=", "++", "--") for w in words) or "(" in words
        if is_jump or is_effect:
            self.add("statement", first.begin, self.found[i].begin, "")


def candidates(path, source):
    """All mutants of a source."""
    return _Source(path, source).draw()


def draw(sources, seed):
    """Mutants of {path: source} without end, none twice; each kind is as likely, however many there are of it."""
    by_kind = {kind: [] for kind in KINDS}
    for path in sorted(sources):
        for mutant in candidates(path, sources[path]):
            by_kind[mutant.kind].append(mutant)
    dice = random.Random(seed)
    while any(by_kind.values()):
        left = by_kind[dice.choice([kind for kind in KINDS if by_kind[kind]])]
        yield left.pop(dice.randrange(len(left)))


def apply(source, mutant):
    return source[:mutant.begin] + mutant.text + source[mutant.end:]
