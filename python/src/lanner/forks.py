"""Clients and servers belong to the process that makes them.

A fork copies a process with its memory: one-time masks, generators and the keys of connections are there twice then,
and sockets are shared. Whatever uses such a copy gives inputs and weights away. `multiprocessing` forks by default on
Linux before Python 3.14, and so do PyTorch's ``DataLoader`` and gunicorn.
"""

from __future__ import annotations

import os
import weakref
from typing import ClassVar, NoReturn

from lanner.errors import MisuseError

#: What to do about it, at the end of a sentence.
_ADVICE = "make a new {kind} in each process, in the function that it runs (docs/how-to/use-several-processes.md)"


class OfProcess:
    """Something that the process which makes it uses, and no other one."""

    #: What it is in errors, as in "client".
    _kind: ClassVar[str]

    def __init__(self) -> None:
        self._process = os.getpid()
        # Numbers of processes return.
        self._inherited = False
        _living.add(self)

    def _is_inherited(self) -> bool:
        """Whether this process has it from another one, of which it is a copy."""
        return self._inherited or self._process != os.getpid()

    def _check_process(self, where: str = "") -> None:
        """Check that this is the process that made it.

        Raises:
            MisuseError: In every other one.
        """
        if self._is_inherited():
            raise MisuseError(
                f"this {self._kind} belongs to process {self._process}, "
                f"and this is process {os.getpid()}, a copy that fork made",
                where=where,
                fix=_ADVICE.format(kind=self._kind),
            )

    def __reduce__(self) -> NoReturn:
        raise MisuseError(
            f"a {self._kind} can neither be copied nor sent to another process",
            fix=_ADVICE.format(kind=self._kind),
        )


def _mark_living() -> None:
    for one in list(_living):
        one._inherited = True


_living: weakref.WeakSet[OfProcess] = weakref.WeakSet()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_living)
