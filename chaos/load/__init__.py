"""The load of `make chaos`: merchants, customers, receivers and operators, whose acts are drawn from a seed."""

from chaos.load.load import Load, LoadAddresses
from chaos.load.recorder import LoadCounters
from chaos.load.transactions import LoadError

__all__ = ["Load", "LoadAddresses", "LoadCounters", "LoadError"]
