"""Keys of one's own: made once, uploaded once, refused with a sentence where they do not fit."""

from __future__ import annotations

import hashlib
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanner as library
from helpers.models import tiny_classifier, tiny_samples
from helpers.processes import Finished, Serving, lanner, serving
from helpers.scraping import Scraped


def compiled(folder: Path, mode: str) -> Path:
    """A model in a mode."""
    path = folder / f"{mode}.lanner"
    library.compile(tiny_classifier(), tiny_samples(), name="tiny", mode=mode).save(path)
    return path


@pytest.fixture(scope="module")
def gazelle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose keys are large."""
    return compiled(tmp_path_factory.mktemp("gazelle"), "gazelle")


@pytest.fixture
def keys(gazelle: Path, tmp_path: Path) -> Path:
    """Keys for `gazelle`, made of its public half."""
    public, path = tmp_path / "MODEL.public", tmp_path / "KEYS"
    lanner("export", gazelle, "-o", public)
    made = lanner("keygen", public, "-o", path)
    assert made.code == 0, made.errors
    return path


def upload_of(keys: Path) -> Path:
    return keys.with_name(keys.name + ".upload")


def predict(server: Serving, samples: Path, *options: object) -> Finished:
    return lanner("predict", server.address, samples, *server.pin, *options)


def sent(finished: Finished) -> int:
    """What the set-up sent; a batch shares it."""
    assert finished.code == 0, finished.errors
    predictions: list[dict[str, Any]] = finished.document["predictions"]
    return int(sum(prediction["phases"]["setup"]["bytes_sent"] for prediction in predictions))


def one(samples_file: Path, folder: Path) -> Path:
    path = folder / "one.npy"
    np.save(path, np.load(samples_file)["x"][0])
    return path


def test_the_files_say_what_they_are(gazelle: Path, tmp_path: Path) -> None:
    path = tmp_path / "KEYS"
    made = lanner("keygen", gazelle, "-o", path)
    upload = upload_of(path).read_bytes()
    assert made.document == {
        "keys": str(path),
        "keys_bytes": path.stat().st_size,
        "upload": str(upload_of(path)),
        "upload_bytes": len(upload),
        "upload_hash": hashlib.sha256(upload).hexdigest(),
    }
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.stat().st_size < 300
    again = lanner("keygen", gazelle, "-o", path)
    assert (again.code, again.document["error"]["where"]) == (2, str(path))
    assert path.stat().st_size == made.document["keys_bytes"]
    other = lanner("keygen", gazelle, "-o", tmp_path / "OTHER")
    assert other.document["upload_hash"] != made.document["upload_hash"]


def test_a_second_run_uploads_nothing_over_a_restart(
    gazelle: Path, keys: Path, tmp_path: Path, samples_file: Path
) -> None:
    labels = np.load(samples_file)["y"].tolist()
    length, sample = upload_of(keys).stat().st_size, one(samples_file, tmp_path)
    with serving(tmp_path / "server", gazelle) as server:
        assert sent(predict(server, sample, "--keys", keys)) > length
        second = predict(server, samples_file, "--keys", keys)
        assert sent(second) < length / 10
        assert [prediction["label"] for prediction in second.document["predictions"]] == labels
        server.end(signal.SIGKILL)
    upload_of(keys).unlink()
    with serving(tmp_path / "server", gazelle, "--metrics", "127.0.0.1:0") as server:
        assert sent(predict(server, sample, "--keys", keys)) < length / 10
        assert Scraped.of_server(server.document["metrics"]).total("lanner_uploaded_keys_bytes") == length
        # What is lost on either side is made again.
        for kept in (tmp_path / "server" / "keys").iterdir():
            kept.unlink()
        assert sent(predict(server, sample, "--keys", keys)) > length
        made = lanner("prepare", server.address, "--count", 1, *server.pin, "--keys", keys)
        assert made.document["phases"]["setup"]["bytes_sent"] < length / 10
        prepared = predict(server, sample, "--keys", keys).document["predictions"][0]
        assert prepared["phases"]["offline"]["bytes_sent"] == 0


def test_a_server_without_room_is_sent_them_each_time(
    gazelle: Path, keys: Path, tmp_path: Path, samples_file: Path
) -> None:
    sample = one(samples_file, tmp_path)
    with serving(tmp_path / "server", gazelle, "--max-keys", 0) as server:
        both = [sent(predict(server, sample, "--keys", keys)) for _ in range(2)]
        assert both[0] == both[1] > upload_of(keys).stat().st_size
    assert not (tmp_path / "server" / "keys").exists()
    assert lanner("serve", gazelle, "--max-keys", -1).code == 2


def test_several_clients_upload_the_same_at_once(gazelle: Path, keys: Path, tmp_path: Path, samples_file: Path) -> None:
    sample = one(samples_file, tmp_path)
    with serving(tmp_path / "server", gazelle) as server:
        with ThreadPoolExecutor(3) as pool:
            results = list(pool.map(lambda _: predict(server, sample, "--keys", keys), range(3)))
        assert [result.code for result in results] == [0, 0, 0]
        assert sent(predict(server, sample, "--keys", keys)) < upload_of(keys).stat().st_size / 10


def test_what_is_wrong_with_keys_is_said_before_anything_is_asked(
    gazelle: Path, keys: Path, tmp_path: Path, samples_file: Path
) -> None:
    good = keys.read_bytes()
    with serving(tmp_path / "server", gazelle) as server:

        def refused(path: Path) -> str:
            result = predict(server, samples_file, "--keys", path)
            assert (result.code, result.document["error"]["where"]) == (2, str(path)), result.document
            assert result.document["error"]["fix"]
            return str(result.document["error"]["what"])

        assert "no such file" in refused(tmp_path / "nothing")
        for damaged in (good[:-1], good[:20], good[:40] + bytes([good[40] ^ 1]) + good[41:]):
            keys.write_bytes(damaged)
            assert refused(keys) == "this is a damaged file of keys"
        keys.write_bytes(upload_of(keys).read_bytes())
        assert refused(keys) == "this is no file of keys"
        keys.write_bytes(good)
        keys.chmod(0o644)
        assert refused(keys) == "others may read these keys"
        cheetah = tmp_path / "CHEETAH"
        library.keygen(library.load(compiled(tmp_path, "cheetah")), cheetah)
        assert "the keys are for parameter set" in refused(cheetah)
    assert lanner("keygen", samples_file, "-o", tmp_path / "N").code == 3
    assert lanner("keygen", gazelle, "-o", tmp_path / "none" / "N").code == 2


def test_a_library_client_takes_keys(gazelle: Path, tmp_path: Path) -> None:
    model, x = library.load(gazelle), tiny_samples(1)
    made = library.keygen(gazelle, tmp_path / "KEYS")
    with library.Server(model, state_dir=tmp_path / "server") as server:
        for most in (made.upload_bytes * 2, made.upload_bytes / 10):
            with library.Client(server.address, pin=server.fingerprint, keys=made.keys) as client:
                assert client.predict(x).phases["setup"].bytes_sent < most
        assert server.kept()["uploaded_bytes"] == made.upload_bytes
