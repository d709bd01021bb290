"""What deploy/ holds, as far as it can be checked without Docker: commands, schemas, the unit, what is installed."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import locked
import pytest
import yaml

from lanner.cli.parser import build_parser
from lanner.errors import MisuseError
from lanner.hosts import Hosts

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "lanner.service"
PROGRAM = "/opt/lanner/bin/lanner"

#: Of ten, what systemd may rate the unit's exposure at; a service that is not shut off has 9.
EXPOSURE = 2.0


def read_yaml(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8")))


def schema(name: str) -> dict[str, Any]:
    return dict(json.loads((Path(__file__).parent / "schemas" / name).read_text(encoding="utf-8")))


def instructions(name: str) -> list[str]:
    """The arguments of each instruction of that name in the Dockerfile, in order."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    return re.findall(rf"^{name} (.*)$", text, re.MULTILINE)


def command_lines() -> dict[str, list[str]]:
    """The arguments of every `lanner` command, by where it stands."""
    services = read_yaml("compose.yaml")["services"]
    lines = {
        f"compose.yaml: {name}": entry["command"] for name, entry in services.items() if entry["image"] == "lanner"
    }
    (entry_point,), (command,) = (map(json.loads, instructions(name)) for name in ("ENTRYPOINT", "CMD"))
    assert entry_point == ["lanner"]
    started = re.findall(r"^ExecStart=(.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)
    for line in started:
        program, *arguments = shlex.split(line)
        assert program == PROGRAM
        lines[f"{UNIT.name}: {arguments[0]}"] = arguments
    return {**lines, "Dockerfile": command}


@pytest.mark.parametrize("place", command_lines())
def test_command_is_understood(place: str) -> None:
    arguments = command_lines()[place]
    assert callable(build_parser().parse_args(arguments).command)


def test_command_that_is_not_understood_is_found() -> None:
    with pytest.raises(MisuseError, match="--liste"):
        build_parser().parse_args(["serve", "model.lanner", "--liste", "0.0.0.0:7400"])


def test_every_way_to_run_is_among_the_commands() -> None:
    assert set(command_lines()) == {
        "Dockerfile",
        "compose.yaml: server",
        "compose.yaml: gateway",
        "lanner.service: serve",
    }


#: The schema of each file. JSON is YAML, too.
SCHEMAS = {
    "compose.yaml": "compose.json",
    "prometheus.yml": "prometheus.json",
    "alerts.yml": "alerts.json",
    "grafana/lanner.json": "dashboard.json",
    "grafana/datasource.yml": "provisioning.json",
    "grafana/provider.yml": "provisioning.json",
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_file_fits_its_schema(name: str) -> None:
    wanted = schema(SCHEMAS[name])
    jsonschema.Draft202012Validator.check_schema(wanted)
    jsonschema.validate(read_yaml(name), wanted)


def test_every_file_for_other_programs_has_a_schema() -> None:
    found = (path.relative_to(DEPLOY) for path in DEPLOY.rglob("*") if path.suffix in (".yml", ".yaml", ".json"))
    # What is for Kubernetes is held against its own schemas by test_kubernetes.py.
    files = {str(path) for path in found if path.parts[0] not in ("helm", "kubernetes")}
    assert files == set(SCHEMAS)


def test_schema_refuses_a_misspelt_field() -> None:
    document = read_yaml("compose.yaml")
    document["services"]["server"]["readonly"] = True
    with pytest.raises(jsonschema.ValidationError, match="readonly"):
        jsonschema.validate(document, schema("compose.json"))


def test_services_name_only_what_is_declared() -> None:
    document = read_yaml("compose.yaml")
    for service in document["services"].values():
        assert set(service.get("secrets", ())) <= set(document["secrets"])
        assert set(service["networks"]) <= set(document["networks"])
        assert set(service.get("depends_on", ())) <= set(document["services"])
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            # Certificates and models are the user's; files with an ending of configuration are in this folder.
            assert source in document["volumes"] or source.startswith("./")
            assert (DEPLOY / source).is_file() or not source.endswith((".yml", ".json")), source
    words = [word for service in document["services"].values() for word in service.get("command", ())]
    mounted = {f"/run/secrets/{name}" for name in document["secrets"]}
    assert {word for word in words if word.startswith("/run/secrets/")} == mounted


def test_services_have_no_rights_and_little_is_open() -> None:
    for name, service in read_yaml("compose.yaml")["services"].items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        # What is not TLS with a certificate stays on this machine.
        outside = [port for port in service["ports"] if not port.startswith("127.0.0.1:")]
        assert outside == (["7400:7400"] if name == "server" else []), name


def test_prometheus_reads_where_the_server_serves_counters() -> None:
    server = read_yaml("compose.yaml")["services"]["server"]["command"]
    port = server[server.index("--metrics") + 1].rsplit(":", 1)[1]
    (target,) = read_yaml("prometheus.yml")["scrape_configs"][0]["static_configs"][0]["targets"]
    assert target == f"server:{port}"
    # It is answered under its own names alone.
    arguments = build_parser().parse_args(server)
    assert Hosts.of("0.0.0.0", arguments.metrics_name).include([target])  # noqa: S104 - compared, not bound
    assert not Hosts.of("0.0.0.0").include([target])  # noqa: S104


def test_gateway_is_asked_for_its_health_where_no_caller_is_and_keeps_nothing() -> None:
    gateway = read_yaml("compose.yaml")["services"]["gateway"]
    command = gateway["command"]
    health = command[command.index("--health") + 1]
    assert health.startswith("127.0.0.1:")
    assert gateway["healthcheck"]["test"][-1] == f"http://{health}/healthz"
    assert "volumes" not in gateway
    (state,) = (mount for mount in gateway["tmpfs"] if mount.startswith("/var/lib/lanner:"))
    assert {"uid=10001", "mode=0700", "size=256m"} <= set(state.split(":")[1].split(","))
    (user,) = (line for line in instructions("RUN") if "useradd" in line)
    assert "--uid 10001" in user


@pytest.mark.parametrize("arguments", [("check", "config", "prometheus.yml"), ("check", "rules", "alerts.yml")])
def test_prometheus_takes_its_settings_and_rules(arguments: tuple[str, ...]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool: only schemas were tried; apt-get install prometheus")
    checked = subprocess.run(
        [promtool, *arguments], cwd=DEPLOY, capture_output=True, text=True, timeout=60, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_prometheus_and_grafana_are_given_the_files_that_they_name() -> None:
    services = read_yaml("compose.yaml")["services"]

    def inside(service: str) -> dict[str, str]:
        """The files of a service, by where they are in the container."""
        pairs = (volume.removesuffix(":ro").split(":") for volume in services[service]["volumes"])
        return {target: source for source, target in pairs}

    prometheus, grafana = inside("prometheus"), inside("grafana")
    (settings,) = (word.split("=")[1] for word in services["prometheus"]["command"] if "config.file" in word)
    assert prometheus[settings] == "./prometheus.yml"
    for name in read_yaml("prometheus.yml")["rule_files"]:
        assert prometheus[str(Path(settings).parent / name)] == f"./{name}"
    (provider,) = read_yaml("grafana/provider.yml")["providers"]
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (grafana[home], str(Path(home).parent)) == ("./grafana/lanner.json", provider["options"]["path"])
    (source,) = read_yaml("grafana/datasource.yml")["datasources"]
    assert source["url"] == "http://prometheus:9090"


def test_panels_lie_beside_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    panels = read_yaml("grafana/lanner.json")["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for place in (panel["gridPos"] for panel in panels):
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert max(x for x, _ in cells) < 24
        assert not cells & taken
        taken |= cells


def test_image_runs_as_nobody_in_particular_and_is_asked_for_its_health() -> None:
    assert instructions("USER") == ["lanner"]
    (check,) = instructions("HEALTHCHECK")
    program, script, url = json.loads(check.split(" CMD ")[1])
    assert (program, script) == ("python", "/opt/lanner/health.py")
    (command,) = map(json.loads, instructions("CMD"))
    assert url == f"http://{command[command.index('--metrics') + 1]}/readyz"


def test_image_copies_from_what_docker_is_given() -> None:
    given = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for name in [line[1:] for line in given if line.startswith("!")]:
        assert (ROOT / name).exists(), name
    for member in tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["members"]:
        assert f"!{member.split('/')[0]}" in given


def test_image_builds_with_a_rust_that_the_crates_take() -> None:
    package = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
    assert instructions("FROM")[0].startswith(f"rust:{package['rust-version']}-")


def test_unit_is_taken_by_systemd_and_shut_off(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd-analyze")
    # A program that is there, in place of one that is installed elsewhere.
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text(encoding="utf-8").replace(PROGRAM, "/bin/true"), encoding="utf-8")
    verified = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
    security = [analyze, "security", "--offline=true", str(unit)]
    rated = subprocess.run(security, capture_output=True, text=True, timeout=60, check=False)
    exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", rated.stdout)
    assert exposure is not None, rated.stderr
    assert float(exposure[1]) <= EXPOSURE


def test_unit_with_an_unknown_setting_is_not_taken(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd-analyze")
    unit = tmp_path / UNIT.name
    text = UNIT.read_text(encoding="utf-8").replace(PROGRAM, "/bin/true")
    unit.write_text(text.replace("PrivateTmp=yes", "PrivateTemp=yes"), encoding="utf-8")
    verified = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False)
    assert "PrivateTemp" in verified.stderr


def test_installed_packages_are_those_required_with_their_hashes() -> None:
    found = locked.needed(locked.entries(ROOT), locked.requirements(ROOT, []))
    assert {entry.name for entry in found} == {
        *("markdown-it-py", "mdurl", "numpy", "pillow", "prometheus-client", "pygments", "rich"),
    }
    assert all("--hash=sha256:" in entry.text for entry in found)
    with_onnx = locked.needed(locked.entries(ROOT), locked.requirements(ROOT, ["onnx"]))
    assert {"onnx", "onnxruntime", "protobuf"} <= {entry.name for entry in with_onnx}


def test_extras_of_the_composed_image_exist() -> None:
    asked = re.findall(r"--extra (\w+)", read_yaml("compose.yaml")["services"]["server"]["build"]["args"]["EXTRAS"])
    assert asked == ["gateway"]
    assert locked.needed(locked.entries(ROOT), locked.requirements(ROOT, asked))


def test_unknown_extra_or_package_is_an_error() -> None:
    with pytest.raises(KeyError):
        locked.requirements(ROOT, ["colour"])
    with pytest.raises(KeyError):
        locked.needed(locked.entries(ROOT), ["colour"])
