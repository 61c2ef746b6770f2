#!/usr/bin/env python3
"""Take one part from api/schema/kubernetes.json, which tools/reduce_openapi.py makes.

usage: kubernetes_part.py embedded|kinds INPUT OUTPUT

embedded: the types that definitions refer to. kinds: whole objects of the kinds that local mode serves. The two read the same types
differently: a definition fills in defaults that are Go's zero value, and a built-in kind does not store them; a template has few members
of ObjectMeta; and the metadata of an object itself is the API server's, so it is no part of its type.
"""
import json
import sys


def without_zeros(schema):
    """The schema without defaults that are Go's zero value."""
    if isinstance(schema, dict):
        return {key: without_zeros(value) for key, value in schema.items() if not (key == "default" and value in ("", False))}
    return [without_zeros(each) for each in schema] if isinstance(schema, list) else schema


def as_stored(document):
    """All types as built-in kinds have them."""
    types = without_zeros(document["types"])
    types["ObjectMeta"]["properties"].update(document["metadata"])
    for kind in document["roots"]["kinds"]:
        types[kind]["properties"]["metadata"] = {"type": "object"}
        required = [member for member in types[kind].pop("required", ()) if member != "metadata"]
        if required:
            types[kind]["required"] = required
    return types


def references(schema):
    """The names of the types that a schema refers to."""
    for key, value in schema.items() if isinstance(schema, dict) else enumerate(schema) if isinstance(schema, list) else ():
        if key == "$ref":
            yield value.removeprefix("#/")
        else:
            yield from references(value)


def reachable(types, roots):
    found, left = {}, list(roots)
    while left:
        name = left.pop()
        if name not in found:
            found[name] = types[name]
            left += references(types[name])
    return found


def part_of(document, part):
    roots = document["roots"][part]
    types = reachable(as_stored(document) if part == "kinds" else document["types"], roots)
    return {"source": document["source"], "types": types, "mergeKeys": document["mergeKeys"][part]}


def main():
    part, source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        document = json.load(file)
    with open(target, "w", encoding="utf-8") as file:
        json.dump(part_of(document, part), file, indent=1, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main()
