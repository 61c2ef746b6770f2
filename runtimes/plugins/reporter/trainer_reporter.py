"""The reporter of one process: which role the process has, and the thread that sends heartbeats.

Guarantees: nothing here writes to the program's output, raises into it, or keeps it from ending. A fork waits for `State.lock`, which is
held while a thread of the reporter holds anything that a child must not inherit half done: locks of OpenSSL and of imports, the watchdog.
Functions of C modules are used where Python's wrap them, since programs replace the wrappers.
"""
import _signal
import _thread
import os
import sys
from time import monotonic, sleep, time

OWNER = "KUBEFLOW_TRAINER_REPORTER_OWNER"   # PID:FD:RANK:LOCAL_RANK:START of the process that reports for this rank
LAUNCHERS = ("torch.distributed.run", "torch.distributed.launch")
LONGEST_PERIOD = 300.0
MOST_RANKS = 16384
LIMIT = 10.0          # seconds for a heartbeat
LIMIT_AT_EXIT = 2.0
LIMIT_OF_THREADS = 0.5   # seconds that the end of the program waits for the end of a thread


class State:
    """The modules of the reporter share it in one process."""

    def __init__(self, load):
        self.load = load
        self.lock = _thread.RLock()   # reentrant, because a signal's handler can fork inside a fork
        self.held = {}                # thread -> whether it took the lock, for each of its forks
        self.role = ""
        self.rank = self.world = -1
        self.pid, self.main, self.threads = os.getpid(), _thread.get_ident(), {}   # threads: id -> the lock that it holds
        self.wake = None              # a lock that is free when the threads shall end
        self.period = seconds_from("KUBEFLOW_TRAINER_REPORTER_PERIOD", 15.0)
        self.once = None              # seconds until the next heartbeat, if it is not the period
        self.sent = 0
        self.answered = None          # the last id of stacks that the server has received
        self.is_accepted = False      # the last heartbeat was
        self.is_over = False          # nothing more is sent
        self.fd = -1                  # the file that faulthandler writes to
        self.counters = self.stacks = self.signals = self.post = self.watchdog = None


def seconds_from(variable, default):
    try:
        value = float(os.environ[variable])
    except (KeyError, ValueError):
        return default
    return value if 0.05 <= value <= LONGEST_PERIOD else default


def number_from(text, below):
    """A variable's number, or -1."""
    is_number = bool(text) and text.isdigit() and len(text) < 8 and int(text) < below
    return int(text) if is_number else -1


def program(words):
    """The script or module that a command line of Python runs, or empty."""
    words = iter(words[1:])
    for word in words:
        if not word.startswith("-") or word == "-":
            return word
        if word.startswith("--"):
            if word == "--check-hash-based-pycs":
                next(words, "")
            continue
        for at, letter in enumerate(word[1:], 2):
            if letter == "c":
                return ""
            if letter in "mXW":
                value = word[at:] or next(words, "")
                if letter == "m":
                    return value
                break
    return ""


def is_launcher():
    """Whether this process is torchrun's own: only its command line says it, since it has the environment of its ranks."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            words = file.read(65536).decode("utf-8", "replace").split("\0")
    except OSError:
        return False
    name = program(words)
    path = name[:-3].replace("/", ".") if name.endswith(".py") else name
    return os.path.basename(name) == "torchrun" or path in LAUNCHERS or path.endswith(tuple("." + each for each in LAUNCHERS))


def start_of(pid):
    """The time since the boot at which a process began, as /proc says it, or empty."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return file.read(4096).rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError, ValueError):
        return ""


def is_alive(pid, start):
    """Whether a process with that start runs. Without /proc its id alone has to do."""
    if os.path.exists("/proc/self/stat"):
        return start_of(pid) == start
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def choose_role(state):
    """RANK is inherited, so a process that has it is a rank only if no other one reports for the same RANK and LOCAL_RANK."""
    env = os.environ
    if is_launcher():
        state.role = "agent"
        return
    state.world = number_from(env.get("WORLD_SIZE"), MOST_RANKS + 1)
    state.rank = number_from(env.get("RANK"), state.world)
    if state.rank < 0:
        return
    owner = env.get(OWNER, "").split(":")
    state.role = "rank"
    if len(owner) != 5 or not owner[0].isdigit() or owner[2:4] != [env["RANK"], env.get("LOCAL_RANK", "")]:
        return
    if int(owner[0]) == state.pid:   # the program has replaced itself by exec, and goes on with larger numbers
        state.sent = int(age(state) * 10) + 1
    elif is_alive(int(owner[0]), owner[4]):
        state.role = "child"


def age(state):
    try:
        with open("/proc/uptime") as file:
            return max(0.0, float(file.read().split()[0]) - float(start_of(state.pid)) / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError):
        return time() % 100000000


def start(load):
    state = State(load)
    choose_role(state)
    if not state.role:
        return
    start = start_of(state.pid)
    state.born = "%s-%d" % (start or int(time() * 100), state.pid)
    os.register_at_fork(before=lambda: before_fork(state), after_in_parent=lambda: after_fork(state),
                        after_in_child=lambda: after_fork_in_child(state))
    if state.role != "agent":
        state.signals = loaded(state, "signals")
        state.fd = state.signals.open_file(state, os.environ.get(OWNER, "").split(":"))
        if state.role == "rank":
            os.environ[OWNER] = ":".join((str(state.pid), str(state.fd), os.environ["RANK"], os.environ.get("LOCAL_RANK", ""), start))
            state.watchdog = state.signals.Watchdog(state, rest)
        state.counters = loaded(state, "counters").Counters(state, promote)
        state.counters.wait_for_torch()
    if state.role != "child":
        begin(state)


def loaded(state, name):
    """A module of the reporter. It is loaded late, when the program may have replaced functions of `time`."""
    module = state.load("trainer_" + name)
    for function in (monotonic, sleep, time):
        if hasattr(module, function.__name__):
            setattr(module, function.__name__, function)
    return module


def promote(state):
    """A child that trains is a rank: its parent is a launcher that has the rank's variables."""
    if state.counters.group_rank() is not None:
        state.rank, state.world = state.counters.group_rank()
    elif is_helper():
        return
    state.pid, state.main = os.getpid(), _thread.get_ident()
    state.born = "%s-%d" % (start_of(state.pid) or int(time() * 100), state.pid)
    state.role = "rank"
    begin(state)


def is_helper():
    """Whether multiprocessing started this process, so that the program's main process is another one."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.current_process().name != "MainProcess"


def begin(state):
    """Starts the threads, which are unknown to `threading`, and get no signals that the program waits for."""
    import atexit
    atexit.register(end, state)
    state.wake = locked()
    all_signals = getattr(_signal, "valid_signals", lambda: set(range(1, _signal.NSIG)) - {32, 33})()
    # Faults of the thread itself raise the first ones, and faulthandler writes stacks for the last.
    keep = {_signal.SIGSEGV, _signal.SIGBUS, _signal.SIGFPE, _signal.SIGILL, _signal.SIGABRT, _signal.SIGURG}
    before = _signal.pthread_sigmask(_signal.SIG_BLOCK, set(all_signals) - keep)
    try:
        start_thread(state, run, state)
        if state.watchdog and state.watchdog.seconds > 0:
            start_thread(state, state.watchdog.run)
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, before)


def start_thread(state, function, *arguments):
    """Waits until the thread runs: Python 3.11 crashes if it ends before a thread that it has started has begun."""
    begun, done = locked(), locked()

    def work():
        begun.release()
        try:
            function(*arguments)
        finally:
            done.release()
    state.threads[_thread.start_new_thread(work, ())] = done
    begun.acquire(timeout=5)


def locked():
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock


def rest(state, seconds):
    """Sleeps, but not beyond the end of the program."""
    if state.wake.acquire(timeout=seconds):
        state.wake.release()


# ---- forks


def before_fork(state):
    state.held.setdefault(_thread.get_ident(), []).append(state.lock.acquire(timeout=5.0))
    if state.watchdog:
        state.watchdog.cancel()   # a child that has it armed waits for ever at its end


def after_fork(state):
    ident = _thread.get_ident()
    held = state.held.get(ident)
    if held and held.pop():
        state.lock.release()
    if not held:
        state.held.pop(ident, None)


def after_fork_in_child(state):
    state.role, state.watchdog, state.is_accepted = "child", None, False
    state.threads, state.sent = {}, 0
    after_fork(state)
    state.held.clear()
    try:
        if state.post:
            state.post.forget()
    except Exception:
        pass   # the child's output is the program's


# ---- the thread


def run(state):
    try:
        rest(state, state.period * max(0.1, phase(state)))
        with state.lock:
            if not state.is_over:
                prepare(state)
        while not state.is_over:
            begun = monotonic()
            try:
                beat(state)
            except Exception:
                state.is_accepted = False
            pause(state, begun)
    except BaseException:   # the interpreter's end, too
        pass


def phase(state):
    """The part of a period after which a process reports, so that not all do it at once."""
    number = state.rank
    if state.role == "agent":
        number = number_from(os.environ.get("PET_NODE_RANK") or os.environ.get("GROUP_RANK"), MOST_RANKS) + 0.5
    return max(number, 0) * 0.618 % 1


def prepare(state):
    """Imports what a thread needs: a child that is forked inside an import could never import the same module."""
    import json
    state.encode, state.decode = json.dumps, json.loads
    for name in ("signals", "stacks", "post"):
        setattr(state, name, getattr(state, name) or loaded(state, name))
    state.post.prepare()
    if sys.version_info >= (3, 12):   # it would warn the program of a thread that is none of the program's
        import warnings
        warnings.filterwarnings("ignore", r"This process \(pid=\d+\) is multi-threaded, use of fork", DeprecationWarning)


def pause(state, begun):
    """Waits for the next heartbeat. In between it samples whether the rank waits for others, at uneven times: even ones could always meet
    the same part of a step."""
    wait, state.once = state.once or state.period, None
    end = max(begun + wait, monotonic() + min(0.5, wait))
    tick = max(0.25, state.period / 50)
    uneven = begun
    while not state.is_over:
        left = end - monotonic()
        if left <= 0:
            return
        uneven = (uneven + 0.618) % 1
        rest(state, min(left, tick * (0.5 + uneven)) if state.role == "rank" and state.counters.is_stepping() else left)
        if state.role == "rank":
            state.counters.sample()


def beat(state, dump=None):
    message = report(state, dump)
    status, answer = state.post.send(state, message, LIMIT)
    state.is_accepted = status == 200
    if status in (404, 410):
        state.is_over = True
    elif status in (429, 503):
        state.period = min(state.period * 2, LONGEST_PERIOD)
    elif status == 200:
        if state.fd >= 0:
            state.signals.mark_alive(state)
        follow(state, answer, dump)


def follow(state, answer, dump):
    period, wanted = answer.get("period"), answer.get("dump")
    if type(period) in (int, float) and period == period:
        before, state.period = state.period, float(min(max(period, 1), LONGEST_PERIOD))
        if state.period > before:   # otherwise all ranks would go on to report within the shorter one
            state.once = before + (state.period - before) * phase(state)
    if dump is not None:
        state.answered = dump
    elif isinstance(wanted, str) and 0 < len(wanted) <= 64 and wanted != state.answered:
        beat(state, wanted)


def common(state, bye=False):
    env = os.environ
    with state.lock:
        if state.is_over:
            raise RuntimeError("nothing more is sent")
        sent, state.sent, state.is_over = state.sent, state.sent + 1, bye
    message = {"v": 1, "role": state.role, "pid": state.pid, "born": state.born, "attempt": env.get("TRAINER_ATTEMPT", "")[:32],
               "restart": env.get("TORCHELASTIC_RESTART_COUNT", "")[:32], "sent": sent, "bye": bye}
    if state.role == "rank":
        message.update(rank=state.rank, world=state.world)
    return message


def report(state, dump=None, bye=False):
    if state.role == "rank" and not state.counters.steps and state.stacks.has_ranks(state):
        state.role = "agent"
    message = common(state, bye)
    if state.role == "agent":
        message["workers"] = state.stacks.workers(state, dump is not None)
        return message
    message.update(state.counters.values())
    message.update(state.stacks.values(state))
    if dump is not None:
        message["dump"] = state.stacks.dump(state, dump)
    return message


def say_bye(state):
    """The last heartbeat, at a normal end. If the server does not answer now, the end does not wait for it."""
    try:
        if state.is_accepted and state.role in ("rank", "agent") and os.getpid() == state.pid:
            state.post.send(state, report(state, bye=True), LIMIT_AT_EXIT, is_resolved=True)
    except BaseException:
        pass


def end(state):
    """Ends the threads. One that waits for the network is left behind, without the lock: OpenSSL and Python crash if a thread uses what ends."""
    if os.getpid() != state.pid:
        return
    say_bye(state)
    try:
        state.is_over = True
        state.wake.release()
        limit = monotonic() + LIMIT_OF_THREADS
        for done in list(state.threads.values()):
            done.acquire(timeout=max(0, limit - monotonic()))
        state.lock.acquire(timeout=LIMIT_AT_EXIT)   # it is never released
    except BaseException:
        pass
