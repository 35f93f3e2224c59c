"""Many papers through the real flow `curate`, with stages that only take time: where is the bottleneck?

    python -m benchmarks.prefect.simulate --spread dask --papers 1000 --concurrency 8 --stage-s 4
    python -m benchmarks.prefect.simulate --spread runs --papers 60 --concurrency 4 --stage-s 4
    python -m benchmarks.prefect.simulate --spread threads --papers 1000 --lists 100 --concurrency 10 --limit 4

Starts a server and a worker of its own (in the SQLite database of a temporary directory, or in the one that
PREFECT_SERVER_DATABASE_CONNECTION_URL names), deploys the flows of `benchmarks.prefect.stubbed`, submits the list and
waits. `runs` is the process pool: each paper a process of its own; `dask` and `threads` are task runs in one run. With
`--lists` the papers are split into so many lists, each a run of `curate` in a process of its own: `--limit` at a time.

Printed: the wall time, what is left of it per paper when the stages' own time is taken away, CPU seconds of server and
of everything else, and how often the server was locked or answered 5xx. CPU shares say which part saturates first. A
CPU second is worth less on a busy machine (cores share caches and pipelines): `import_prefect_cpu_s` is the same small
job before and after, 1.8 on the quiet machine of the figures in `docs/scale.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

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


def yardstick() -> float:
    """CPU seconds of an interpreter that imports Prefect and ends."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "import prefect.flow_engine"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2)


def source_list(path: Path, papers: range) -> Path:
    """A list of papers that exist as files; their repositories are never opened."""
    lines = []
    for number in papers:
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


def wait(record: Up, runs: list[FlowRun], deadline_s: float) -> list[FlowRun]:
    """Until the runs have ended."""
    end = time.monotonic() + deadline_s
    ended: dict[UUID, FlowRun] = {}
    with SyncPrefectClient(api=record.api_url) as client:
        while time.monotonic() < end:
            for run in runs:
                if run.id not in ended:
                    found = client.read_flow_run(run.id)
                    if found.state is None or not found.state.is_final():
                        break  # they are begun in this order: the later ones have hardly ended
                    ended[run.id] = found
            else:
                return [ended[run.id] for run in runs]
            time.sleep(2)
    raise SystemExit(f"the runs did not end within {deadline_s:g} s")


def failures(record: Up, lists: int) -> dict[str, int]:
    """What the papers that failed failed of, from the batches' tables."""
    with SyncPrefectClient(api=record.api_url) as client:
        wanted = ArtifactFilter(key=ArtifactFilterKey(any_=["curated-papers"]))
        tables = client.read_artifacts(artifact_filter=wanted, limit=lists)
    rows = [row for table in tables for row in json.loads(str(table.data))]
    return dict(Counter(row["what happened"][:300] for row in rows if row["what happened"]))


def submit(options: argparse.Namespace, root: Path, record: Up) -> list[FlowRun]:
    """The papers, as one list or as several of the same length."""
    size = -(-options.papers // options.lists)
    with SyncPrefectClient(api=record.api_url) as client:
        target = client.read_deployment_by_name("curate/local")
        runs = []
        for number, first in enumerate(range(0, options.papers, size)):
            papers = range(first, min(first + size, options.papers))
            parameters = {
                "sources": str(source_list(root / f"list-{number}.jsonl", papers)), "out": str(root / "out"),
                "concurrency": options.concurrency, "sandbox": "process", "review": False, "spread": options.spread,
                "engine": "keyless",
            }  # fmt: skip
            runs.append(client.create_flow_run_from_deployment(target.id, parameters=parameters))
    return runs


def simulate(options: argparse.Namespace, root: Path, record: Up) -> dict[str, Any]:
    """Submit the papers, wait, and measure."""
    server = next(process.pid for process in record.processes if process.role == "server")
    worker = next(process.pid for process in record.processes if process.role == "worker")
    deploy(record)
    reference = yardstick()
    before = cpu_s(server), cpu_s(worker)
    ended = wait(record, submit(options, root, record), options.deadline)
    begun = [run.start_time for run in ended if run.start_time]
    wall = (max(run.end_time for run in ended if run.end_time) - min(begun)).total_seconds()
    time.sleep(15)  # until the runs' processes are gone and counted
    log = (root / "state" / "server.log").read_text(errors="replace")
    used = cpu_s(server) - before[0], cpu_s(worker) - before[1]
    processes = len(ended) + (options.papers if options.spread == "runs" else 0)
    at_once = options.concurrency * (1 if len(ended) == 1 else min(options.limit, len(ended)))
    return {
        "spread": options.spread, "papers": options.papers, "lists": len(ended), "concurrency": at_once,
        "stage_s": options.stage_s, "failures": failures(record, len(ended)),
        "states": dict(Counter(run.state.message or run.state.name for run in ended if run.state)),
        "wall_s": round(wall, 1),
        "papers_per_minute": round(60 * options.papers / wall, 1),
        "overhead_s_per_paper": round(wall * at_once / options.papers - options.stage_s, 2),
        "server_cpu_s": round(used[0], 1), "server_cpu_ms_per_paper": round(1000 * used[0] / options.papers, 1),
        "server_share_of_one_core": round(used[0] / wall, 2),
        "processes": processes, "worker_and_runs_cpu_s": round(used[1], 1),
        "worker_and_runs_cpu_s_per_paper": round(used[1] / options.papers, 2),
        "worker_and_runs_cpu_s_per_process": round(used[1] / processes, 2),
        "import_prefect_cpu_s": [reference, yardstick()],
        "server_mb": round(memory_mb(record, "server")), "worker_mb": round(memory_mb(record, "worker")),
        "database_locked": log.count("database is locked"), "server_errors": log.count("Internal Server Error"),
        "load_of_the_machine": round(os.getloadavg()[1], 1), "cores": os.cpu_count(),
        "database": "PostgreSQL" if "postgresql" in os.environ.get("PREFECT_SERVER_DATABASE_CONNECTION_URL", "")
        else "SQLite",
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spread", choices=["runs", "threads", "dask"], default="dask")
    parser.add_argument("--papers", type=int, default=1000)
    parser.add_argument("--lists", type=int, default=1, help="runs of curate that share the papers")
    parser.add_argument("--limit", type=int, help="runs that the worker carries at a time; default: concurrency + 1")
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--stage-s", type=float, default=4.0, help="mean time of all stages of a paper together")
    parser.add_argument("--deadline", type=float, default=7200.0)
    parser.add_argument("--port", type=int, default=PORT)
    options = parser.parse_args()
    options.limit = options.limit or options.concurrency + 1
    os.environ["EXPBENCH_SIMULATED_STAGE_S"] = str(options.stage_s)
    os.environ["DASK_DISTRIBUTED__WORKER__PRELOAD"] = PRELOAD
    os.environ["PYTHONPATH"] = str(ROOT)
    with tempfile.TemporaryDirectory(prefix="expbench-simulate-") as scratch:
        root = Path(scratch)
        record = up(
            state=root / "state", directory=root, port=options.port, limit=options.limit,
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
