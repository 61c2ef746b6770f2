"""Has no hooks for steps, like torch 1: a class's step is wrapped at its first instance."""
import functools


class Optimizer:
    def __init__(self):
        self._hook_for_profile()

    def _hook_for_profile(self):
        if not getattr(type(self).step, "hooked", None):
            type(self).step = self.with_profile(type(self).step)
            type(self).step.hooked = True

    @staticmethod
    def with_profile(step):
        @functools.wraps(step)
        def wrapper(*args, **kwargs):
            return step(*args, **kwargs)
        return wrapper
