"""What the manifests of deploy/kubernetes run, ask and count, with real processes; no cluster is at hand."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import lanner as library
from helpers.authority import make_authority
from helpers.callers import Caller, request_of
from helpers.expressions import ADDED_LABELS, check_expression, expressions
from helpers.models import tiny_samples
from helpers.pods import Pod, read_manifest
from helpers.processes import HUNG, Serving, gateway, serving
from helpers.prometheus import Prometheus, prometheus
from helpers.scraping import Scraped

X = tiny_samples(2, seed=5)

with_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")

#: What Prometheus adds to a pod's series, by which the adapter finds them.
POD_LABELS = {"namespace": "lanner", "pod": "lanner-wire5-0"}

RULES = read_manifest("adapter-rules.yaml")[0]["rules"]["custom"]


def await_that(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + HUNG
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def server_pod(folder: Path, model: Path) -> Pod:
    """A server's pod with a certificate and a model, as its volumes have them."""
    pod = Pod.of("servers.yaml", "StatefulSet", folder / "server")
    certificate, key = make_authority(folder / "ca").issue("server", "serverAuth")
    pod.give("/run/secrets/server/tls.crt", certificate.read_bytes())
    pod.give("/run/secrets/server/tls.key", key.read_bytes())
    pod.give("/models/digits.lanner", model.read_bytes())
    return pod


@contextmanager
def running_server(pod: Pod, *more: str) -> Iterator[Serving]:
    """The server of a pod, with the manifest's own arguments."""
    commitment = library.load(pod.translated(["/models/digits.lanner"])[0]).commitment
    # The manifest's own is of no model.
    arguments = [word.replace("@" + "0" * 64, f"@{commitment}") for word in pod.arguments]
    assert any(word.endswith(commitment) for word in arguments)
    state = Path(arguments[arguments.index("--state-dir") + 1])
    with serving(state, *arguments, *more) as server:
        yield server


@with_openssl
def test_server_answers_its_probes_and_drains_in_its_time(tmp_path: Path, tiny_label: Path) -> None:
    pod = server_pod(tmp_path, tiny_label)
    assert not pod.succeeds("startup")
    with running_server(pod) as server:
        assert [pod.succeeds(probe) for probe in ("startup", "readiness", "liveness")] == [True] * 3
        address = f"localhost:{pod.ports[7400]}"
        with library.Client(address, ca=tmp_path / "ca" / "ca.pem") as client:
            assert client.predict(X[0]).label is not None
        # A client in the middle of what it says has time to finish; the Service has no such server meanwhile.
        with socket.create_connection(("127.0.0.1", pod.ports[7400])):
            await_that(lambda: bool(Scraped.of_server(metrics(pod)).total("lanner_sessions_total")), "no session")
            server.process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            await_that(lambda: not pod.succeeds("readiness"), "a server that stops is ready")
            assert pod.succeeds("liveness")
        assert server.process.wait(pod.grace) == 0
        assert time.monotonic() - began < pod.grace


def metrics(pod: Pod) -> str:
    return f"127.0.0.1:{pod.ports[9400]}"


@with_openssl
def test_gateway_answers_its_probes_and_is_not_ready_without_a_server(tmp_path: Path, tiny_label: Path) -> None:
    with running_server(server_pod(tmp_path, tiny_label)) as server:
        pod = Pod.of("gateways.yaml", "Deployment", tmp_path / "gateway")
        authority = tmp_path / "ca" / "ca.pem"
        certificate, key = make_authority(tmp_path / "own").issue("gateway", "serverAuth")
        pod.give("/run/secrets/servers/ca.crt", authority.read_bytes())
        for name, content in (("tls.crt", certificate), ("tls.key", key)):
            pod.give(f"/run/secrets/gateway/{name}", content.read_bytes())
        (token_secret,) = (each["name"] for each in pod.spec["volumes"] if each["name"] == "token-secret")
        (pod.folder / token_secret / "token").write_text("a" * 32 + "\n")
        pod.initialise()
        arguments = pod.arguments
        arguments[arguments.index("private.example:7400")] = server.address.replace("0.0.0.0", "localhost")  # noqa: S104
        state = Path(arguments[arguments.index("--state-dir") + 1])
        with gateway(state, *arguments) as process:
            assert [pod.succeeds(probe) for probe in ("startup", "readiness", "liveness")] == [True] * 3
            with ExitStack() as stack:
                # Callers that say nothing, more than there may be, keep no probe from an answer.
                for _ in range(600):
                    stack.enter_context(socket.create_connection(("127.0.0.1", pod.ports[8080])))
                assert [pod.succeeds(probe) for probe in ("readiness", "liveness")] == [True] * 2
            assert server.end(signal.SIGTERM) == 0
            await_that(lambda: not pod.succeeds("readiness"), "a gateway without a server is ready")
            assert pod.succeeds("liveness")
            process.process.send_signal(signal.SIGTERM)
            assert process.process.wait(pod.grace) == 0


@contextmanager
def full_server_and_gateway(folder: Path, model: Path) -> Iterator[tuple[Serving, list[str]]]:
    """A server for one session, a gateway that has it and predicted, and where both tell their metrics."""
    with (
        serving(folder / "state", model, "--metrics", "127.0.0.1:0", "--max-sessions", 1) as server,
        gateway(folder / "gate", server.address, *server.pin) as gate,
    ):
        assert Caller(gate.document["url"]).infer("tiny_label", request_of(X, "x")).status == 200
        yield server, [str(server.document["metrics"]), gate.document["url"].removeprefix("http://")]


def turn_away(server: Serving) -> None:
    with pytest.raises(library.BusyError):
        library.Client(server.address, pin=str(server.document["fingerprint"]))


def asked(rule: dict[str, Any], matchers: dict[str, str]) -> str:
    """The query of a rule as the adapter makes it for the pods that an autoscaler asks about."""
    series = re.match(r"\w+", rule["seriesQuery"])
    assert series is not None
    made = {
        "Series": series[0],
        "LabelMatchers": ",".join(f'{name}="{value}"' for name, value in matchers.items()),
        "GroupBy": "pod",
    }
    return re.sub(r"<<\.(\w+)>>", lambda word: made[word[1]], rule["metricsQuery"])


def test_rules_of_the_adapter_ask_for_what_is_told(tmp_path: Path, tiny_label: Path) -> None:
    with full_server_and_gateway(tmp_path, tiny_label) as (server, addresses):
        turn_away(server)
        await_that(lambda: counted_busy(addresses[0]) == 1, "nobody is turned away")
        texts = [Caller(f"http://{address}").get("/metrics").body.decode() for address in addresses]
        told = [metric for text in texts for metric in text_string_to_metric_families(text)]
    samples = [sample for metric in told for sample in metric.samples]
    for rule in RULES:
        for query in (rule["seriesQuery"], asked(rule, POD_LABELS)):
            check_expression(query, told, ADDED_LABELS | POD_LABELS.keys())
        # By these the adapter knows whose a series is.
        assert set(rule["resources"]["overrides"]) == POD_LABELS.keys()
        name, matchers = re.fullmatch(r"(\w+)\{(.*)\}", rule["seriesQuery"]).groups()  # type: ignore[union-attr]
        wanted = dict(re.findall(r'(\w+)="(\w+)"', matchers))
        assert any(sample.name == name and wanted.items() <= sample.labels.items() for sample in samples), name


def counted_busy(address: str) -> float:
    return Scraped.of_server(address).total("lanner_connections_total", ending="busy")


def test_autoscalers_ask_for_what_the_rules_make() -> None:
    made = {rule["name"]["as"] for rule in RULES}
    for name in ("servers.yaml", "gateways.yaml"):
        for document in read_manifest(name):
            if document["kind"] == "HorizontalPodAutoscaler":
                assert {metric["pods"]["metric"]["name"] for metric in document["spec"]["metrics"]} <= made


@pytest.mark.slow
def test_prometheus_evaluates_the_rules_the_alerts_and_the_dashboard(tmp_path: Path, tiny_label: Path) -> None:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("there is no prometheus: no expression was evaluated; apt-get install prometheus")
    with (
        full_server_and_gateway(tmp_path, tiny_label) as (server, addresses),
        prometheus(program, tmp_path / "prometheus", addresses, POD_LABELS) as watching,
    ):
        await_that(lambda: values(watching, 'up{job="lanner"}') == [1.0, 1.0], "nobody is scraped")
        for name, expression in expressions().items():
            spelt = expression.replace("$__rate_interval", "1m").replace("$model", ".*")
            assert watching.query(spelt) is not None, name
        # What was counted before a scrape is no rate.
        for _ in range(3):
            turn_away(server)
            time.sleep(2)
        found = {}
        for rule in RULES:
            assert watching.series(rule["seriesQuery"]), rule["seriesQuery"]
            (value,) = values(watching, asked(rule, POD_LABELS))
            found[rule["name"]["as"]] = value
        assert found["lanner_sessions_under_way"] == pytest.approx(1)
        assert found["lanner_turned_away_per_second"] > 0
        assert found["lanner_gateway_requests_under_way"] == 0
        assert set(watching.alerts().values()) == {"ok"}


def values(watching: Prometheus, expression: str) -> list[float]:
    return [float(each["value"][1]) for each in watching.query(expression)]
