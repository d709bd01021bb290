"""The manifests and the chart of deploy/ against Kubernetes' own schemas, and against the program that they run."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_schema
import pytest
import render_chart
import yaml

from lanner.cli.build import build_facts
from lanner.cli.offered import Offered
from lanner.cli.parser import build_parser
from lanner.cli.serve import DRAIN_SECONDS
from lanner.gateway.web import DRAIN_SECONDS as GATEWAY_DRAIN_SECONDS
from lanner.hosts import Hosts

Document = dict[str, Any]


PROBES = ("startup", "readiness", "liveness")


def documents(text: str) -> list[Document]:
    return [document for document in yaml.safe_load_all(text) if document]


def manifest(name: str) -> list[Document]:
    return documents((render_chart.MANIFESTS / name).read_text(encoding="utf-8"))


ALL = [document for name in render_chart.RELEASES for document in manifest(name)]


def check(document: Document) -> None:
    """Hold a document against the schema of its kind."""
    schema = json.loads(kubernetes_schema.SCHEMA.read_text(encoding="utf-8"))
    kind = schema["kinds"][f"{document['apiVersion']} {document['kind']}"]
    jsonschema.Draft202012Validator({**kind, "$defs": schema["$defs"]}).validate(document)


def named(kind: str, part: str, among: list[Document] = ALL) -> Document:
    """The one document of a kind that is of servers or gateways and, of services, has an address."""
    (found,) = (
        document
        for document in among
        if document["kind"] == kind
        and document["metadata"]["labels"]["app.kubernetes.io/component"] == part
        and document["spec"].get("clusterIP") != "None"
    )
    return found


def pod(part: str, among: list[Document] = ALL) -> Document:
    spec: Document = named("StatefulSet" if part == "server" else "Deployment", part, among)["spec"]["template"]["spec"]
    return spec


def container(part: str) -> Document:
    (found,) = pod(part)["containers"]
    return dict(found)


@pytest.mark.parametrize("document", ALL, ids=lambda document: f"{document['kind']} {document['metadata']['name']}")
def test_manifest_fits_the_schema_of_its_kind(document: Document) -> None:
    check(document)


def test_schema_refuses_misspelt_fields_and_wrong_types() -> None:
    for path, value in (("terminationGracePeriodSecond", 50), ("terminationGracePeriodSeconds", "long")):
        server = named("StatefulSet", "server", manifest("servers.yaml"))
        check(server)
        server["spec"]["template"]["spec"][path] = value
        with pytest.raises(jsonschema.ValidationError):
            check(server)


def test_manifests_are_rendered_of_the_chart_that_is_here() -> None:
    for name in render_chart.RELEASES:
        first = (render_chart.MANIFESTS / name).read_text(encoding="utf-8").splitlines()[0]
        assert render_chart.chart_digest() in first, "run tools/render_chart.py"


@pytest.mark.parametrize("part", ["server", "gateway"])
def test_command_is_understood(part: str) -> None:
    arguments = build_parser().parse_args(container(part)["args"])
    assert callable(arguments.command)


def test_label_is_the_wire_version_that_this_build_speaks() -> None:
    assert {document["metadata"]["labels"]["lanner/wire"] for document in ALL} == {str(build_facts()["wire_version"])}


def test_grace_is_the_time_to_leave_and_to_drain() -> None:
    for part, drain in (("server", DRAIN_SECONDS), ("gateway", GATEWAY_DRAIN_SECONDS)):
        leave = container(part)["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert pod(part)["terminationGracePeriodSeconds"] >= leave + drain + 5
    # A server is out of its Service before it stops: the probe's period is shorter than the time to leave.
    assert container("server")["readinessProbe"]["periodSeconds"] < 10


def test_probes_ask_what_is_listened_on() -> None:
    for part, port, option in (("server", "metrics", "--metrics"), ("gateway", "callers", "--listen")):
        entry = container(part)
        ports = {each["name"]: each["containerPort"] for each in entry["ports"]}
        assert entry["args"][entry["args"].index(option) + 1] == f"0.0.0.0:{ports[port]}"
    asked = [container("server")[f"{probe}Probe"]["httpGet"]["port"] for probe in PROBES]
    assert asked == ["metrics"] * 3


def test_metrics_are_read_under_the_names_that_their_service_gives_and_under_addresses() -> None:
    entry = container("server")
    given = {"POD_NAME": "lanner-wire6-0", "POD_NAMESPACE": "clinic"}
    fields = {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in entry["env"]}
    assert fields == {"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace"}
    arguments = build_parser().parse_args(
        [re.sub(r"\$\((\w+)\)", lambda found: given[found[1]], word) for word in entry["args"]]
    )
    (service,) = (each["metadata"]["name"] for each in ALL if each["spec"].get("clusterIP") == "None")
    hosts = Hosts.of("0.0.0.0", arguments.metrics_name)  # noqa: S104 - compared, not bound
    for end in ("", ".clinic", ".clinic.svc", ".clinic.svc.cluster.local"):
        assert hosts.include([f"lanner-wire6-0.{service}{end}:9400"])
    assert hosts.include(["192.0.2.7:9400"])
    assert not hosts.include([f"lanner-wire6-0.{service}.evil.example:9400"])


def test_probes_of_a_gateway_ask_what_no_caller_reaches() -> None:
    entry = container("gateway")
    health = entry["args"][entry["args"].index("--health") + 1]
    assert health.startswith("127.0.0.1:")
    assert {each["containerPort"] for each in entry["ports"]} == {8080}
    for probe, path in zip(PROBES, ("healthz", "readyz", "healthz"), strict=True):
        asked = entry[f"{probe}Probe"]
        assert asked["exec"]["command"] == ["python", "/opt/lanner/health.py", f"http://{health}/{path}"]
        # It waits for four seconds; what is not said is one.
        assert asked["timeoutSeconds"] == 5


def test_server_is_told_which_model_must_be_in_the_file() -> None:
    model = Offered.parse(container("server")["args"][1])
    assert model == Offered("digits", "/models/digits.lanner", render_chart.COMMITMENT)


def test_state_of_a_gateway_is_in_memory_and_bounded() -> None:
    volumes = {each["name"]: each["emptyDir"] for each in pod("gateway")["volumes"] if "emptyDir" in each}
    assert set(volumes) == {"state", "token", "scratch"}
    for volume in volumes.values():
        assert volume["medium"] == "Memory"
        assert volume["sizeLimit"]


def test_ways_out_are_names_and_the_store_or_the_servers() -> None:
    dns = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}]
    ports = [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]
    for part, more in (
        ("server", {"ports": [{"protocol": "TCP", "port": 443}], "to": [{"ipBlock": {"cidr": "192.0.2.10/32"}}]}),
        ("gateway", {"ports": [{"protocol": "TCP", "port": 7400}]}),
    ):
        assert named("NetworkPolicy", part)["spec"]["egress"] == [{"ports": ports, "to": dns}, more]


def test_volumes_are_declared_and_state_is_of_one_server() -> None:
    for part in ("server", "gateway"):
        entry = pod(part)
        volumes = {volume["name"] for volume in entry["volumes"]}
        claims = named("StatefulSet", "server")["spec"]["volumeClaimTemplates"] if part == "server" else []
        volumes |= {claim["metadata"]["name"] for claim in claims}
        each = [*entry["containers"], *entry["initContainers"]]
        assert {mount["name"] for container in each for mount in container["volumeMounts"]} == volumes
    assert [claim["spec"]["accessModes"] for claim in claims or manifest_claims()] == [["ReadWriteOncePod"]]
    retained = named("StatefulSet", "server")["spec"]["persistentVolumeClaimRetentionPolicy"]
    assert set(retained.values()) == {"Retain"}
    # The volume's root is its group's, too; a folder below it is the owner's alone.
    args = container("server")["args"]
    assert args[args.index("--state-dir") + 1] == "/var/lib/lanner/state"


def manifest_claims() -> list[Document]:
    claims: list[Document] = named("StatefulSet", "server")["spec"]["volumeClaimTemplates"]
    return claims


def test_containers_have_no_rights() -> None:
    for part in ("server", "gateway"):
        spec = pod(part)
        assert spec["securityContext"]["runAsNonRoot"]
        assert not spec["automountServiceAccountToken"]
        for entry in (*spec["containers"], *spec["initContainers"]):
            assert entry["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_selectors_choose_the_pods_of_their_part() -> None:
    for document in ALL:
        part = document["metadata"]["labels"]["app.kubernetes.io/component"]
        selector = document["spec"].get("podSelector") or document["spec"].get("selector")
        if selector is not None:
            among = manifest("servers.yaml" if part == "server" else "gateways.yaml")
            kind = "StatefulSet" if part == "server" else "Deployment"
            labels = named(kind, part, among)["spec"]["template"]["metadata"]["labels"]
            assert (selector.get("matchLabels") or selector).items() <= labels.items()


def check_apart(of_release: list[Document], of_other: list[Document]) -> None:
    """Check that two releases of one namespace have no name in common, and that none selects the other's pods."""
    named_of = [
        {(document["kind"], document["metadata"]["name"]) for document in each} for each in (of_release, of_other)
    ]
    assert not named_of[0] & named_of[1]
    for documents_of, pods_of in ((of_release, of_other), (of_other, of_release)):
        found = [
            document["spec"]["template"]["metadata"]["labels"] for document in pods_of if "template" in document["spec"]
        ]
        assert found
        for selector in selectors(documents_of):
            assert not any(selector.items() <= labels.items() for labels in found), selector


def selectors(part: object) -> Iterator[Document]:
    """The labels by which documents select pods: of services by themselves, of all others as ``matchLabels``."""
    if isinstance(part, list):
        for each in part:
            yield from selectors(each)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key == "matchLabels" or (key == "selector" and "matchLabels" not in value):
                yield value
            elif key != "namespaceSelector":
                yield from selectors(value)


def test_releases_stay_apart() -> None:
    # The release's name is in every name and every selector: two releases have nothing in common but their kind.
    for name, (release, _) in render_chart.RELEASES.items():
        for document in manifest(name):
            assert document["metadata"]["name"].startswith(release)
            assert document["metadata"]["labels"]["app.kubernetes.io/instance"] == release
        found = [*selectors(manifest(name))]
        assert len(found) >= 4
        assert {selector["app.kubernetes.io/instance"] for selector in found} == {release}
    check_apart(*map(manifest, render_chart.RELEASES))


def test_releases_that_are_not_apart_are_found() -> None:
    with pytest.raises(AssertionError):
        check_apart(manifest("servers.yaml"), manifest("servers.yaml"))
    other = manifest("servers.yaml")
    for document in other:
        document["metadata"]["name"] += "-other"
    with pytest.raises(AssertionError, match="instance"):
        check_apart(manifest("servers.yaml"), other)


@pytest.mark.slow
def test_two_versions_are_two_releases_that_stay_apart() -> None:
    newer = ("wire=7", "image.tag=0.4.0", "gateway.enabled=true")
    settings = {"lanner-wire6": render_chart.SERVED, "lanner-wire7": (*render_chart.SERVED, *newer)}
    try:
        rendered = [render_chart.template(release, given) for release, given in settings.items()]
    except render_chart.NoHelmError as error:
        pytest.skip(str(error))
    assert [each.returncode for each in rendered] == [0, 0], [each.stderr for each in rendered]
    found = [documents(each.stdout) for each in rendered]
    check_apart(*found)
    versions = [{document["metadata"]["labels"]["lanner/wire"] for document in each} for each in found]
    assert versions == [{"6"}, {"7"}]
    assert {pod("server", each)["containers"][0]["image"] for each in found} == {"lanner:0.3.0", "lanner:0.4.0"}


def test_clients_keep_to_their_server() -> None:
    service = named("Service", "server")["spec"]
    assert service["sessionAffinity"] == "ClientIP"
    assert service["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"] == 86400
    assert service["externalTrafficPolicy"] == "Local"


def test_scaler_asks_for_what_the_adapter_tells() -> None:
    rules = documents((render_chart.MANIFESTS / "adapter-rules.yaml").read_text(encoding="utf-8"))[0]["rules"]["custom"]
    told = {rule["name"]["as"] for rule in rules}
    scaler = named("HorizontalPodAutoscaler", "server")["spec"]
    asked = {metric["pods"]["metric"]["name"] for metric in scaler["metrics"]}
    assert asked == {"lanner_sessions_under_way", "lanner_turned_away_per_second"} <= told
    sessions = next(metric for metric in scaler["metrics"] if "sessions" in metric["pods"]["metric"]["name"])
    args = container("server")["args"]
    most = int(args[args.index("--max-sessions") + 1])
    assert int(sessions["pods"]["target"]["averageValue"]) < most
    assert scaler["scaleTargetRef"]["name"] == named("StatefulSet", "server")["metadata"]["name"]


def test_policy_opens_the_ports_of_clients_and_metrics_alone() -> None:
    for part, opened in (("server", {"clients", "metrics"}), ("gateway", {"callers"})):
        ingress = named("NetworkPolicy", part)["spec"]["ingress"]
        assert {port["port"] for rule in ingress for port in rule["ports"]} == opened
        assert opened <= {port["name"] for port in container(part)["ports"]}
    metrics = next(rule for rule in named("NetworkPolicy", "server")["spec"]["ingress"] if "from" in rule)
    assert {port["port"] for port in metrics["ports"]} == {"metrics"}


def test_values_say_what_the_chart_asks_for() -> None:
    values = yaml.safe_load((render_chart.CHART / "values.yaml").read_text(encoding="utf-8"))
    for path in (render_chart.CHART / "templates").iterdir():
        for name in re.findall(r"\.Values\.([\w.]+)", path.read_text(encoding="utf-8")):
            found = values
            for word in name.split("."):
                assert word in found, f"{path.name}: {name}"
                found = found[word]


def test_values_of_the_page_about_sizes_are_taken() -> None:
    schema = json.loads((render_chart.CHART / "values.schema.json").read_text(encoding="utf-8"))
    page = render_chart.DEPLOY.parent / "docs" / "how-to" / "serve-ten-thousand-clients.md"
    found = re.findall(r"^```yaml\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found
    for text in found:
        jsonschema.validate(yaml.safe_load(text), schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(yaml.safe_load(text.replace("replicas", "replica")), schema)


def test_values_that_a_release_must_have_are_taken() -> None:
    schema = json.loads((render_chart.CHART / "values.schema.json").read_text(encoding="utf-8"))
    page = (render_chart.DEPLOY / "README.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    jsonschema.validate(yaml.safe_load(text.replace("sha256:...", f"sha256:{render_chart.COMMITMENT}")), schema)
    for shown, wrong in (("607d24", "607d2"), ("digits.lanner", "models/digits.lanner"), ("sha256:...", "0.2.0")):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(yaml.safe_load(text.replace(shown, wrong)), schema)


def test_sizes_that_the_page_explains_are_the_charts() -> None:
    values = yaml.safe_load((render_chart.CHART / "values.yaml").read_text(encoding="utf-8"))["server"]
    page = render_chart.DEPLOY.parent / "docs" / "how-to" / "serve-ten-thousand-clients.md"
    text = page.read_text(encoding="utf-8").split("## The chart's own sizes")[1]
    explained = re.findall(r"`([\w.]+): ([^`]+)`", text)
    assert len(explained) == 8
    for name, value in explained:
        found = values
        for word in name.split("."):
            found = found[word]
        assert found == yaml.safe_load(value), name


@pytest.mark.slow
def test_helm_renders_these_manifests_and_the_other_sources_of_models() -> None:
    try:
        render_chart.helm()
    except render_chart.NoHelmError as error:
        pytest.skip(str(error))
    for name in render_chart.RELEASES:
        assert render_chart.manifest(name) == (render_chart.MANIFESTS / name).read_text(encoding="utf-8")
    no_fetch = "server.modelSource.fetch=null"
    for source, volume in (("claim", "persistentVolumeClaim"), ("secret", "secret")):
        settings = (no_fetch, f"server.modelSource.{source}=models", "server.clientAuthorities=clients")
        rendered = render_chart.template("other", (*render_chart.SERVED, *settings))
        assert rendered.returncode == 0, rendered.stderr
        found = documents(rendered.stdout)
        for document in found:
            check(document)
        spec = pod("server", found)
        assert "initContainers" not in spec
        assert any(volume in each for each in spec["volumes"] if each["name"] == "models")
        assert named("NetworkPolicy", "server", found)["spec"]["egress"] == []
        assert callable(build_parser().parse_args(spec["containers"][0]["args"]).command)
    for settings in ((no_fetch,), ("server.modelSource.claim=models",)):
        refused = render_chart.template("other", (*render_chart.SERVED, *settings))
        assert refused.returncode != 0
        assert "give one of fetch, claim and secret" in refused.stderr
    misspelt = render_chart.template("other", ("server.replica=3",))
    assert misspelt.returncode != 0
    assert "replica" in misspelt.stderr


@pytest.mark.slow
def test_helm_refuses_models_without_commitment_and_a_store_that_is_nowhere() -> None:
    try:
        render_chart.helm()
    except render_chart.NoHelmError as error:
        pytest.skip(str(error))
    *model, store = render_chart.SERVED
    refusals: tuple[tuple[Sequence[str], str], ...] = (
        ((), "digits has no commitment"),
        ((*model[:2], "server.models[0].commitment=abc", store), "commitment"),
        (model, "networkPolicy.store.to is empty"),
        ((*render_chart.SERVED, "image.digest=sha256:abc"), "digest"),
    )
    for settings, said in refusals:
        refused = render_chart.template("other", settings)
        assert refused.returncode != 0
        assert said in refused.stderr


@pytest.mark.slow
def test_digests_take_the_place_of_tags() -> None:
    digests = [f"sha256:{digit * 64}" for digit in "ab"]
    settings = (
        *render_chart.SERVED,
        "gateway.enabled=true",
        "image.repository=registry.example:5000/lanner",
        f"image.digest={digests[0]}",
        f"server.modelSource.fetch.digest={digests[1]}",
        "networkPolicy.servers[0].ipBlock.cidr=192.0.2.11/32",
    )
    try:
        rendered = render_chart.template("other", settings)
    except render_chart.NoHelmError as error:
        pytest.skip(str(error))
    assert rendered.returncode == 0, rendered.stderr
    found = documents(rendered.stdout)
    for document in found:
        check(document)
    own = f"registry.example:5000/lanner@{digests[0]}"
    images = [
        [each["image"] for each in (*spec["initContainers"], *spec["containers"])]
        for spec in (pod("server", found), pod("gateway", found))
    ]
    assert images == [[f"rclone/rclone@{digests[1]}", own], [own, own]]
    assert named("NetworkPolicy", "gateway", found)["spec"]["egress"][1]["to"] == [
        {"ipBlock": {"cidr": "192.0.2.11/32"}}
    ]


@pytest.mark.slow
def test_helm_renders_an_autoscaler_of_gateways_by_what_the_adapter_tells() -> None:
    settings = (*render_chart.RELEASES["gateways.yaml"][1], "gateway.autoscaling.enabled=true")
    try:
        rendered = render_chart.template("lanner", settings)
    except render_chart.NoHelmError as error:
        pytest.skip(str(error))
    assert rendered.returncode == 0, rendered.stderr
    found = documents(rendered.stdout)
    for document in found:
        check(document)
    scaler, scaled = (named(kind, "gateway", found) for kind in ("HorizontalPodAutoscaler", "Deployment"))
    assert scaler["spec"]["scaleTargetRef"]["name"] == scaled["metadata"]["name"]
    assert "replicas" not in scaled["spec"]
    (metric,) = scaler["spec"]["metrics"]
    rules = documents((render_chart.MANIFESTS / "adapter-rules.yaml").read_text(encoding="utf-8"))[0]["rules"]["custom"]
    assert metric["pods"]["metric"]["name"] in {rule["name"]["as"] for rule in rules}


def test_kustomize_takes_the_manifests(tmp_path: Path) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("there is no kubectl")
    for name in render_chart.RELEASES:
        shutil.copy(render_chart.MANIFESTS / name, tmp_path)
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump({"resources": [*render_chart.RELEASES]}))
    built = subprocess.run(
        [kubectl, "kustomize", str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert built.returncode == 0, built.stderr
    assert len(documents(built.stdout)) == len(ALL)
