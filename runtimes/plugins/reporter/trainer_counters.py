"""Counts what a rank has done. A step costs it a call, a counter and one reading of the clock."""
import sys
from _collections import deque
from time import monotonic

KEPT = 50     # steps and samples of which `own` is computed
FEWEST = 10   # of each, for a number that says something


class Counters:
    def __init__(self, state, promote):
        self.state, self.promote = state, promote
        self.steps, self.last, self.gap = 0, 0.0, -1.0
        self.times, self.samples = deque(maxlen=KEPT), deque(maxlen=KEPT)
        self.batches = 0
        self.saved = self.loaded = -1   # the steps when the state of an optimizer was last read and last set
        self.marks, self.marked = (), monotonic()

    def wait_for_torch(self):
        sys.meta_path.insert(0, Finder({"torch.optim.optimizer": self.watch_optimizers, "torch.utils.data.dataloader": self.watch_loaders}))

    # ---- steps

    def step(self, *_):
        now = monotonic()
        self.steps += 1
        if self.steps > 1:
            took = now - self.last
            self.times.append(took)
            if self.steps > 2 and took > self.gap:   # the time up to the second step is the program's start
                self.gap = took
        self.last = now
        if self.steps == 1 and self.state.role == "child":
            self.begin_in_child()

    def begin_in_child(self):
        try:
            self.promote(self.state)
        except Exception:
            pass

    def watch_optimizers(self, module):
        self.watch_steps(module)
        self.watch_states(module.Optimizer)

    def watch_steps(self, module):
        if hasattr(module, "register_optimizer_step_post_hook"):   # torch 2
            module.register_optimizer_step_post_hook(self.step)
            return
        before = module.Optimizer._hook_for_profile   # torch 1 wraps a class's step at its first instance

        def _hook_for_profile(optimizer):
            before(optimizer)
            kind = type(optimizer)
            if not getattr(kind.step, "is_counted", False):
                kind.step = self.counted(kind.step)
        module.Optimizer._hook_for_profile = _hook_for_profile

    def counted(self, step):
        def counted_step(*args, **kwargs):
            result = step(*args, **kwargs)
            self.step()
            return result
        counted_step.is_counted = counted_step.hooked = True
        return like(step, counted_step)

    # ---- checkpoints

    def watch_states(self, optimizer):
        """A program that writes a checkpoint, in whatever format, reads the states of the optimizers for it."""
        state_dict, load_state_dict = optimizer.state_dict, optimizer.load_state_dict

        def read(*args, **kwargs):
            self.saved = self.steps
            return state_dict(*args, **kwargs)

        def load(*args, **kwargs):
            self.loaded = self.steps
            return load_state_dict(*args, **kwargs)
        optimizer.state_dict, optimizer.load_state_dict = like(state_dict, read), like(load_state_dict, load)

    # ---- batches

    def watch_loaders(self, module):
        """Iterators count what they have given, in a member that adds to the sum: no frame of the reporter is in an error of theirs."""
        def number(iterator):
            return iterator.__dict__.get("_num_yielded", 0)

        def set_number(iterator, value):
            self.batches += value == iterator.__dict__.get("_num_yielded", 0) + 1   # it begins at 0 in each epoch
            iterator.__dict__["_num_yielded"] = value
        module._BaseDataLoaderIter._num_yielded = property(number, set_number)

    # ---- what others count

    @staticmethod
    def group_rank():
        """The rank and size of the default process group, or nothing."""
        try:
            c10d = sys.modules["torch.distributed.distributed_c10d"]
            rank, size = (c10d.get_rank(), c10d.get_world_size()) if c10d.is_initialized() else (-1, -1)
            return (rank, size) if type(rank) is type(size) is int and 0 <= rank < size else None
        except Exception:
            return None

    @staticmethod
    def sequence():
        """How many collectives the default group has begun, if torch says it."""
        try:
            c10d = sys.modules["torch.distributed.distributed_c10d"]
            number = c10d._get_default_group()._get_sequence_number_for_group() if c10d.is_initialized() else -1
            return number if type(number) is int and 0 <= number < 1 << 63 else -1
        except Exception:
            return -1

    # ---- own time

    def is_stepping(self):
        return self.state.world > 1 and self.steps >= 3

    def sample(self):
        """Notes whether the main thread waits for other ranks. A step that takes far longer than others, such as a checkpoint, has no samples."""
        if not self.is_stepping() or not self.times:
            return
        # Torch is asked for its sequence only once in a period.
        self.mark(self.marks[2] if self.marks else -1)
        if monotonic() - self.last <= 2 * median(self.times):
            frame = sys._current_frames().get(self.state.main)
            self.samples.append(self.state.stacks.is_waiting(frame))

    def own(self):
        if len(self.times) < FEWEST:
            return -1
        if self.state.world == 1:
            return round(median(self.times), 4)
        if len(self.samples) < FEWEST:
            return -1
        return round(median(self.times) * (1 - sum(self.samples) / len(self.samples)), 4)

    def mark(self, sequence):
        """Notes since when nothing has moved."""
        marks = (self.steps, self.batches, sequence)
        if marks != self.marks:
            self.marks, self.marked = marks, monotonic()

    def values(self):
        sequence = self.sequence()
        self.mark(sequence)
        return {"steps": self.steps, "batches": self.batches, "seq": sequence, "idle": round(monotonic() - self.marked, 1),
                "gap": round(self.gap, 3), "own": self.own(), "saved": self.saved, "loaded": self.loaded}


def like(function, wrapper):
    """Makes the wrapper look like the function."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(wrapper, name, getattr(function, name, None))
    known = dict(wrapper.__dict__)
    wrapper.__dict__.update(getattr(function, "__dict__", {}))
    wrapper.__dict__.update(known)
    wrapper.__wrapped__ = function
    return wrapper


def median(numbers):
    return sorted(numbers)[len(numbers) // 2]


class Finder:
    """Waits for modules without importing them, and takes itself away when all are there."""

    def __init__(self, wanted):
        self.wanted = wanted

    def find_spec(self, name, path=None, target=None):
        if name not in self.wanted:
            return None
        try:
            spec = self.find_with_others(name, path, target)
            load, hook = spec.loader.exec_module, self.wanted.pop(name)
            if not self.wanted:
                sys.meta_path.remove(self)

            def exec_module(module):
                load(module)
                try:
                    hook(module)
                except Exception:
                    pass
            spec.loader.exec_module = exec_module
            return spec
        except Exception:
            return None   # another finder answers

    def find_with_others(self, name, path, target):
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not self else None
            if spec is not None:
                return spec
        return None
