"""The includes between files, from the #include lines: the order of the folders, and that no circle of folders exists."""
import os
import re

# Each line is an order: a folder (with those below it) may include what is left of it in the line, never what is right of it.
ORDERS = (
    ("subprojects/kube/model", "subprojects/kube/server", "api", "runtimes/views", "runtimes/lifecycle", "runtimes/jobset", "runtimes/gang", "runtimes/stall", "runtimes/pipeline",
     "runtimes/plugins", "runtimes/trainjob", "runtimes/v1", "runtimes/mpijob", "runtimes/batch", "runtimes/fit", "runtimes/admission", "runtimes/builtin", "controller"),
    ("subprojects/kube/model", "subprojects/kube/client", "subprojects/kube/manager", "controller"),
    # This is the order of controller/meson.build. The reconcilers meet local mode only through the API.
    ("controller/config", "controller/ssh", "controller/admission", "controller/registration", "controller/status", "controller/kinds", "controller/process",
     "subprojects/kube/server", "subprojects/local/kinds", "subprojects/local/node", "subprojects/local/server", "controller/local", "controller/ui", "controller/cli"),
)
# Folders whose includes end at a list. Includes that are no folder of the project do not count.
ONLY = {
    "subprojects/kube/model": ("subprojects/kube/model",),
    "subprojects/kube/server": ("subprojects/kube/server", "subprojects/kube/model"),
    "subprojects/kube/client": ("subprojects/kube/client", "subprojects/kube/model"),
    "subprojects/kube/manager": ("subprojects/kube/manager", "subprojects/kube/client", "subprojects/kube/model"),
    "subprojects/local": ("subprojects/local", "subprojects/kube", "api"),
    "api": ("api", "subprojects/kube/model"),
    "runtimes": ("runtimes", "api", "subprojects/kube/model"),
}
# Kinds know nothing of each other: runtimes/lifecycle and runtimes/views have the rules that they share.
APART = ("runtimes/trainjob", "runtimes/v1", "runtimes/mpijob", "runtimes/batch")
TOPS = ("api", "runtimes", "controller", "subprojects/kube/model", "subprojects/kube/server", "subprojects/kube/client",
        "subprojects/kube/manager", "subprojects/local/kinds", "subprojects/local/node", "subprojects/local/server")
INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')


class Include:
    def __init__(self, path, number, name, target):
        self.path, self.number, self.name, self.target = path, number, name, target

    def __str__(self):
        return f'{self.path}:{self.number}: #include "{self.name}"'


def is_below(path, folder):
    return path == folder or path.startswith(folder + "/")


def includes(root):
    """Every include of one of the project's files by another, outside of the tests."""
    found = []
    for top in TOPS:
        for folder, folders, files in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(files):
                if name.endswith((".cc", ".hh")):
                    found += includes_of(root, os.path.relpath(os.path.join(folder, name), root))
    return found


def includes_of(root, path):
    found = []
    with open(os.path.join(root, path)) as f:
        for number, line in enumerate(f, 1):
            if match := INCLUDE.match(line):
                # By the paths that the compiler is given: the file's own folder, the root, and the subprojects' folder.
                for above in (os.path.dirname(path), "", "subprojects"):
                    target = os.path.normpath(os.path.join(above, match[1]))
                    if any(is_below(target, top) for top in TOPS) and os.path.exists(os.path.join(root, target)):
                        found.append(Include(path, number, match[1], target))
                        break
    return found


def order_complaints(root):
    complaints = []
    for include in includes(root):
        for order in ORDERS:
            source = next((i for i, folder in enumerate(order) if is_below(include.path, folder)), None)
            target = next((i for i, folder in enumerate(order) if is_below(include.target, folder)), None)
            if source is not None and target is not None and target > source:
                complaints.append(f"{include}: {order[target]} is above {order[source]}")
        for folder, allowed in ONLY.items():
            if is_below(include.path, folder) and not any(is_below(include.target, a) for a in allowed):
                complaints.append(f"{include}: {folder} includes only {', '.join(allowed)}")
        source, target = (next((folder for folder in APART if is_below(path, folder)), None) for path in (include.path, include.target))
        if source and target and source != target:
            complaints.append(f"{include}: {source} knows nothing of {target}; move what both need to runtimes/lifecycle")
    return list(dict.fromkeys(complaints))


# ---- circles


def folder_at(path, depth):
    """The folder of a file, cut to a depth; a subproject and its first folder count as one step."""
    parts = re.sub("^subprojects/([^/]+)/", r"subprojects+\1+", os.path.dirname(path)).split("/")
    return "/".join(parts[:depth]).replace("+", "/")


def shortest_circle(graph, start):
    """The shortest way from a folder back to it, as a list of folders, or nothing."""
    before, queue = {}, [start]
    for folder in queue:
        for target in sorted(graph.get(folder, ())):
            if target == start:
                way = [folder]
                while way[-1] != start:
                    way.append(before[way[-1]])
                return way[::-1]
            if target not in before:
                before[target] = folder
                queue.append(target)
    return []


def circle_complaints(root):
    """Each circle of folders, at each depth, with an include line for each of its steps."""
    found = includes(root)
    complaints, reported = [], set()
    deepest = max((os.path.dirname(i.path).count("/") + 1 for i in found), default=0)
    for depth in range(1, deepest + 1):
        graph = {}
        for include in found:
            source, target = folder_at(include.path, depth), folder_at(include.target, depth)
            if source != target:
                graph.setdefault(source, {}).setdefault(target, include)
        for start in sorted(graph):
            way = shortest_circle(graph, start)
            steps = [(a, b) for a, b in zip(way, way[1:] + way[:1])]
            lines = frozenset(str(graph[a][b]) for a, b in steps)
            if way and not any(lines == other for other in reported):
                reported.add(lines)
                complaints.append("a circle of folders: " + " -> ".join(way + way[:1]) +
                                  "".join(f"\n    {graph[a][b]}" for a, b in steps))
    return complaints
