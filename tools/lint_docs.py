"""Documents have lines that fit a screen, short sentences, and paths of files that exist. They and comments of scripts have whole sentences."""
import ast
import glob
import io
import os
import re
import tokenize

import lint_words

LONGEST_LINE = 200      # characters of a line of a document
LONGEST_SENTENCE = 40   # words of a document's sentence; `code` is one
# A sentence that begins with one of these has no main clause, or a subject that is hard to find. A question may begin so.
FRAGMENT = re.compile(r"(?:^|(?<=[.?!:;] ))[*_\"(\[]*((?:As|Of|What) (?![^.?!]*\?)[^.]*)")
END_OF_SENTENCE = re.compile(r"(?<=[.?!])[)*_]* +(?=[*_\[(\"]*[A-Z0-9])")
FENCED = re.compile(r"^ *```.*?^ *```$", re.M | re.S)
QUOTED = re.compile(r"`[^`\n]*`|\]\([^)\s]*\)")
PATH = re.compile(r"`((?:api|controller|docs|kube|manifests|runtimes|subprojects|tests|tools)/[\w./-]*\w/?)`")
ITEM = re.compile(r"\s*(?:[-*]|\d+\.) +(.*)")


def without(pattern, text):
    """The text with a capital letter in the place of what the pattern matches, and with its lines kept."""
    return pattern.sub(lambda match: "X" + "\n" * match[0].count("\n"), text)


def texts_of_document(text):
    """(line, text) of each paragraph, item of a list and cell of a table. A heading is no sentence."""
    found, is_open = [], False
    for number, line in enumerate(without(QUOTED, without(FENCED, text)).split("\n"), 1):
        item = ITEM.match(line)
        if line.startswith("|"):
            found += [(number, cell.strip()) for cell in line.strip("|").split("|")]
            is_open = False
        elif not line.strip() or line.startswith(("#", "<!--")):
            is_open = False
        elif item or not is_open:
            found.append((number, item[1] if item else line.strip()))
            is_open = True
        else:
            found[-1] = (found[-1][0], found[-1][1] + "\n" + line.strip())
    return found


def texts_of_comments(comments):
    """Comments of one column, on lines that follow each other, are one text. Each is given as (line, column, words)."""
    found, end, column = [], -1, 0
    for line, here, words in comments:
        if line == end + 1 and here == column and words:
            found[-1] = (found[-1][0], found[-1][1] + "\n" + words)
        else:
            found.append((line, words))
        end, column = line, here
    return found


def texts_of_shell(text):
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if match := re.match(r"(\s*)#(?!!)(.*)", line) or re.match(r"(.*?\S\s+)#(\s[^'\"]*)$", line):
            found.append((number, len(match[1]), match[2].strip()))
    return texts_of_comments(found)


def texts_of_python(text):
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and (docstring := ast.get_docstring(node)):
            line = node.body[0].lineno
            for paragraph in docstring.split("\n\n"):
                found.append((line, paragraph))
                line += paragraph.count("\n") + 2
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return found + texts_of_comments([(*token.start, token.string.lstrip("#!").strip()) for token in tokens if token.type == tokenize.COMMENT])


def is_python(path, text):
    return path.endswith(".py") or re.match(r"#!.*python", text)


def in_one_line(text):
    return " ".join(part.strip() for part in text.split("\n"))


def fragments(texts):
    """(line, what is wrong)"""
    for line, text in texts:
        for match in FRAGMENT.finditer(in_one_line(text)):
            before = len(text) - len(text.lstrip())
            number, at = line, before
            for part in text.split("\n"):
                at += len(part.strip()) + 1
                if at > match.start():
                    break
                number += 1
            yield number, f"'{' '.join(match[1].split()[:5])}': write a whole sentence"


def of_document(root, text):
    """(line, what is wrong) of lines, paths and lengths of sentences"""
    for number, line in enumerate(without(FENCED, text).split("\n"), 1):
        if len(line) > LONGEST_LINE:
            yield number, f"{len(line)} characters in a line, and {LONGEST_LINE} are the limit"
        for path in PATH.findall(line):
            if not os.path.exists(os.path.join(root, re.sub("^kube/", "subprojects/kube/", path))):
                yield number, f"there is no {path}"
    for number, part in texts_of_document(text):
        for sentence in END_OF_SENTENCE.split(in_one_line(part)):
            if len(sentence.split()) > LONGEST_SENTENCE:
                yield number, f"'{' '.join(sentence.split()[:5])}': {len(sentence.split())} words in a sentence, and {LONGEST_SENTENCE} are the limit"


def found_in(root, path, text):
    """(line, what is wrong)"""
    if path.endswith(".md"):
        history = path == "CHANGELOG.md"   # it names files of earlier versions
        return [*of_document(root, without(PATH, text) if history else text), *fragments(texts_of_document(text))]
    return fragments(texts_of_python(text) if is_python(path, text) else texts_of_shell(text))


def files(root):
    """Documents, scripts, and the manifests that are not printed by the program."""
    manifests = sorted(glob.glob("manifests/**/*.yaml", root_dir=root, recursive=True))
    return [path for path in lint_words.files(root) + manifests if not path.endswith(lint_words.CODE)]


def complaints(root):
    found = []
    for path in files(root):
        with open(os.path.join(root, path), errors="replace") as f:
            text = f.read()
        if not text.startswith("# Printed by"):
            found += [f"{path}:{line}: {what}" for line, what in found_in(root, path, text)]
    return found
