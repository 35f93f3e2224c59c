"""`prefect.yaml`, the pools' templates and the start-up hook, without a server."""

from __future__ import annotations

import asyncio
import json
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.orchestration.names import DEPLOYMENT, POOL, REVIEW_TASK
from pipeline.version import version

ROOT = Path(__file__).resolve().parents[3]
POOLS = ROOT / "flows" / "orchestration" / "pools"


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "prefect.yaml").read_text()))


@pytest.fixture(scope="module")
def known_templates() -> dict[str, Any]:
    """The base job templates of the workers, as Prefect itself ships them."""
    import prefect.server.api.collections_data as collections

    path = Path(collections.__path__[0]) / "views" / "aggregate-worker-metadata.json"
    found = json.loads(path.read_text())
    return {
        kind: worker["default_base_job_configuration"] for package in found.values() for kind, worker in package.items()
    }


def test_every_flow_is_deployed_on_every_pool(project: dict[str, Any]) -> None:
    from prefect.flows import load_flow_from_entrypoint

    names: dict[str, set[str]] = {}
    for deployment in project["deployments"]:
        names.setdefault(deployment["name"], set()).add(load_flow_from_entrypoint(deployment["entrypoint"]).name)
    flows = {"curate-paper", "curate", "review-task", "validate-task", "mask-task", "release"}
    flows |= {"evaluate", "evaluate-episode", "judge", "sweep"}
    assert names == {DEPLOYMENT: flows, "docker": flows, "kubernetes": flows}
    local = [item for item in project["deployments"] if item["name"] == DEPLOYMENT]
    assert {item["work_pool"]["name"] for item in local} == {POOL}
    assert REVIEW_TASK in flows
    assert project["pull"] == [], "expbench is installed where the worker runs"


def test_the_image_is_pinned_to_this_version(project: dict[str, Any]) -> None:
    images = {item["work_pool"].get("job_variables", {}).get("image") for item in project["deployments"]}
    assert images == {None, f"expbench:{version()}"}


def test_no_container_gets_the_hosts_docker_socket(project: dict[str, Any]) -> None:
    volumes = [
        volume
        for item in project["deployments"]
        for volume in item["work_pool"].get("job_variables", {}).get("volumes", [])
    ]
    assert volumes
    assert not any("docker.sock" in volume for volume in volumes)


@pytest.mark.parametrize(("deployment", "kind"), [("docker", "docker"), ("kubernetes", "kubernetes")])
def test_job_variables_are_those_of_the_pool(
    project: dict[str, Any], known_templates: dict[str, Any], deployment: str, kind: str
) -> None:
    import jsonschema

    own = POOLS / f"{kind}.json"
    template = json.loads(own.read_text()) if own.is_file() else known_templates[kind]
    schema = template["variables"]
    for item in project["deployments"]:
        if item["name"] == deployment:
            variables = item["work_pool"]["job_variables"]
            assert set(variables) <= set(schema["properties"])
            jsonschema.validate(variables, schema)


def test_the_kubernetes_template_has_all_that_the_worker_fills_in(known_templates: dict[str, Any]) -> None:
    """A template that lacks a field is refused or the field ignored; `test_kubernetes` compares with the worker itself."""
    own = json.loads((POOLS / "kubernetes.json").read_text())
    known = known_templates["kubernetes"]
    assert set(own["job_configuration"]) >= set(known["job_configuration"])
    assert set(own["variables"]["properties"]) >= set(known["variables"]["properties"])
    assert set(_placeholders(own["job_configuration"])) <= set(own["variables"]["properties"])


def test_the_process_template_is_the_workers_own_with_a_command() -> None:
    from prefect.workers.process import ProcessWorker

    template = ProcessWorker.get_default_base_job_template()
    template["variables"]["properties"]["command"]["default"] = "python -m prefect.engine"
    assert json.loads((POOLS / "process.json").read_text()) == template


def test_the_hook_completes_short_names_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from prefect.client.orchestration import PrefectClient

    from flows.orchestration.plugin import setup_environment

    async def asked_for(self: object, name: str) -> str:
        return name

    monkeypatch.setattr(PrefectClient, "read_deployment_by_name", asked_for)
    setup_environment(ctx=None)
    setup_environment(ctx=None)
    client: Any = object.__new__(PrefectClient)
    look: Any = PrefectClient.read_deployment_by_name
    assert asyncio.run(look(client, "curate-paper")) == "curate-paper/local"
    assert asyncio.run(look(client, "curate-paper/docker")) == "curate-paper/docker"


def test_prefect_finds_the_hook() -> None:
    assert "flows.orchestration.plugin" in {item.value for item in entry_points(group="prefect.plugins")}


def _placeholders(value: Any) -> list[str]:
    import re

    return re.findall(r"\{\{\s*([a-z_]+)\s*\}\}", json.dumps(value))


def test_submitting_without_a_server_says_how_to_start_one(tmp_path: Path) -> None:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    from flows.curate import CurateOptions
    from flows.orchestration.submit import submit_curation
    from pipeline.errors import ExpbenchError, FailureKind

    with pytest.raises(ExpbenchError) as caught:
        submit_curation(CurateOptions(pdf=tmp_path / "none.pdf", repository="x"))
    assert caught.value.kind is FailureKind.PAPER_INVALID
    paper = tmp_path / "paper.pdf"
    paper.write_bytes(b"%PDF-1.4")
    for url in (None, "http://127.0.0.1:9/api"):  # nobody listens on the discard port
        with temporary_settings({PREFECT_API_URL: url}), pytest.raises(ExpbenchError, match="expbench up") as caught:
            submit_curation(CurateOptions(pdf=paper, repository="x"))
        assert caught.value.kind is FailureKind.NETWORK
