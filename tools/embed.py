#!/usr/bin/env python3
"""Write a C++ source file that holds a file's bytes.

usage: embed.py NAMESPACE::NAME INPUT OUTPUT.cc

The source defines `extern const std::string_view NAMESPACE::NAME;`, which its user declares. JSON is written without spaces: a literal
has at most 65,536 bytes.
"""
import json
import sys

CHUNK = 96


def literal(data):
    """A string literal of `data`; three-digit octal escapes, so that no escape runs into the next character."""
    out = []
    for byte in data:
        char = chr(byte)
        if char in '"\\':
            out.append("\\" + char)
        elif char == "\n":
            out.append("\\n")
        elif 32 <= byte < 127 and char != "?":  # "??" could start a trigraph
            out.append(char)
        else:
            out.append(f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def main():
    symbol, source, target = sys.argv[1:]
    namespace, _, name = symbol.rpartition("::")
    with open(source, "rb") as file:
        data = file.read()
    if source.endswith(".json"):
        data = json.dumps(json.loads(data), separators=(",", ":")).encode()
    lines = [literal(data[at:at + CHUNK]) for at in range(0, len(data), CHUNK)] or ['""']
    with open(target, "w", encoding="ascii") as file:
        file.write("// Made by tools/embed.py.\n#include <string_view>\n\n")
        file.write(f"namespace {namespace} {{\n")
        file.write(f"extern const std::string_view {name};\n")
        file.write("namespace {\nconstexpr char kBytes[] =\n    " + "\n    ".join(lines) + ";\n}  // namespace\n")
        file.write(f"const std::string_view {name}(kBytes, sizeof(kBytes) - 1);\n")
        file.write(f"}}  // namespace {namespace}\n")


if __name__ == "__main__":
    main()
