"""Many predictions, by workers on a Ray cluster: each a client with a session, a pairing and keys of its own.

    import ray
    import lanner.ray

    answers = lanner.ray.predict(ray.data.read_parquet("scans"), "models.example:7400", pin="sha256:...")
    answers.write_parquet("answers")

The cluster is the data owner's: its nodes see the inputs, and nothing else of this is secret from the owner. What a
worker needs to trust the server are arguments; keys are made in workers and never leave them. A worker or a node that
is lost costs the inputs that it had not answered, which run again with fresh material.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Unpack

from lanner.client import ClientKeywords
from lanner.errors import MisuseError
from lanner.extras import require
from lanner.prediction import Prediction
from lanner.ray.cluster import check_connected
from lanner.ray.pieces import Reading, pieces_of
from lanner.ray.pool import AHEAD, CPUS, PATIENCE, Pool
from lanner.ray.tracer import Tracer

if TYPE_CHECKING:
    import ray.data

#: Rows that a worker predicts at once: what its loss costs.
BATCH_SIZE = 32


def predict_each(
    dataset: ray.data.Dataset,
    address: str,
    *,
    column: str = "x",
    csv_header: bool | None = None,
    workers: int | None = None,
    batch_size: int = BATCH_SIZE,
    cpus: float = CPUS,
    ahead: int = AHEAD,
    patience: float = PATIENCE,
    state_dir: str | None = None,
    **client: Unpack[ClientKeywords],
) -> Iterator[Prediction]:
    """Predict every row of a dataset in private, and give predictions in its order as soon as they are made.

    Args:
        dataset: The inputs; blocks are read as they are needed, by the cluster.
        address: The server, ``HOST[:PORT]``, as the nodes reach it.
        column: The column of the samples: tensors of the model's input shape, or paths of files that every node can
            read, with one sample each.
        csv_header: For paths of ``.csv`` files, whether their first row is a header, which is left out. Where it is
            None, what looks like one is refused.
        workers: How many clients; one for each CPU of the cluster where it is None. Those for whom there is no room yet
            join as soon as there is.
        batch_size: How many rows a worker predicts at once, which is what its loss costs.
        cpus: The share of a CPU that Ray counts for each worker. Reading needs some, too.
        ahead: For how many predictions a worker that waits for inputs keeps material.
        patience: Seconds for which no worker may get on, as where the server is busy, before that is an error.
        state_dir: The folder on each node for the workers' state directories, which must be on a disk of the node; the
            folder ``ray`` in the usual state directory where it is None.
        client: As for `lanner.Client`: `pin` and what else says which server is trusted. Files are named by paths that
            hold on every node.

    Returns:
        Predictions whose `index` is the row's place in the dataset, from 0.

    Raises:
        MisuseError: If an argument is wrong, Ray is not installed, or no cluster is connected to.
        InputError: If a row does not fit; the predictions before it have been given then.
        BusyError: If the server had no room for anybody for `patience` seconds.
        TransportError: If it cannot be reached or is not trusted.
        PeerError: If it refuses.
    """
    _check(workers, batch_size, ahead, patience)

    def made() -> Iterator[Prediction]:
        with Pool(address, client, workers=workers, cpus=cpus, ahead=ahead, patience=patience, base=state_dir) as pool:
            yield from pool.predict(pieces_of(dataset, batch_size), Reading(column, csv_header))

    return made()


def predict(
    dataset: ray.data.Dataset,
    address: str,
    **options: Any,  # noqa: ANN401 - those of predict_each
) -> ray.data.Dataset:
    """Predict every row of a dataset in private, as `predict_each` does, and give a dataset of the answers in order.

    Args:
        dataset: The inputs.
        address: The server.
        options: As for `predict_each`.

    Returns:
        Rows with ``index``, what the output policy reveals (``label``, ``probability`` and others, as `Prediction` has
        them), ``seconds`` of the offline and the online phase, and ``bytes`` in both directions.

    Raises:
        LannerError: As `predict_each`; there are no answers then.
    """
    import ray.data

    return ray.data.from_items([_row(prediction) for prediction in predict_each(dataset, address, **options)])


def _check(workers: int | None, batch_size: int, ahead: int, patience: float) -> None:
    require("ray", "predicting on a cluster")
    if workers is not None and workers < 1:
        raise MisuseError(f"workers is {workers}", fix="give 1 or more")
    if batch_size < 1:
        raise MisuseError(f"batch_size is {batch_size}", fix="give 1 or more")
    if ahead < 0 or patience <= 0:
        raise MisuseError(f"ahead is {ahead} and patience {patience:g}", fix="give 0 or more, and more than 0 seconds")
    check_connected()


def _row(prediction: Prediction) -> dict[str, Any]:
    """A prediction as a row: its place, what was revealed, and what it took."""
    told = (
        "label",
        "class_name",
        "labels",
        "class_names",
        "probability",
        "top",
        "logits",
        "values",
        "saturated",
        "shape",
    )
    revealed = {name: getattr(prediction, name) for name in told}
    phases = [prediction.phases[name] for name in ("offline", "online")]
    return {
        "index": prediction.index,
        **{name: value for name, value in revealed.items() if value is not None},
        "seconds": sum(phase.seconds for phase in phases),
        "bytes": sum(phase.bytes for phase in phases),
    }


__all__ = ["Tracer", "predict", "predict_each"]
