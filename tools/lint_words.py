"""Words that the project does not use, since Kubernetes has its own or plain English has a clearer one."""
import os
import re

# Refused words -> the words that are written instead. Each is one or more words; a / is between words of which any is meant.
PLAIN = {
    "told/tell/tells/telling": "notify, report, say",
    "nobody": "no one, nothing",
    "anybody/somebody": "any client, another client",
    "whoever/whomever": "the client that, the caller that",
    "ours": "owned, own, this controller's",
    "stand/stands/standing/stood": "is, are, exists",
    "look/looks/looked/looking again": "enqueue, reconcile",
    "a look": "a reconcile",
    "give/gives/gave/given/giving up": "abort, stop",
    "give/gives/gave/given/giving way": "yield",
    "companion/companions": "dependent object",
    "wave/waves": "replicated job",
    "amid": "during, between",
    "anew": "again",
    "once more": "again",
    "lest": "so that not",
    "learnt": "read, known",
    "thereby/hereby/whereby/thereof/whereof/hitherto/henceforth": "so, of which, until now",
    "mend/mends/mended": "fix",
    "manners": "behaviour",
    "patience": "delay, interval, limit",
    "last words": "last message, final state",
    "is/are/was/were history": "no longer matters",
    "in one go": "together, at once",
    "at rest": "idle",
    "lane/lanes": "role",
    "bell/bells": "notifier",
    "alarm/alarms": "timer",
    "urgency": "debounce",
    "pacer/pacers": "rate limiter, wake coalescer",
    "judge/judges/judged/judging/judgement": "check, compute, decide",
    "respell/respells/respelled/respelling": "normalize",
    "modernise/modernises/modernised/modernising": "convert from the legacy form",
}
# Refused in C++ only: users hold these names, so documents and scripts use them.
IN_CODE = {
    "shell/shells": "plan runner",
    "expander/expanders": "JobSet controller",
    "blueprint/blueprints": "built-in runtime",
}
# Documents that are not in the repository.
CITED = re.compile(r"\b(?:jobset|trainer|scheduling)-contract\b|\bcontract \d|\bdesign\.md\b", re.I)
CITED_INSTEAD = "the file of the upstream project, or a decision"

# File (or folder with /) -> words that it may use, with the reason.
ALLOWED = {
    "tools/lint_words.py": (None, "it names them"),
    "tools/lint_test.py": (None, "it plants them"),
    "subprojects/kube/model/json_text.cc": ({"tell"}, "RapidJSON's name"),
    "controller/config/": ({"expander"}, "the key `expander` of the configuration"),
    "controller/cli/": ({"blueprint", "blueprints"}, "the command `trainer blueprints`"),
    "runtimes/plugins/mpi/command_line.cc": ({"shell", "shells"}, "the program sh, whose texts it reads"),
    "tests/faults/": ({"alarm"}, "etcd's name of what it raises where its disk is full"),
    "tests/unit/config/": ({"expander"}, "the key `expander` of the configuration"),
    "tests/unit/cli/": ({"blueprint", "blueprints"}, "the command `trainer blueprints`"),
}
TOPS = ("api", "runtimes", "controller", "subprojects/kube", "subprojects/local", "tests", "docs", "tools", "manifests")
CODE = (".cc", ".hh")
TEXTS = (".md", ".py", ".sh", "meson.build", "meson_options.txt", "Containerfile")
# Texts for users in C++ stay as they are, so literals are not checked; comments, identifiers and names of tests are.
LITERAL = re.compile(r"""(//[^\n]*|TEST_CASE(?:_METHOD)?\([^"]*"(?:\\.|[^"\\\n])*"|SECTION\("(?:\\.|[^"\\\n])*")|R"(\w*)\(.*?\)\2"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'""", re.S)
# Quotations of a document are literals, too: `code`, and blocks of it.
QUOTED = re.compile(r"^```.*?^```|`[^`\n]*`", re.M | re.S)
TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\n|[^\sA-Za-z_]")


def phrases(*tables):
    """First word -> (the words of each place, what is written instead) of each phrase of the tables that begins with it."""
    found = {}
    for words, instead in (row for table in tables for row in table.items()):
        places = [set(word.split("/")) for word in words.split(" ")]
        for first in places[0]:
            found.setdefault(first, []).append((places, instead))
    return found


PLAIN_PHRASES, CODE_PHRASES = phrases(PLAIN), phrases(PLAIN, IN_CODE)


def tokens(text):
    """(word or sign, line) of a text; an identifier is several words, and a comment goes on over the ends of its lines."""
    line, found, starts = 1, [], True
    for match in TOKEN.finditer(text):
        word = match[0].lower()
        if word == "\n":
            line, starts = line + 1, True
        elif not (starts and word in "/#*"):
            found.append((word, line))
            starts = False
    return found


def without(pattern, text):
    """The text with what the pattern matches left out, its first group excepted; lines keep their numbers."""
    def blank(match):
        return match[0] if match.groups() and match[1] else '"' + "\n" * match[0].count("\n")

    return pattern.sub(blank, text)


def found_in(text, is_code, is_document):
    """(line, the words, what is written instead) of what a text may not hold."""
    checked = without(LITERAL, text) if is_code else without(QUOTED, text) if is_document else text
    found, words = [], tokens(checked)
    by_first = CODE_PHRASES if is_code else PLAIN_PHRASES
    for i, (word, line) in enumerate(words):
        for places, instead in by_first.get(word, []):
            here = [w for w, _ in words[i:i + len(places)]]
            is_stand_in = word == "stand" and words[i + 1:i + 2] and words[i + 1][0] == "-"
            if not is_stand_in and len(here) == len(places) and all(w in place for w, place in zip(here, places)):
                found.append((line, " ".join(here), instead))
    for match in CITED.finditer(text):
        found.append((text.count("\n", 0, match.start()) + 1, match[0], CITED_INSTEAD))
    return sorted(found)


def is_script(path):
    with open(path, "rb") as f:
        return f.read(2) == b"#!"


def files(root):
    found = [name for name in sorted(os.listdir(root)) if os.path.isfile(os.path.join(root, name)) and not name.startswith(".")]
    for top in TOPS:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders[:] = sorted(d for d in folders if not d.startswith((".", "__")))
            found += [os.path.relpath(os.path.join(folder, name), root) for name in sorted(names)]
    return [f for f in found if f.endswith(CODE + TEXTS) or ("." not in os.path.basename(f) and is_script(os.path.join(root, f)))]


def is_allowed(path, words):
    for place, (allowed, _) in ALLOWED.items():
        if (path == place or (place.endswith("/") and path.startswith(place))) and (allowed is None or words in allowed):
            return True
    return False


def complaints(root):
    """(file, line, the words, what is written instead)"""
    found = []
    for path in files(root):
        with open(os.path.join(root, path), errors="replace") as f:
            text = f.read()
        for line, words, instead in found_in(text, path.endswith(CODE), path.endswith(".md")):
            if not is_allowed(path, words):
                found.append((path, line, words, instead))
    return found


def counts(root):
    """The rest of the work: a line a folder, with the words and how often each is there."""
    by_folder = {}
    for path, _, words, _ in complaints(root):
        counted = by_folder.setdefault(os.path.dirname(path) or ".", {})
        counted[words] = counted.get(words, 0) + 1
    total = sum(sum(counted.values()) for counted in by_folder.values())
    lines = [f"{sum(counted.values()):5} {folder}: " + ", ".join(f"{word} {n}" for word, n in sorted(counted.items(), key=lambda e: -e[1]))
             for folder, counted in sorted(by_folder.items(), key=lambda e: -sum(e[1].values()))]
    return lines + [f"{total:5} in all"]
