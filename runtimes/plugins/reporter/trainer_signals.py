"""Lets faulthandler write stacks from C, for processes in which Python does not run on: after a signal, or after a time.

SIGURG is ignored unless it is handled, and its handler interrupts sleep() and poll() of C. So only processes get it that are silent, or
children of a process whose stacks are asked for, and only while they handle it and have the rank's file open.
"""
import _signal
import os
from time import monotonic, sleep, time

NAME = "/memfd:trainer-stacks"   # of the file in memory, as /proc shows it
LOW = 200                        # a low descriptor could be one that a program counts on
LONGEST_TEXT = 16384


def open_file(state, owner):
    """Opens the rank's file, or in a child that of its rank, and lets SIGURG write all stacks to it. -1 if the machine offers no such file."""
    low = -1
    try:
        import faulthandler
        import fcntl
        if state.role == "rank":
            low = os.memfd_create(NAME.partition(":")[2])
            leave_time(low, time() + 3 * state.period + 5)
        else:
            path = "/proc/%d/fd/%d" % (int(owner[0]), int(owner[1]))
            if not is_file(path):
                return -1
            low = os.open(path, os.O_WRONLY)
        fcntl.fcntl(low, fcntl.F_SETFL, os.O_APPEND)
        high = duplicate(low)
        state.file = os.fstat(high)
        if _signal.getsignal(_signal.SIGURG) == _signal.SIG_DFL:
            faulthandler.register(_signal.SIGURG, file=high, all_threads=True, chain=False)
        return high
    except (AttributeError, ImportError, OSError, ValueError, RuntimeError):
        return -1
    finally:
        if low >= 0:
            os.close(low)


def duplicate(low):
    import fcntl
    for least in (LOW, LOW // 4, 3):
        try:
            return fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, least)
        except OSError:   # the limit of descriptors is lower
            pass
    raise OSError("no descriptor")


def leave_time(fd, until):
    """It is the time of access, which no write changes: the rank is not silent while its children write stacks there."""
    os.utime(fd, (until, 0))


def mark_alive(state):
    """The file's time says until when the rank is not silent, so that its agent sends it no signal. Other signals' output is dropped."""
    if not is_still_there(state):
        return
    if os.fstat(state.fd).st_size > 4 * LONGEST_TEXT:
        os.ftruncate(state.fd, 0)
    leave_time(state.fd, time() + 2 * state.period + 5)


def is_still_there(state):
    """Whether signal and descriptor are still the reporter's. If the program has taken one of them, it has both from now on."""
    is_default = _signal.getsignal(_signal.SIGURG) == _signal.SIG_DFL   # faulthandler's handler is unknown to this module
    try:
        is_file = os.path.samestat(os.fstat(state.fd), state.file)
    except OSError:
        is_file = False
    if is_default and is_file:
        return True
    if is_default:
        import faulthandler
        faulthandler.unregister(_signal.SIGURG)
    elif is_file:
        os.close(state.fd)
    state.fd = -1
    return False


def file_of(pid):
    """The path of the rank's file in a process, or empty."""
    folder = "/proc/%d/fd" % pid
    try:
        for name in os.listdir(folder)[:8192]:
            path = folder + "/" + name
            if is_file(path):
                return path
    except OSError:
        pass
    return ""


def is_file(path):
    try:
        return os.readlink(path).startswith(NAME)
    except OSError:
        return False


def is_caught(pid):
    """Whether a process handles SIGURG, and is neither stopped nor a zombie, which answer no signal."""
    with open("/proc/%d/status" % pid, "rb", 0) as file:
        fields = dict(line.split(b":", 1) for line in file.read(8192).split(b"\n") if b":" in line)
    is_running = fields[b"State"].split()[0] not in (b"T", b"t", b"Z", b"X")
    return is_running and int(fields[b"SigCgt"], 16) >> (_signal.SIGURG - 1) & 1 == 1


def text_by_signal(pid, path, end):
    """The handler in `pid` writes it, which needs no lock of Python there. The end is kept, since the main thread comes last."""
    try:
        if not path or not is_caught(pid):
            return ""
        with open(path, "r+b", 0) as file:
            until = os.fstat(file.fileno()).st_atime
            file.truncate(0)
            os.kill(pid, _signal.SIGURG)
            size, same, limit = 0, 0, min(end, monotonic() + 2)
            while monotonic() < limit and same < 5:   # a text has no end of its own
                sleep(0.03)
                now = os.fstat(file.fileno()).st_size
                same = same + 1 if now == size > 0 else 0
                size = now
            file.seek(max(0, size - LONGEST_TEXT))
            text = file.read(LONGEST_TEXT).decode("utf-8", "replace")
            file.truncate(0)
            leave_time(file.fileno(), until)
            return text
    except (OSError, KeyError, ValueError):
        return ""


def is_same(path, fd):
    try:
        return bool(path) and os.path.samestat(os.stat(path), os.fstat(fd))
    except OSError:
        return False


def is_silent(path):
    """Whether the rank that has this file open has sent no heartbeat for long, by the time that it left there."""
    try:
        return bool(path) and os.stat(path).st_atime < time()
    except OSError:
        return False


class Watchdog:
    """Lets faulthandler write all stacks to stderr if Python's lock is held too long, since no thread could send them then.

    faulthandler has one such timer in a process, and the program's use of it comes first.
    """

    def __init__(self, state, rest):
        import faulthandler
        self.rest = rest
        self.state, self.is_taken, self.is_armed = state, False, False
        self.arm, self.disarm = faulthandler.dump_traceback_later, faulthandler.cancel_dump_traceback_later
        faulthandler.dump_traceback_later = self.by_user(self.arm)
        faulthandler.cancel_dump_traceback_later = self.by_user(self.disarm)
        try:
            self.least = float(os.environ.get("KUBEFLOW_TRAINER_REPORTER_WATCHDOG", "60"))
            self.stderr = os.fstat(2)
        except (OSError, ValueError):
            self.least = 0
        self.seconds = self.least

    def by_user(self, call):
        def use(*args, **kwargs):
            with self.state.lock:
                self.is_taken = True
                return call(*args, **kwargs)
        use.__name__ = use.__qualname__ = call.__name__
        use.__module__, use.__doc__ = "faulthandler", call.__doc__
        return use

    def cancel(self):
        """Before a fork, with the lock held until it is done."""
        if self.is_armed and not self.is_taken:
            self.disarm()
            self.is_armed = False

    def run(self):
        """A thread of its own, since the one that uses the network can be late."""
        try:
            while not self.state.is_over and not self.is_taken:
                self.seconds = max(self.least, 4 * self.state.period)
                with self.state.lock:
                    if not os.path.samestat(os.fstat(2), self.stderr):
                        return
                    if not self.is_taken:
                        self.arm(self.seconds, file=2, exit=False)
                        self.is_armed = True
                self.rest(self.state, min(self.state.period, self.seconds / 4))
        except Exception:
            pass   # stderr is another file now, or closed
        finally:
            with self.state.lock:
                self.cancel()
