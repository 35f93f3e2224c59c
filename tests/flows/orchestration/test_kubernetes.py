"""Kubernetes, as far as it goes without a cluster: the job that the worker would send, and the worker that sends it.

The worker is the real one (`prefect-kubernetes`), the API server is `tests.flows.orchestration.cluster`.
"""

from __future__ import annotations

import asyncio
import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import jsonschema
import pytest
import yaml

from flows.review import Answer, decide
from pipeline.task import Status
from tests.flows.orchestration.cluster import SCHEMA, Cluster, cluster_at
from tests.flows.orchestration.machine import Machine
from tests.flows.review.support import candidate, review_workspace

ROOT = Path(__file__).resolve().parents[3]
TEMPLATE = ROOT / "flows" / "orchestration" / "pools" / "kubernetes.json"
A40 = {"nvidia.com/gpu.product": "NVIDIA-A40"}


def deployment(name: str) -> dict[str, Any]:
    """A deployment of the Kubernetes pool."""
    project = yaml.safe_load((ROOT / "prefect.yaml").read_text())
    return next(
        item for item in project["deployments"] if item["name"] == "kubernetes" and item["entrypoint"].endswith(name)
    )


def rendered(variables: dict[str, Any]) -> dict[str, Any]:
    """The job of a run with these job variables, as the worker fills the template in."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.objects import FlowRun
    from prefect.states import Pending

    worker = pytest.importorskip("prefect_kubernetes.worker")

    async def render() -> dict[str, Any]:
        template = json.loads(TEMPLATE.read_text())
        made = await worker.KubernetesWorkerJobConfiguration.from_template_and_values(
            template, variables, client=get_client()
        )
        made.prepare_for_flow_run(FlowRun(id=uuid4(), flow_id=uuid4(), name="curate A Paper (v2)", state=Pending()))
        return dict(made.job_manifest)

    return asyncio.run(render())


def filled() -> dict[str, Any]:
    """As `rendered`, by Prefect's templating alone, for machines without the worker's package."""
    from prefect.utilities.templating import apply_values

    template = json.loads(TEMPLATE.read_text())
    known = template["variables"]["properties"]
    values = {name: schema["default"] for name, schema in known.items() if schema.get("default") is not None}
    values |= deployment("curate_paper")["work_pool"]["job_variables"] | {"name": "curate", "labels": {}, "env": []}
    values |= {"annotations": {}, "command": ["prefect", "flow-run", "execute"]}
    return dict(apply_values(template["job_configuration"], values, remove_notset=True)["job_manifest"])


def test_the_job_is_one_for_kubernetes_to_the_last_field() -> None:
    job = filled()
    jsonschema.validate(job, SCHEMA)
    pod = job["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == A40
    assert pod["containers"][0]["resources"]["limits"] == {"cpu": "8", "memory": "48Gi", "nvidia.com/gpu": 1}
    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["fsGroup"]) == (10001, 10001)
    wrong = copy.deepcopy(job)
    wrong["spec"]["template"]["spec"]["parallelism"] = 1  # where Prefect's own template has it: a field of no pod
    with pytest.raises(jsonschema.ValidationError, match="parallelism"):
        jsonschema.validate(wrong, SCHEMA)


def test_the_worker_makes_of_the_template_what_kubernetes_takes() -> None:
    variables = deployment("curate_paper")["work_pool"]["job_variables"]
    job = rendered({**variables, "gpu_count": 4, "gpu_product": "NVIDIA-A100-SXM4-80GB"})
    jsonschema.validate(job, SCHEMA)
    pod = job["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    assert pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 4
    assert pod["containers"][0]["args"] == ["prefect", "flow-run", "execute"]
    environment = {item["name"]: item["value"] for item in pod["containers"][0]["env"]}
    assert environment["EXPBENCH_SANDBOX"] == "process"
    # a pod that is evicted gives its run back: it goes on from its workspace in another
    assert environment["PREFECT_FLOW_RUN_EXECUTE_SIGTERM_BEHAVIOR"] == "reschedule"
    assert job["spec"]["backoffLimit"] == 0


def test_the_template_only_adds_to_the_workers_own() -> None:
    worker = pytest.importorskip("prefect_kubernetes.worker")
    known = worker.KubernetesWorker.get_default_base_job_template()
    own = json.loads(TEMPLATE.read_text())
    for name, schema in known["variables"]["properties"].items():
        assert own["variables"]["properties"][name] == schema, name
    assert set(known["job_configuration"]) == set(own["job_configuration"])


@contextmanager
def worker_on(machine: Machine, cluster: Cluster) -> Iterator[None]:
    """The Kubernetes worker, on the pool that the documentation tells to make."""
    machine.prefect("work-pool", "create", "expbench-gpu", "--type", "kubernetes", "--base-job-template", TEMPLATE)
    machine.prefect("--no-prompt", "deploy", "-n", "kubernetes")
    environment = machine.environment | {
        "KUBECONFIG": str(cluster.kubeconfig()),
        "PREFECT_INTEGRATIONS_KUBERNETES_OBSERVER_ENABLED": "false",  # it watches pods: this cluster has none
        "PREFECT_WORKER_QUERY_SECONDS": "2",
        "PREFECT_WORKER_ENABLE_CANCELLATION": "true",  # as the documentation says: off, a waiting job stays
    }
    with (cluster.directory / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", "worker", "start", "--pool", "expbench-gpu", "--type", "kubernetes"],
            env=environment, cwd=cluster.directory, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        yield
    finally:
        process.kill()  # asked politely it was seen to wait for ever; nothing of it is needed any more
        process.wait()


@pytest.mark.prefect
def test_a_run_is_carried_out_by_a_job(machine: Machine, tmp_path: Path) -> None:
    """From submission to the job's end on a node that has the GPU. Cancelling is not tested: see docs/prefect.md."""
    pytest.importorskip("prefect_kubernetes")
    workspace = review_workspace(machine.directory / "on-kubernetes", candidate())
    decide(workspace, candidate().id, Answer(decision="approve", reviewer="Ada"))
    with cluster_at(tmp_path, labels=A40) as cluster, worker_on(machine, cluster):
        run = machine.submit("release/kubernetes", workspace=workspace.root)
        machine.wait_for(run, "Completed")
        assert workspace.load_task(candidate().id).status is Status.RELEASED
        job = next(iter(cluster.jobs.values()))
        assert job["metadata"]["labels"]["prefect.io/flow-run-id"] == run
