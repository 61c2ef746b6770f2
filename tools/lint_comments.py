"""Comments of C++ are sentences: what they begin with shows the most frequent ones that are not."""
import os
import re

TOPS = ("api", "runtimes", "controller", "subprojects", "tests")
# A comment, or a literal, in which // begins none. The ' between digits begins no literal.
COMMENT = re.compile(r"""(//[^\n]*)|R"(\w*)\(.*?\)\2"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])'""", re.S)
SENTENCE = re.compile(r"(?:^|(?<=[.?!] ))[(]?([A-Za-z]+)\b")

# A sentence that begins with one of these has no main clause, or leaves its subject to the line before.
NEVER = {"as", "how", "likewise", "of", "what", "whether", "which", "who", "whose", "why"}
# These go on with the sentence before, so no comment begins with them.
NOT_FIRST = {"and", "but", "nor", "or", "so", "that", "then", "yet"}
# A main clause follows these behind a comma.
WITH_COMMA = {"because", "for", "if", "since", "when", "where", "while"}


def paragraphs(text):
    """[(line, words)] of each comment: the // lines that follow each other at one column, up to an empty one. The last member is empty."""
    found, end, column = [], -1, 0
    for match in COMMENT.finditer(text):
        if match[1] is None:
            continue
        begin = text.rfind("\n", 0, match.start()) + 1
        line, here = text.count("\n", 0, begin) + 1, match.start() - begin
        goes_on = line == end + 1 and here == column and not text[begin:match.start()].strip()
        words = match[1].lstrip("/").strip()
        if not goes_on or not words or not found[-1]:
            found.append([])
        if words:
            found[-1].append((line, words))
        end, column = line, here
    return [paragraph for paragraph in found if paragraph]


def sentences(paragraph):
    """(line, whether the paragraph begins with it, its first word, the whole sentence)"""
    text, starts = "", []
    for line, words in paragraph:
        starts.append((len(text), line))
        text += words + " "
    beginnings = [m for m in SENTENCE.finditer(text) if m.start() == 0 or m[1][0].isupper()]
    for i, match in enumerate(beginnings):
        end = beginnings[i + 1].start() if i + 1 < len(beginnings) else len(text)
        line = [line for start, line in starts if start <= match.start()][-1]
        yield line, match.start() == 0, match[1].lower(), text[match.start():end]


def is_sentence(is_first, word, text):
    if word in NEVER or (is_first and word in NOT_FIRST):
        return False
    return word not in WITH_COMMA or "," in text.partition(": ")[0]


def found_in(text):
    """(line, the beginning of what is no sentence)"""
    return [(line, " ".join(words.split()[:6])) for paragraph in paragraphs(text)
            for line, is_first, word, words in sentences(paragraph) if not is_sentence(is_first, word, words)]


def complaints(root):
    """(file, line, the beginning of what is no sentence)"""
    found = []
    for top in TOPS:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders[:] = sorted(d for d in folders if not d.startswith("."))
            for name in sorted(names):
                if name.endswith((".cc", ".hh")):
                    path = os.path.join(folder, name)
                    with open(path) as f:
                        found += [(os.path.relpath(path, root), *hit) for hit in found_in(f.read())]
    return found
