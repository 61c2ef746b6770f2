"""A group whose collectives only count, or wait for ever."""
import time

_group = None


class Group:
    number = 0

    def _get_sequence_number_for_group(self):
        return self.number


def init_process_group(rank, world_size):
    global _group
    _group = Group()
    _group.rank, _group.size = rank, world_size


def is_initialized():
    return _group is not None


def _get_default_group():
    return _group


def get_rank():
    return _group.rank


def get_world_size():
    return _group.size


def all_reduce(seconds=0.0):
    _group.number += 1
    time.sleep(seconds)
