"""Starts the reporter of training processes, and then the sitecustomize that the image has itself.

Each Python of an image loads this file, 2.7 too, so its syntax is theirs. docs/reporter-protocol.md says what the reporter does.
"""
import os
import sys


def _load(name):
    """A module beside this file. It has no name in sys.modules, where the program may have another one of that name."""
    from importlib.machinery import SourceFileLoader
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    module = type(sys)(name)
    module.__file__ = path
    exec(SourceFileLoader(name, path).get_code(name), module.__dict__)
    return module


def _start():
    env = os.environ
    if sys.version_info < (3, 7) or env.get("KUBEFLOW_TRAINER_REPORTER") != "1":
        return
    if not all(env.get("KUBEFLOW_TRAINER_SERVER_" + name) for name in ("URL", "TOKEN", "CA_CERT")):
        return
    if not (env.get("RANK") and env.get("WORLD_SIZE")):   # torchrun's process may have neither
        with open("/proc/self/cmdline", "rb") as file:
            if b"torch" not in file.read(65536):
                return
    _load("trainer_reporter").start(_load)


def _others():
    """The paths without this folder, which moves to their end: no file of it comes before one of the program."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path or ".") != here]
    if len(others) < len(sys.path):
        sys.path[:] = others + [here]
    return others


def _chain():
    """Loads the image's own sitecustomize as if this one were not there; its errors are its own."""
    from importlib.machinery import PathFinder
    spec = PathFinder.find_spec("sitecustomize", _others())
    if spec is not None and spec.loader is not None:
        module = type(sys)("sitecustomize")
        module.__spec__, module.__loader__, module.__package__ = spec, spec.loader, ""
        if spec.has_location:
            module.__file__, module.__cached__ = spec.origin, spec.cached
        if spec.submodule_search_locations is not None:
            module.__path__, module.__package__ = spec.submodule_search_locations, "sitecustomize"
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _chain2():
    import imp
    try:
        found = imp.find_module("sitecustomize", _others())
    except ImportError:
        return
    del sys.modules["sitecustomize"]
    imp.load_module("sitecustomize", *found)


try:
    _start()
except Exception:
    pass   # a fault of the reporter is no fault of the program
_chain() if sys.version_info >= (3, 4) else _chain2()
