"""Has the hooks of torch 2."""
import functools

_global_optimizer_post_hooks = {}


def register_optimizer_step_post_hook(hook):
    _global_optimizer_post_hooks[len(_global_optimizer_post_hooks)] = hook


class Optimizer:
    def __init__(self):
        if not getattr(type(self).step, "hooked", None):
            type(self).step = self.with_hooks(type(self).step)
            type(self).step.hooked = True

    @staticmethod
    def with_hooks(step):
        @functools.wraps(step)
        def wrapper(*args, **kwargs):
            result = step(*args, **kwargs)
            for hook in _global_optimizer_post_hooks.values():
                hook(args[0], args[1:], kwargs)
            return result
        return wrapper
