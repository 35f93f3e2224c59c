"""Many papers through the real flow `curate`, with stages that only take time: where is the bottleneck?

    python -m benchmarks.prefect.simulate --spread dask --papers 1000 --concurrency 8 --stage-s 4
    python -m benchmarks.prefect.simulate --spread runs --papers 60 --concurrency 4 --stage-s 4

Starts a server and a worker of its own (in the SQLite database of a temporary directory, or in the one that
PREFECT_SERVER_DATABASE_CONNECTION_URL names), deploys the flows of `benchmarks.prefect.stubbed`, submits the list and
waits. `runs` is the process pool: each paper a process of its own; `dask` and `threads` are task runs in one run.

Printed: the wall time, what is left of it per paper when the stages' own time is taken away, CPU seconds of server and
of everything else, and how often the server was locked or answered 5xx. CPU shares say which part saturates first.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
from prefect.client.schemas.objects import FlowRun
from prefect.deployments.runner import RunnerDeployment
from prefect.settings import PREFECT_API_URL, temporary_settings

from benchmarks.prefect.run import memory_mb
from flows.orchestration.machine import Up, down, up
from flows.orchestration.names import POOL
from pipeline.progress import SilentReporter

PORT = 4398
ROOT = Path(__file__).resolve().parents[2]
PRELOAD = '["benchmarks.prefect.stubbed"]'


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far, its ended children included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def source_list(path: Path, papers: int) -> Path:
    """A list of papers that exist as files; their repositories are never opened."""
    lines = []
    for number in range(papers):
        pdf = path.parent / "papers" / f"paper-{number:05d}.pdf"
        pdf.parent.mkdir(exist_ok=True)
        pdf.write_bytes(b"%PDF-1.4\n")
        lines.append(json.dumps({"pdf": str(pdf), "repository": "https://example.org/none"}))
    path.write_text("\n".join(lines) + "\n")
    return path


def deploy(record: Up) -> None:
    """The stubbed flows under the names of the real ones, in the real pool."""
    for name in ("curate", "curate_paper"):
        deployment = RunnerDeployment.from_entrypoint(
            f"benchmarks.prefect.stubbed.{name}", name="local", work_pool_name=POOL,
            job_variables={"env": {"PYTHONPATH": str(ROOT)}},
        )  # fmt: skip
        deployment.apply(work_pool_name=POOL)


def wait(record: Up, run: FlowRun, deadline_s: float) -> FlowRun:
    """Until the run has ended."""
    end = time.monotonic() + deadline_s
    with SyncPrefectClient(api=record.api_url) as client:
        while time.monotonic() < end:
            found = client.read_flow_run(run.id)
            if found.state is not None and found.state.is_final():
                return found
            time.sleep(1)
    raise SystemExit(f"the run did not end within {deadline_s:g} s")


def failures(record: Up) -> dict[str, int]:
    """What the papers that failed failed of, from the batch's table."""
    with SyncPrefectClient(api=record.api_url) as client:
        wanted = ArtifactFilter(key=ArtifactFilterKey(any_=["curated-papers"]))
        tables = client.read_artifacts(artifact_filter=wanted, limit=1)
    rows = json.loads(str(tables[0].data)) if tables else []
    return dict(Counter(row["what happened"][:300] for row in rows if row["what happened"]))


def simulate(options: argparse.Namespace, root: Path, record: Up) -> dict[str, Any]:
    """Submit the list, wait, and measure."""
    server = next(process.pid for process in record.processes if process.role == "server")
    worker = next(process.pid for process in record.processes if process.role == "worker")
    sources = source_list(root / "list.jsonl", options.papers)
    deploy(record)
    parameters = {
        "sources": str(sources), "out": str(root / "out"), "concurrency": options.concurrency, "sandbox": "process",
        "review": False, "spread": options.spread, "engine": "keyless",
    }  # fmt: skip
    before = cpu_s(server), cpu_s(worker)
    with SyncPrefectClient(api=record.api_url) as client:
        target = client.read_deployment_by_name("curate/local")
        run = client.create_flow_run_from_deployment(target.id, parameters=parameters)
    ended = wait(record, run, options.deadline)
    assert ended.start_time is not None
    assert ended.end_time is not None
    assert ended.state is not None
    wall = (ended.end_time - ended.start_time).total_seconds()
    time.sleep(15)  # until the run's processes are gone and counted
    log = (root / "state" / "server.log").read_text(errors="replace")
    used = cpu_s(server) - before[0], cpu_s(worker) - before[1]
    return {
        "spread": options.spread, "papers": options.papers, "concurrency": options.concurrency,
        "stage_s": options.stage_s, "failures": failures(record), "state": ended.state.message,
        "submit_to_running_s": round((ended.start_time - ended.created).total_seconds(), 1) if ended.created else None,
        "wall_s": round(wall, 1),
        "papers_per_minute": round(60 * options.papers / wall, 1),
        "overhead_s_per_paper": round(wall * options.concurrency / options.papers - options.stage_s, 2),
        "server_cpu_s": round(used[0], 1), "server_cpu_ms_per_paper": round(1000 * used[0] / options.papers, 1),
        "server_share_of_one_core": round(used[0] / wall, 2),
        "runs_cpu_s_per_paper": round(used[1] / options.papers, 2),
        "server_mb": round(memory_mb(record, "server")),
        "database_locked": log.count("database is locked"), "server_errors": log.count("Internal Server Error"),
        "load_of_the_machine": round(os.getloadavg()[1], 1), "cores": os.cpu_count(),
        "database": "PostgreSQL" if "postgresql" in os.environ.get("PREFECT_SERVER_DATABASE_CONNECTION_URL", "")
        else "SQLite",
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spread", choices=["runs", "threads", "dask"], default="dask")
    parser.add_argument("--papers", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--stage-s", type=float, default=4.0, help="mean time of all stages of a paper together")
    parser.add_argument("--deadline", type=float, default=7200.0)
    parser.add_argument("--port", type=int, default=PORT)
    options = parser.parse_args()
    os.environ["EXPBENCH_SIMULATED_STAGE_S"] = str(options.stage_s)
    os.environ["DASK_DISTRIBUTED__WORKER__PRELOAD"] = PRELOAD
    os.environ["PYTHONPATH"] = str(ROOT)
    with tempfile.TemporaryDirectory(prefix="expbench-simulate-") as scratch:
        root = Path(scratch)
        record = up(
            state=root / "state", directory=root, port=options.port, limit=options.concurrency + 1,
            reporter=SilentReporter(),
        )  # fmt: skip
        try:
            with temporary_settings({PREFECT_API_URL: record.api_url}):
                result = simulate(options, root, record)
        finally:
            down(state=root / "state")
    result["our_peak_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
