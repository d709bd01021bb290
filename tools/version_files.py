"""Writes a small file of each kind that lanner keeps on disk, which later versions must read, or refuse in words.

    python tools/version_files.py FOLDER

A release does so once, into ``python/tests/data/versions/VERSION``. The tests there hold later builds against what it
wrote: a compiled model, its public half, a client's keys, a table of kernel times, the state directories of a server
and a client with a pairing and material for one prediction, and `expected.json`, which says what reading them gives.
"""

from __future__ import annotations

import json
import sqlite3
import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import lanner
from lanner.benchmarks.kernel_times import table
from lanner.cli.build import build_facts
from lanner.kernel_times import KERNELS

#: A time that does not come, for material that would expire. It is 2^52 seconds after 1970.
NEVER = 1 << 52

README = """\
# Files of version {version}

`tools/version_files.py` wrote these files with a build of version {version}: wire version {wire_version}, file version
{file_version}. Later versions read them, or refuse them in a sentence, as the tests check
([the policy](../../../../../docs/reference/versions.md)).

| file | what it is |
|---|---|
| `tiny.lanner` | a model of 4 inputs and 2 scores, with random weights, for mode `tabula` |
| `tiny.public` | its public half |
| `tiny.keys` | a client's keys for it |
| `{kernels}` | a table of kernel times, with times that nobody measured |
| `server/`, `client/` | the parties' state directories: a pairing, and material for a prediction that never expires |
| `expected.json` | a sample, the integers that it gives, and what else reading these files gives |

**The keys and the material here are of no use**: they were made for these files, protect nothing, and are known to
everybody. Git keeps no modes, so that others can read these, which no real state directory allows.
"""


def main() -> int:
    """Write the files into a new folder."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    write(folder)
    return 0


def write(folder: Path) -> None:
    """Write the files into an empty folder."""
    sample = np.array([0.25, 0.5, 0.75, 1.0], np.float32)
    model = tiny_model()
    model.save(folder / "tiny.lanner")
    model.export_public(folder / "tiny.public")
    lanner.keygen(model, folder / "tiny.keys")
    # What a server gets follows from the keys.
    (folder / "tiny.keys.upload").unlink()
    (folder / KERNELS).write_text(table(kernel_times()), encoding="utf-8")
    with lanner.Server(model, state_dir=folder / "server") as server:
        client = lanner.Client(server.address, pin=server.fingerprint, state_dir=folder / "client")
        with client:
            client.keep(1)
        fingerprint = server.fingerprint
    for party in ("server", "client"):
        keep_for_ever(folder / party)
    facts = build_facts()
    expected: dict[str, Any] = {
        **{name: facts[name] for name in ("version", "wire_version", "file_version")},
        "commitment": model.commitment,
        "fingerprint": fingerprint,
        "sample": sample.tolist(),
        "integers": lanner.run(model, sample).integers,
    }
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(README.format(**facts, kernels=KERNELS), encoding="utf-8")
    for path in folder.rglob("*"):
        path.chmod(stat.S_IRWXU if path.is_dir() else stat.S_IRUSR | stat.S_IWUSR)


def tiny_model() -> lanner.Model:
    """One layer of random weights. Mode tabula has the smallest material."""
    rng = np.random.default_rng(3)
    weights = numpy_helper.from_array(rng.standard_normal((2, 4)).astype(np.float32), "w")
    entry = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    scores = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])
    node = helper.make_node("Gemm", ["x", "w"], ["y"], name="fc", transB=1)
    proto = helper.make_model(helper.make_graph([node], "tiny", [entry], [scores], [weights]))
    proto.opset_import[0].version = 17
    proto.ir_version = 8
    samples = rng.random((32, 4), dtype=np.float32)
    return lanner.compile(proto, samples, mode="tabula", output="logits", input_range=(0, 1), name="tiny")


def kernel_times() -> dict[str, Any]:
    """A table in which a step of one protocol takes a second."""
    rates = {"offline": {"steps": 1.0}, "online": {"steps": 1.0}}
    return {"machine": "a machine of the tests", "setup": {}, "protocols": {"delphi.fc": rates}}


def keep_for_ever(state: Path) -> None:
    """Let material in a state directory never expire, and fold what was written last into the index."""
    with sqlite3.connect(state / "material" / "index") as index:
        index.execute("UPDATE material SET expires = ?", (NEVER,))
    index.execute("PRAGMA journal_mode = DELETE")
    index.close()


if __name__ == "__main__":
    sys.exit(main())
