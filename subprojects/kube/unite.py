#!/usr/bin/env python3
"""Group source files that are compiled together, so that their headers are read once.

usage: unite.py FOLDER INTO NAME SIZE SOURCE.cc...

At most SIZE sources of one folder below FOLDER become one file INTO/NAME_SUBFOLDER_N.cc. Each line that is printed has the name of such a
file, and behind a tab the sources that it includes, relative to INTO so that clones share their compiler cache.
A new source changes the files of its own folder only: the recorded profile knows static functions by their file.
"""
import os
import sys


def main():
    folder, into, name, size, *sources = sys.argv[1:]
    groups = {}
    for source in sources:
        below = os.path.relpath(source, folder).split(os.sep)
        groups.setdefault(below[0] if len(below) > 1 else "", []).append(os.path.relpath(source, into))
    for key, members in groups.items():
        count = -(-len(members) // int(size))
        for i in range(count):
            part = members[i * len(members) // count:(i + 1) * len(members) // count]
            print("_".join(filter(None, [name, key, str(i)])) + ".cc", " ".join(part), sep="\t")


if __name__ == "__main__":
    main()
