"""The page of benchmarks: figures are those of the documents, and nothing that failed is left out in silence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.collect import collect, main
from bench.kernels import (
    GATES,
    KERNELS,
    OPERATIONS,
    ROTATIONS,
    TRANSFORMS,
    kernels_table,
    limits_table,
    operations_table,
)
from bench.markdown import ratio, size_of, table, time_of
from bench.page import page
from bench.peers import merge
from lanner.benchmarks.published import paper as paper_of
from lanner.benchmarks.published import public_code


def row(name: str, suite: str, phase: str, **others: object) -> dict[str, Any]:
    mode = str(others.get("mode", "gazelle"))
    given, code = paper_of(mode, name), public_code(mode, name)
    figures = {
        "suite": suite,
        "name": name,
        "network": "loopback",
        "shaping": "none",
        "mode": mode,
        "rounding": None,
        "precision": "0.5%",
        "logit_error": 0.0043,
        "phase": phase,
        "seconds": 0.25,
        "fastest": 0.2,
        "server_seconds": 0.002,
        "bytes": 7_000_000,
        "rounds": 3,
        "repeat": 9,
        "weights": "trained",
        "paper": None if given is None else given.document(phase),
        "public_code": None if code is None else code.document(phase),
    }
    return {**figures, **others}


def document(*rows: dict[str, Any], load: float = 0.1, failures: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    machine = {
        "processor": "Test CPU",
        "cores": 2,
        "features": ["aes", "avx2"],
        "memory_bytes": 8_000_000_000,
        "system": "Linux",
        "python": "3.11",
        "lanner": "9.9.9",
        "load": load,
    }
    return {"command": "lanner bench x", "machine": machine, "rows": list(rows), "failures": list(failures)}


def phases(name: str, suite: str, **others: object) -> list[dict[str, Any]]:
    return [row(name, suite, phase, **others) for phase in ("setup", "offline", "online", "total")]


def write(folder: Path, *documents: dict[str, Any]) -> list[Path]:
    paths = [folder / f"{index}.json" for index in range(len(documents))]
    for path, content in zip(paths, documents, strict=True):
        path.write_text(json.dumps(content))
    return paths


def line_of(text: str, *words: str) -> str:
    found = [line for line in text.splitlines() if line.startswith("|") and all(word in line for word in words)]
    assert len(found) == 1, found
    return found[0]


def test_every_row_is_on_the_page_with_its_ratio(tmp_path: Path) -> None:
    parts = write(
        tmp_path,
        document(*phases("mnist_d", "networks"), *phases("fc_1024x128", "layers")[1:]),
        document(*phases("mnist_d", "networks", network="wan", shaping="in-process relay"), load=3.0),
        document(*phases("relu_1000", "activations")[1:]),
    )
    text = page(collect(parts))
    # 810 ms and 70 MB there, 250 ms and 7 MB here.
    assert "| 3.24x | 70.0 MB | 10.0x |" in line_of(text, "mnist_d", "loopback", "trained")
    # 7 MB at 100 Mbit/s and three round trips.
    assert "| 680 ms |" in line_of(text, "mnist_d", "wan", "trained")
    # 16.2 ms and 9.7 ms there, 2 ms of the server here.
    fc = line_of(text, "fc_1024x128")
    assert "| 8.10x |" in fc
    assert "| 4.85x |" in fc
    assert "| 201 ms | 0.80x |" in line_of(text, "relu_1000", "online")
    assert "Every benchmark ran" in text
    assert "up to 3.0 processes" in text
    assert text.count("    lanner bench x\n") == 3


def test_each_mode_has_a_section_with_its_own_papers_figures(tmp_path: Path) -> None:
    falcon = [row("fc_2048x1", "layers", phase, mode="falcon") for phase in ("offline", "online", "total")]
    pools = [row("maxpool_relu_2x2_of_1000", "activations", phase, mode="falcon") for phase in ("offline", "online")]
    plain = [row("fc_2048x1", "layers", phase, mode="cheetah") for phase in ("offline", "online", "total")]
    parts = write(tmp_path, document(*falcon, *pools, *plain), document(*phases("fc_2048x1", "layers")[1:]))
    text = page(collect(parts))
    gazelle, of_falcon, cheetah = text.split("\n## Mode `")[1:]
    assert gazelle.startswith("gazelle`")
    assert of_falcon.startswith("falcon`")
    assert cheetah.startswith("cheetah`")
    # 8 ms and 5.1 ms of the code there, 2 ms of the server here; 0.1 ms; nothing.
    assert "| 8.00 ms | 4.00x | 4.00x | 5.10 ms | 2.55x | 2.55x |" in line_of(gazelle, "fc_2048x1")
    assert line_of(of_falcon, "fc_2048x1").endswith("| 100 µs | 0.05x | 0.05x |")
    assert line_of(cheetah, "fc_2048x1").endswith("| 9 |")
    # 32.3 + 12.5 ms and 4.82 + 2.44 MB there, 250 ms and 7 MB here.
    assert line_of(of_falcon, "of_1000", "offline").endswith("| 44.8 ms | 0.18x | 7.26 MB | 1.04x |")


def test_phases_of_lookups_stand_apart_beside_circuits(tmp_path: Path) -> None:
    counted = {"work": {"relu": {"count": 58_624.0}}, "weights": "random"}
    lookups = phases("lenet", "networks", mode="tabula", **counted)
    parts = write(tmp_path, document(*lookups, *phases("lenet", "networks", bytes=3_000_000)))
    text = page(collect(parts)).split("### Online alone")[1]
    # 290 ms and 3.5 MB there, 250 ms and 7 MB here; 3 MB in circuits.
    assert "| 58,624 | 250 ms | 250 ms | 7.00 MB | 7.00 MB | 3 | 3 |" in line_of(text, "lenet", "58,624")
    assert line_of(text, "lenet", "58,624").endswith(
        "| 290 ms | 1.16x | 3.50 MB | 0.50x | 11.1 s, 6.30 s, 3.90 s | 124 MB, 62.0 MB, 31.0 MB | 250 ms | 3.00 MB |"
    )


def test_one_activation_stands_beside_tables_of_words_and_circuits(tmp_path: Path) -> None:
    line: dict[str, Any] = {"bench": "activation", "n": 100_000, "ring": 24, "rounds": 1, "offline_rounds": 9}
    line |= {"offline": 1e-5, "online": 5e-7, "offline_bytes": 1000.0, "online_bytes": 8.25}
    line |= {"client_bytes": 512.0, "server_bytes": 256.0}
    lines = tmp_path / "activation.jsonl"
    of_lookup = {**line, "name": "lookup", "bits": 22, "dropped": 12}
    of_circuit = {**line, "name": "circuit", "bits": 16, "dropped": 6}
    lines.write_text(json.dumps(of_lookup) + "\n" + json.dumps(of_circuit) + "\n")
    rows = document(*phases("lenet", "networks", mode="tabula"))
    text = page(collect([*write(tmp_path, rows), lines]))
    assert "amortized on 100,000, by" in " ".join(text.split())
    ours = "| 10.0 µs | 0.50 µs | 1.00 kB | 66.0 | 1 | 512 B | 256 B |"
    # 0.55 us and 16 bytes there, and 2^10 words of 8 bytes; 111 us, 1.1 kB and 8.5 kB.
    assert f"{ours} 0.55 µs | 1.10x | 16 B | 1.94x | 8.19 kB | 16.0x |" in line_of(text, "lookup, k = 10, d = 12")
    assert f"{ours} 111 µs | 222x | 1.10 kB | 133x | 8.50 kB | 16.6x |" in line_of(text, "circuit, 16 bits, 6 dropped")
    assert "## Operations" not in text


def test_both_roundings_of_a_mode_are_told_apart(tmp_path: Path) -> None:
    def rows(rounding: str, transferred: int) -> list[dict[str, Any]]:
        measured = phases("mnist_d", "networks", mode="cheetah", rounding=rounding, bytes=transferred)
        return [*measured, *phases("fc_128x16", "layers", mode="cheetah", rounding=rounding)[1:]]

    parts = write(tmp_path, document(*rows("faithful", 5_000_000)), document(*rows("exact", 8_000_000)))
    text = page(collect(parts))
    networks, setup = text.split("\nSet-up, once")
    assert "8.00 MB" in line_of(networks, "| mnist_d | exact | 0.5% | 0.43% | loopback |")
    assert "5.00 MB" in line_of(networks, "| mnist_d | faithful | 0.5% | 0.43% | loopback |")
    assert "8.00 MB" in line_of(setup, "| mnist_d | exact | 0.5% | 0.43% | loopback |")
    for part in (networks, setup):
        assert part.index("| mnist_d | exact |") < part.index("| mnist_d | faithful |")
    for rounding in ("exact", "faithful"):
        line_of(text, f"| fc_128x16 | {rounding} | 0.5% | 0.43% | loopback |")


def test_what_somebody_noted_of_old_figures_is_told_until_all_are_new(tmp_path: Path) -> None:
    parts = write(tmp_path, document(*phases("mnist_d", "networks")))
    written, text = tmp_path / "all.json", tmp_path / "page.md"
    written.write_text(json.dumps({**collect(parts), "notes": ["Rows of `mnist_d` are old."]}))
    targets = ["--json", str(written), "--page", str(text)]
    assert main(targets) == 0
    assert "**Rows of `mnist_d` are old.**\n" in text.read_text()
    assert main([*map(str, parts), *targets]) == 0
    assert "are old" not in text.read_text()


def test_what_parts_leave_out_stays_where_it_is_kept(tmp_path: Path) -> None:
    before = write(tmp_path, document(*phases("mnist_d", "networks"), *phases("mnist_a", "networks")))
    written, text = tmp_path / "all.json", tmp_path / "page.md"
    targets = ["--json", str(written), "--page", str(text)]
    assert main([*map(str, before), *targets]) == 0
    written.write_text(json.dumps({**json.loads(written.read_text()), "notes": ["`mnist_a` is old."]}))
    again = write(tmp_path, document(*phases("mnist_d", "networks", bytes=9_000_000)))
    assert main([*map(str, again), "--keep", *targets]) == 0
    networks = text.read_text().split("\nSet-up, once")[0]
    assert "9.00 MB" in line_of(networks, "| mnist_d |")
    assert "7.00 MB" in line_of(networks, "| mnist_a |")
    assert "`mnist_a` is old." in text.read_text()
    other = document(*phases("mnist_d", "networks"))
    other["machine"]["cores"] = 64
    with pytest.raises(ValueError, match="of the machine"):
        main([*map(str, write(tmp_path, other)), "--keep", *targets])


def test_accuracy_stands_in_the_section_of_its_mode(tmp_path: Path) -> None:
    line = {
        "bench": "accuracy",
        "mode": "falcon",
        "name": "mnist_d",
        "images": 10_000,
        "logit_error": 0.0043,
        "float": 0.9958,
        "fixed": 0.9959,
    }
    lines = tmp_path / "accuracy.jsonl"
    lines.write_text(
        json.dumps({**line, "labels_agree": 9998, "overflows": 0, "secure": {"images": 50, "equal": 50}}) + "\n"
    )
    pools = [row("relu_1000", "activations", phase, mode="falcon") for phase in ("offline", "online")]
    text = page(collect([*write(tmp_path, document(*pools)), lines]))
    assert "| mnist_d | 10000 | 99.58% | 99.59% | 0.43% | 99.98% | 0 | 50 of 50 | 99.31% | 99.26% |" in text
    assert "## Operations" not in text


def test_failures_are_on_the_page_and_in_the_exit_code(tmp_path: Path) -> None:
    failure = {
        "suite": "networks",
        "name": "mnist_a",
        "error": {"kind": "peer", "what": "gone", "where": "", "fix": ""},
    }
    parts = write(tmp_path, document(*phases("mnist_d", "networks"), failures=[failure]))
    outputs = ("--json", str(tmp_path / "all.json"), "--page", str(tmp_path / "page.md"))
    assert main([*map(str, parts), *outputs]) == 1
    assert "- `mnist_a`: gone" in (tmp_path / "page.md").read_text()
    assert main([*map(str, write(tmp_path, document(*phases("mnist_d", "networks")))), *outputs]) == 0
    assert json.loads((tmp_path / "all.json").read_text())["failures"] == []


def test_parts_of_two_machines_do_not_mix(tmp_path: Path) -> None:
    other = document()
    other["machine"]["processor"] = "Another CPU"
    with pytest.raises(ValueError, match="one machine"):
        collect(write(tmp_path, document(), other))
    with pytest.raises(ValueError, match="one machine"):
        collect([])


def test_kernels_stand_beside_the_limit_of_their_operations() -> None:
    def ring(name: str, seconds: float, backend: str | None = None, n: int | None = None) -> dict[str, Any]:
        return {"bench": "ring", "name": name, "backend": backend, "n": n, "seconds": seconds}

    def gc(name: str, kernel: str, backend: str, per_second: float) -> dict[str, Any]:
        return {"bench": "gc", "name": name, "kernel": kernel, "backend": backend, "per_second": per_second}

    lines = [ring("cycle", 1e-9)]
    for backend, seconds in (("Portable", 1e-4), ("Avx512", 5e-6)):
        lines += [ring(name, seconds, backend, n) for name, _, _ in TRANSFORMS for n in (2048, 4096, 8192)]
    lines += [{"bench": "bfv", "name": name, "n": 8192, "seconds": 2e-4} for name, _, _, _ in ROTATIONS]
    assert limits_table(lines) is None
    lines += [gc("aes", "counter", "fastest", 2e9)]
    for backend, rate in (("Portable", 1e7), ("Vaes512", 2.5e8)):
        lines += [gc("relu_rescale", kernel, backend, rate) for kernel, _, _ in GATES]
    text = limits_table(lines)
    assert text is not None
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]
    # 24,576 butterflies of five multiply-adds, sixteen of them a cycle of a nanosecond.
    assert rows[1][1:5] == ["4096", "5.00 µs", "7.68 µs", "0.65x"]
    # Twenty transforms, and 24 products of 8,192 values with two multiply-adds each.
    assert rows[-5][1:5] == ["8192", "200 µs", "125 µs", "1.61x"]
    assert rows[-2][1:5] == ["-", "250 M", "500 M", "2.00x"]


def test_lines_of_the_examples_become_tables() -> None:
    ring = [
        {"bench": "ring", "name": name, "backend": backend, "n": n, "seconds": seconds, "repeat": 3}
        for name in ("forward", "inverse")
        for backend, seconds in (("Portable", 9e-6), ("Avx512", 2e-6))
        for n in (2048, 4096)
    ]
    bfv = [{"bench": "bfv", "name": name, "n": 8192, "seconds": 6e-3, "repeat": 3} for _, _, _, name, _ in OPERATIONS]
    keys = {"bench": "bfv", "name": "60 evaluation keys", "n": 8192, "bytes": 60_000}
    text = operations_table([*ring, *bfv, keys])
    assert "| number-theoretic transform, Avx512 | 2048 | 2.00 µs | NTT (q), V | 57.0 µs | 28.5x |" in text
    assert "| 100 µs | PermKeyGen, VI and VII | 466 µs | 4.66x |" in text
    assert "| 1.00 kB | key size, VII | 49.1 kB | 49.1x |" in text


def test_a_kernel_stands_with_its_fastest_split_or_alone() -> None:
    kernel = {
        "bench": "layer",
        "name": "fc 1024 -> 128",
        "kernel": "hybrid",
        "hoisted": 1,
        "rotations": 2,
        "products": 4,
        "client_offline": 1.0,
        "client_online": 1.0,
        "server_online": 2.0,
    }
    text = kernels_table([{**kernel, "server_offline": 6.1}, {**kernel, "server_offline": 14.2}])
    assert "| fc 1024 -> 128 | hybrid | 3 | 4 | 2.00 ms | 6.10 ms | 2.00 ms | 16.2 ms | 8.10x | 2.00x |" in text
    assert "| fc 1024 -> 128 | naive | - | - | - | - | - | 880 ms | - | - |" in text
    assert len(text.splitlines()) == 2 + len(KERNELS)


def test_figures_have_three_digits_and_a_unit() -> None:
    assert [time_of(value) for value in (None, 0.0, 1.5e-6, 0.0123, 1.0, 123.4)] == [
        None,
        "0.00 µs",
        "1.50 µs",
        "12.3 ms",
        "1.00 s",
        "123 s",
    ]
    assert [size_of(value) for value in (None, 12, 1234, 5.6e6, 1.2e9)] == [
        None,
        "12 B",
        "1.23 kB",
        "5.60 MB",
        "1.20 GB",
    ]
    assert [ratio(None, 1.0), ratio(0.0, 1.0), ratio(1.0, 0.0), ratio(1.0, 4.0)] == [None, None, None, "0.25x"]
    assert table(("a", "b"), [("x", None)]) == "| a | b |\n| --- | ---: |\n| x | - |\n"


def comparison(*names: str, failed: Sequence[str] = (), cores: int = 2) -> dict[str, Any]:
    def system(name: str, seconds: float, transferred: int) -> dict[str, Any]:
        measured = {"system": name, "seconds": seconds, "fastest": seconds, "bytes": transferred}
        return {**measured, "messages": 7, "repeat": 3, "error": 0.0123, "largest_output": 3.0}

    systems = [system("lanner, exact", 0.5, 2_000_000), system("SPU 0.9.5", 8.0, 5_000_000)]
    rows = [{"name": name, "weights": "random", "load": 0.1, "systems": systems} for name in names]
    failures = [{"suite": "peers", "name": name, "error": {"what": "gone"}} for name in failed]
    return {"machine": {**document()["machine"], "cores": cores}, "rows": rows, "failures": failures}


def test_another_machine_has_a_section_that_later_pages_keep(tmp_path: Path) -> None:
    outputs = ("--json", str(tmp_path / "all.json"), "--page", str(tmp_path / "page.md"))
    other = document(*phases("trees_forest_50x5", "trees"), load=0.9)
    other["machine"]["processor"] = "Another CPU"
    here, there = map(str, write(tmp_path, document(*phases("mnist_d", "networks")), other))
    assert main([here, *outputs]) == 0
    assert "another machine" not in (tmp_path / "page.md").read_text()
    assert main(["--elsewhere", there, *outputs]) == 0
    text = (tmp_path / "page.md").read_text()
    before, after = text.split("## On another machine")
    assert line_of(before, "mnist_d", "trained")
    assert "Another CPU" not in before
    assert "not quiet" not in before
    assert line_of(after, "trees_forest_50x5")
    assert "Machine: Another CPU" in after
    assert "not quiet" in after
    assert main([here, *outputs]) == 0
    assert (tmp_path / "page.md").read_text() == text
    # Measured again, it takes the place of what was there.
    write(tmp_path, document(), {**other, "rows": phases("trees_xgboost_100x6", "trees")})
    assert main(["--elsewhere", there, *outputs]) == 0
    assert "trees_forest" not in (tmp_path / "page.md").read_text()


def test_a_comparison_is_a_section_that_later_pages_keep(tmp_path: Path) -> None:
    outputs = ("--json", str(tmp_path / "all.json"), "--page", str(tmp_path / "page.md"))
    (part,) = map(str, write(tmp_path, document(*phases("mnist_d", "networks"))))
    peers = tmp_path / "peers.json"
    peers.write_text(json.dumps(comparison("vgg16")))
    assert main([part, *outputs]) == 0
    assert "SPU" not in (tmp_path / "page.md").read_text()
    assert main(["--peers", str(peers), *outputs]) == 0
    text = (tmp_path / "page.md").read_text()
    assert line_of(text, "vgg16", "lanner, exact").endswith("| 0.012 | 3 | 16.0x | 2.50x |")
    assert line_of(text, "vgg16", "SPU 0.9.5").endswith("| 0.012 | 3 | - | - |")
    assert line_of(text, "mnist_d", "loopback", "trained")
    assert main([part, *outputs]) == 0
    assert (tmp_path / "page.md").read_text() == text
    peers.write_text(json.dumps(comparison(failed=["vgg16"])))
    assert main(["--peers", str(peers), *outputs]) == 1
    assert "- `vgg16`: gone" in (tmp_path / "page.md").read_text()
    assert main([part, *outputs]) == 0


def test_an_older_build_stands_beside_this_one(tmp_path: Path) -> None:
    outputs = ("--json", str(tmp_path / "all.json"), "--page", str(tmp_path / "page.md"))
    (part,) = map(str, write(tmp_path, document(*phases("mnist_d", "networks"))))

    def build(seconds: float, transferred: int) -> dict[str, Any]:
        return {"seconds": seconds, "fastest": seconds / 2, "bytes": transferred, "rounds": 7, "repeat": 9}

    row = {"name": "mnist_d", "precision": "0.5%", "weights": "trained", "load": 0.1}
    row |= {"before": build(0.5, 4_000_000), "now": build(0.25, 1_000_000)}
    machine = document()["machine"]
    versions = tmp_path / "versions.json"
    versions.write_text(json.dumps({"machine": machine, "before": "abc1234", "now": "def5678", "rows": [row]}))
    assert main([part, *outputs]) == 0
    assert "older build" not in (tmp_path / "page.md").read_text()
    assert main(["--versions", str(versions), *outputs]) == 0
    text = (tmp_path / "page.md").read_text()
    assert "commit abc1234 and this one, def5678" in text
    line = line_of(text, "mnist_d", "0.5%", "500 ms", "250 ms", "0.50x")
    assert line.endswith("| 250 ms | 125 ms | 4.00 MB | 1.00 MB | 7 | 7 | 9 |")
    assert main([part, *outputs]) == 0
    assert (tmp_path / "page.md").read_text() == text


def test_a_comparison_replaces_what_it_measured_again() -> None:
    before = merge(None, comparison("mnist_d", "vgg16", failed=["resnet34"]))
    assert "load" not in before["machine"]
    now = merge(before, comparison("resnet34", failed=["mnist_d"]))
    assert [row["name"] for row in now["rows"]] == ["vgg16", "resnet34"]
    assert [failure["name"] for failure in now["failures"]] == ["mnist_d"]
    assert merge(before, comparison("resnet34", cores=4))["rows"] == comparison("resnet34")["rows"]


def test_large_networks_have_a_table_with_memory_and_work(tmp_path: Path) -> None:
    work = {kind: {"count": 4.1e9, "seconds": 10.0, "bytes": 1e8} for kind in ("linear", "activation")}
    rows = phases("resnet50", "imagenet", mode="cheetah", weights="random", memory=5_100_000_000, work=work)
    text = page(collect(write(tmp_path, document(*rows))))
    assert "### Networks of ImageNet's size" in text
    line = next(line for line in text.splitlines() if line.startswith("| resnet50"))
    assert "4,100.0 million" in line
    assert "5.10 GB" in line
    assert "2.30 GB" in line
