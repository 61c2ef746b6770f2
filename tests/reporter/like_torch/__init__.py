"""A package in the place of PyTorch: it has the parts that the reporter uses, with their names and shapes."""
from torch import optim
from torch.utils import data

__all__ = ["data", "optim"]
