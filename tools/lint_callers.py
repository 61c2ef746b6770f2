"""Functions that the program never calls, directly or through others, as the linker sees it.

The build has a section for each function and inlines none of them (./check: build-asan), so what the linker would drop
has no caller. Templates and functions defined in headers are not looked at: a unit that uses none of them has none.
"""
import os
import re
import shlex
import subprocess

# Functions that only tests call, each with the reason.
TESTS_ONLY = {
    "kube::server::ObjectStore::compact": "the simulation's API server forgets its history at any moment",
    "trainer::Serving::webhook_port": "tests listen on any free port",
    "trainer::pipeline::device_rows": "the page about devices is compared with the table",
    "trainer::pipeline::pod_profiles": "the list is compared with the schema of pods",
    "trainer::pipeline::pod_unions": "the table is compared with the schema of pods",
    "trainer::check_schema": "without a schema, by the object's kind: render has the schema of its registration",
}


def link_command(directory, program):
    listing = subprocess.run(["ninja", "-C", directory, "-t", "commands", "-s", program], capture_output=True, text=True, check=True).stdout
    return shlex.split(listing.strip().split("\n")[-1])


def strong_symbols(directory, archive):
    """Functions that are defined once: neither templates nor inline."""
    listing = subprocess.run(["nm", "--defined-only", os.path.join(directory, archive)], capture_output=True, text=True).stdout
    return set(re.findall(r" T (\S+)$", listing, re.M))


def unused(directory, program="trainer"):
    """Mangled names of the functions that the linker would leave out of the program."""
    words = link_command(directory, program)
    words[words.index("-o") + 1] = os.devnull
    words = [word for word in words if word not in ("-Wl,--start-group", "-Wl,--end-group")]
    own = [word for word in words if word.endswith(".a") and not os.path.isabs(word)]
    strong = set().union(*(strong_symbols(directory, archive) for archive in own))
    words = [part for word in words for part in (("-Wl,--whole-archive", word, "-Wl,--no-whole-archive") if word in own else (word,))]
    done = subprocess.run([*words, "-Wl,--gc-sections", "-Wl,--print-gc-sections"], cwd=directory, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{program} does not link: {done.stderr[-2000:]}")
    return strong & set(re.findall(r":\(\.text\.(?:hot\.|unlikely\.|startup\.)?(\S+?)\)$", done.stdout, re.M))


def complaints(directory, program="trainer"):
    names = sorted(unused(directory, program))
    plain = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout.split("\n")
    plain = sorted(name.replace("[abi:cxx11]", "") for name in plain if name)
    found = [f"{name}: the program never calls it" for name in plain if name.split("(")[0] not in TESTS_ONLY]
    return found + [f"{name}: has a caller now, or is gone: take it out of tools/lint_callers.py"
                    for name in sorted(set(TESTS_ONLY) - {name.split("(")[0] for name in plain})]
