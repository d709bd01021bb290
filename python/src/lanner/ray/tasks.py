"""Work that is no prediction, as tasks on a cluster: one function for each of some items, in their order.

What the tasks share lies in Ray's object store, a model's file among it: the cluster is the model owner's then.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from lanner.errors import LannerError
from lanner.model import Model, load

Item = TypeVar("Item")
Found = TypeVar("Found")


def on_each(
    function: Callable[..., Found], items: Iterable[Item], *shared: object, cpus: float = 1.0
) -> Iterator[Found]:
    """What a function of an item and of what all share gives for each item, in order; a lost node's tasks run again.

    A connection to a cluster must be there.

    Args:
        function: One that a module has, so that every node finds it.
        items: Its first arguments.
        shared: Its others, some perhaps `stored` before.
        cpus: The CPUs that each call takes.

    Raises:
        LannerError: What the first that failed did with.
    """
    import ray
    from ray.exceptions import RayError, RayTaskError

    task = _remote(function).options(num_cpus=cpus, scheduling_strategy="SPREAD")
    references = [each if isinstance(each, ray.ObjectRef) else stored(each) for each in shared]
    for result in [task.remote(item, *references) for item in items]:
        try:
            yield ray.get(result)
        except RayTaskError as failure:
            if isinstance(failure.cause, LannerError):
                raise failure.cause from None
            raise LannerError(f"a task failed ({type(failure.cause).__name__})", fix="see Ray's logs") from None
        except RayError as failure:
            raise LannerError(f"a task was lost ({type(failure).__name__})", fix="see Ray's logs") from None


def stored(shared: object) -> object:
    """What several calls of `on_each` share, in Ray's object store until nobody has the reference any more."""
    import ray

    return ray.put(shared)


def whole_node() -> float:
    """The CPUs of the smallest node that has any: a task that takes so many has a node to itself, of nodes alike."""
    import ray

    counts = [node["Resources"].get("CPU", 0.0) for node in ray.nodes() if node["Alive"]]
    return min((float(count) for count in counts if count), default=1.0)


@cache
def _remote(function: Callable[..., Any]) -> Any:  # noqa: ANN401 - Ray's function
    """A function as a task. Each that is made is one more for the cluster to keep."""
    import ray

    return ray.remote(function)


def packed(model: Model) -> bytes:
    """A model as its file, for tasks."""
    with tempfile.TemporaryDirectory(prefix="lanner-") as folder:
        path = Path(folder) / f"{model.name}.lanner"
        model.save(path)
        return path.read_bytes()


@contextmanager
def unpacked(file: bytes, name: str, **limits: Any) -> Iterator[Model]:  # noqa: ANN401 - those of load
    """A model from what `packed` gave, under its name."""
    with tempfile.TemporaryDirectory(prefix="lanner-") as folder:
        path = Path(folder) / f"{name}.lanner"
        path.write_bytes(file)
        yield load(path, **limits)
