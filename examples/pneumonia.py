"""A hospital serves a network for chest X-rays; a doctor asks it about pictures that the hospital does not see.

    .venv/bin/python examples/pneumonia.py

NOT FOR CLINICAL USE. Both parties run in this process, and talk over TLS all the same. The doctor learns a label and
its probability to two digits, and nothing else. The program asserts that each label is the one of the exact fixed-point
reference, each probability its own, digit for digit, and that most of the ten pictures are classified correctly.
They are of the test split, where the network is surer of itself than it is right: see models/README.md.
"""

from __future__ import annotations

import csv
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

import lanner

FOLDER = Path(__file__).with_suffix("")

#: Decimal digits of a probability that the doctor learns.
DIGITS = 2


def main() -> None:
    """Compile and serve as the hospital, predict as the doctor, compare with the truth."""
    with (FOLDER / "labels.csv").open(newline="", encoding="utf-8") as file:
        truth = {row["picture"]: int(row["label"]) for row in csv.DictReader(file)}

    # A hospital would calibrate on X-rays of its own; these ten are all that is here.
    image = lanner.ImageDescription.read(FOLDER / "image.toml")
    x = np.stack([image.load(FOLDER / picture, (1, 28, 28)) for picture in truth])
    with as_file(files("lanner") / "networks" / "pneumonia.onnx") as network:
        model = lanner.compile(
            network,
            x,
            mode="falcon",
            output="probability",
            digits=DIGITS,
            input_range=(0, 1),
            image=image,
            classes=["normal", "pneumonia"],
        )
    expected = model.predict_fixed(x).argmax(1)

    with (
        tempfile.TemporaryDirectory() as state,
        lanner.Server(model, "127.0.0.1:0", state_dir=state) as server,
        lanner.Client(server.address, pin=server.fingerprint, pin_model=model.commitment) as client,
    ):
        predictions = [client.predict(sample) for sample in x]

    for picture, prediction in zip(truth, predictions, strict=True):
        print(f"{picture}: {prediction.class_name}, {prediction.probability:.{DIGITS}f}")
    labels = [prediction.label for prediction in predictions]
    assert labels == expected.tolist()
    probabilities = [prediction.probability for prediction in predictions]
    assert probabilities == model.predict_probability(x).tolist()
    right = sum(label == wanted for label, wanted in zip(labels, truth.values(), strict=True))
    assert right >= 8, right
    print(f"{right} of {len(truth)} as the data set says")


if __name__ == "__main__":
    main()
