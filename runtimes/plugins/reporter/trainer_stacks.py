"""Where threads and processes are: frames of Python, and what /proc says."""
import _thread
import os
import sys
from itertools import islice
from time import monotonic

MOST_THREADS, MOST_FRAMES, MOST_CHILDREN, MOST_WORKERS = 32, 48, 16, 64
LONGEST_LINE = 200
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep


# ---- frames


def text_of(value, limit):
    """Valid UTF-8, of a value that a program may have set to anything."""
    return str.encode(value, "utf-8", "replace")[:limit].decode("utf-8", "ignore") if isinstance(value, str) else ""


def line_of(frame):
    code = frame.f_code
    end = ":%d %s" % (frame.f_lineno or 0, text_of(code.co_name, 64))
    name = code.co_filename.encode("utf-8", "replace")
    return name[-(LONGEST_LINE - len(end.encode())):].decode("utf-8", "ignore") + end


def is_torch(name):
    return "-packages/torch/" in name or name.startswith(torch_folder())


def torch_folder():
    return os.path.dirname(getattr(sys.modules.get("torch"), "__file__", None) or "/-/-") + os.sep


def is_users(code):
    """Whether it is neither of the standard library, nor of torch, nor generated. The text of `python -c` is the user's."""
    name = code.co_filename
    if name.startswith("<"):
        return name == "<string>" and code.co_name == "<module>"
    return not is_torch(name) and ("-packages/" in name or not name.startswith(LIBRARY))


def is_waiting(frame):
    """Whether the innermost user line is in a collective, or in a backward pass, which waits for collectives."""
    while frame is not None and not is_users(frame.f_code):
        name = frame.f_code.co_filename
        if is_torch(name) and ("/torch/distributed/" in name or "/torch/autograd/" in name):
            return True
        frame = frame.f_back
    return False


def frames_of(frame):
    """Innermost first, without the reporter's own."""
    while frame is not None:
        if not frame.f_code.co_filename.startswith(HERE):
            yield frame
        frame = frame.f_back


def top_and_leaf(frame):
    leaf = ""
    for each in frames_of(frame):
        leaf = leaf or line_of(each)
        if is_users(each.f_code):
            return line_of(each), leaf
    return "", leaf


# ---- /proc


def read(path, limit=4096):
    try:
        with open(path, "rb", 0) as file:
            return file.read(limit).decode("utf-8", "replace").strip("\0\n ")
    except OSError:
        return ""


def stat_of(path):
    """The fields of a stat file from the state on, or []."""
    return read(path + "/stat").rpartition(")")[2].split()


def state_and_wchan(path):
    return {"state": (stat_of(path) or [""])[0][:1], "wchan": read(path + "/wchan")[:32].strip("0")}


def children_of(pid):
    found = []
    try:
        for task in os.listdir("/proc/%d/task" % pid):
            found += [int(word) for word in read("/proc/%d/task/%s/children" % (pid, task), 65536).split()]
    except (OSError, ValueError):
        pass
    return found


def descendants_of(pid, limit):
    found, last = [], [pid]
    while last and len(found) < limit:
        last = [child for parent in last[:limit] for child in children_of(parent)]
        found += last
    return found[:limit]


def cpu_seconds(pid):
    """The time of the process, of its children that have ended, and of those that run."""
    times = os.times()
    ticks = 0
    for child in descendants_of(pid, MOST_WORKERS):
        fields = stat_of("/proc/%d" % child)
        ticks += sum(int(field) for field in fields[11:15]) if len(fields) > 14 else 0
    return round(sum(times[:4]) + ticks / os.sysconf("SC_CLK_TCK"), 2)


def bytes_moved():
    words = read("/proc/self/io").split()
    return int(words[1]) + int(words[3]) if len(words) > 3 else -1


def values(state):
    top, leaf = top_and_leaf(sys._current_frames().get(state.main))
    return {"top": top, "leaf": leaf, "cpu": cpu_seconds(state.pid), "io": bytes_moved()}


# ---- what is asked for


def is_tracker(pid):
    """Whether multiprocessing has started the process for itself. It only waits, and its line would hide that of a loader's worker."""
    return "from multiprocessing.resource_tracker import" in read("/proc/%d/cmdline" % pid)


def dump(state, ident):
    names = dict(getattr(sys.modules.get("threading"), "_active", {}))
    current = sys._current_frames()
    threads = []
    for number in sorted(current, key=lambda each: each != state.main):
        if number in state.threads or number == _thread.get_ident() or len(threads) == MOST_THREADS:
            continue
        thread = names.get(number)
        native = state.pid if number == state.main else getattr(thread, "native_id", None)
        kernel = state_and_wchan("/proc/self/task/%d" % native) if isinstance(native, int) else {"state": "", "wchan": ""}
        frames = [line_of(each) for each in islice(frames_of(current[number]), MOST_FRAMES)]
        name = "MainThread" if number == state.main else text_of(getattr(thread, "_name", ""), 64)
        threads.append(dict(kernel, name=name, main=number == state.main, frames=frames))
    del current
    children, end = [], monotonic() + 5
    for pid in descendants_of(state.pid, MOST_CHILDREN):
        path = state.signals.file_of(pid) if state.fd >= 0 and not is_tracker(pid) else ""
        text = state.signals.text_by_signal(pid, path, end) if state.signals.is_same(path, state.fd) else ""
        children.append(dict(state_and_wchan("/proc/%d" % pid), pid=pid, command=read("/proc/%d/comm" % pid)[:32], text=text))
    return {"id": ident, "threads": threads, "children": children}


def number_in(environment, name):
    for entry in environment:
        if entry.startswith(name + "=") and entry[len(name) + 1:].isdigit() and len(entry) < len(name) + 8:
            return int(entry[len(name) + 1:])
    return -1


def rank_of(pid):
    """The rank that a process was started as, or -1. torchrun starts each with its LOCAL_RANK."""
    environment = read("/proc/%d/environ" % pid, 1 << 18).split("\0")
    return number_in(environment, "RANK") if number_in(environment, "LOCAL_RANK") >= 0 else -1


def has_ranks(state):
    """Whether processes that this one has started are ranks of their own, so that it is a launcher."""
    return "LOCAL_RANK" not in os.environ and any(rank_of(pid) >= 0 for pid in descendants_of(state.pid, MOST_WORKERS))


def trainer_of(pid, file_of):
    """The process that reports for a worker: the worker, or a child of it where the worker is a script that starts Python."""
    last = [pid]
    for _ in range(3):
        for each in last[:8]:
            path = file_of(each)
            if path:
                return each, path
        last = [child for parent in last[:8] for child in children_of(parent)]
    return pid, ""


def start_of(pid):
    fields = stat_of("/proc/%d" % pid)
    return fields[19] if len(fields) > 19 else ""


def number_of(path):
    """The number of the rank's file, which a rank and all that it has started have open, or -1."""
    try:
        return os.stat(path).st_ino if path else -1
    except OSError:
        return -1


def workers(state, wants_text):
    """The ranks that this process has started, as /proc shows them: it needs nothing of them."""
    seen = state.__dict__.setdefault("workers", {})   # (pid, start) -> (rank, trainer, file), of all that were alive
    end, found, alive = monotonic() + 5, [], set()
    for pid in children_of(state.pid)[:4 * MOST_WORKERS]:
        key = (pid, start_of(pid))
        rank = seen[key][0] if key in seen else rank_of(pid)
        if rank < 0 or len(found) == MOST_WORKERS:
            continue
        trainer, path = trainer_of(pid, state.signals.file_of)
        number = number_of(path)
        if number < 0 and key in seen:   # it has ended, but its parent has not waited for it
            number = seen[key][2]
        # The first process of a container is the parent of what a rank has left behind, too.
        if number >= 0 and any(known[2] == number for other, known in seen.items() if other != key):
            continue
        alive.add(rank)
        seen[key] = (rank, "%s-%d" % (start_of(trainer), trainer), number)
        text = state.signals.text_by_signal(trainer, path, end) if wants_text and state.signals.is_silent(path) else ""
        found.append({"rank": rank, "pid": trainer, "born": seen[key][1], "state": state_and_wchan("/proc/%d" % trainer)["state"] or "gone", "text": text})
    for key, (rank, born, _) in list(seen.items()):
        if rank in alive and start_of(key[0]) != key[1]:
            del seen[key]
        elif rank not in alive and len(found) < MOST_WORKERS:
            found.append({"rank": rank, "pid": int(born.rpartition("-")[2]), "born": born, "state": "gone", "text": ""})
    return found


def shorten(message):
    """Halves the longest part of the stacks. False if there is nothing left to cut."""
    dump = message.get("dump", {})
    texts = dump.get("children", []) + message.get("workers", [])
    longest = max(texts, key=lambda each: len(each["text"]), default={"text": ""})
    threads = dump.get("threads", [])
    if len(longest["text"]) > 2048 or (longest["text"] and len(threads) <= 1):
        longest["text"] = longest["text"][-(len(longest["text"]) // 2):]
    elif len(threads) > 1:
        del threads[-1]
    elif threads and len(threads[0]["frames"]) > 1:
        del threads[0]["frames"][len(threads[0]["frames"]) // 2:]
    else:
        return False
    return True


