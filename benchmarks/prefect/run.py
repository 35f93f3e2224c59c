"""What Prefect costs: start of a run, a mapped task run, many suspended reviews.

    python -m benchmarks.prefect.run WORKSPACE --reviews 1000

WORKSPACE is one that `expbench curate` wrote, with release candidates: its tasks are copied (into a temporary
workspace) as often as needed, so that each form has the size of a real one. Starts a server and a worker of its own.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from uuid import UUID

from prefect import flow, task
from prefect.client.orchestration import SyncPrefectClient
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.orchestration.enqueue import enqueue_reviews
from flows.orchestration.machine import Up, down, up
from pipeline.progress import SilentReporter
from pipeline.store import Workspace
from pipeline.task import Status

PORT = 4399
TASKS_PER_PAPER = 10


@task
def nothing(number: int) -> int:
    return number


@flow(name="mapped")
def mapped(count: int) -> int:
    return sum(future.result() for future in nothing.map(range(count)))


def memory_mb(record: Up, role: str) -> float:
    """Resident memory of one part."""
    pid = next(process.pid for process in record.processes if process.role == role)
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"no memory of process {pid}")


def copies(source: Path, into: Path, count: int) -> list[Workspace]:
    """Workspaces with `count` release candidates together, ten a paper, copied from those of `source`."""
    old = Workspace(source)
    tasks = [item for item in old.tasks() if item.status is Status.MASKED]
    made = []
    for paper in range(-(-count // TASKS_PER_PAPER)):
        new = Workspace(into / str(paper))
        info = old.info().evolve(paper_id=f"{old.info().paper_id}-{paper}")
        new.write_info(info)
        (new.root / "repository").symlink_to(source.resolve() / "repository")
        new.paper_dir(info.paper_id).parent.mkdir()
        new.paper_dir(info.paper_id).symlink_to(old.paper_dir(old.info().paper_id))
        for number in range(min(TASKS_PER_PAPER, count - paper * TASKS_PER_PAPER)):
            original = tasks[number % len(tasks)]
            id_ = f"{original.id[:120]}-{paper}-{number}"
            copy = original.evolve(id=id_, paper=original.paper.evolve(id=info.paper_id))
            new.save_task(copy)
            shutil.copytree(old.task_dir(original.id) / "evidence", new.task_dir(copy.id) / "evidence")
        made.append(new)
    return made


def submit_to_running(record: Up, workspace: Workspace, count: int) -> list[float]:
    """Seconds from submission until the flow's body runs, one after the other. The run itself has nothing to do."""
    first = workspace.load_task(workspace.task_ids()[0])
    workspace.save_task(first.evolve(id="decided", status=Status.APPROVED))
    seconds = []
    with SyncPrefectClient(api=record.api_url) as client:
        target = client.read_deployment_by_name("review-task/local")
        for _ in range(count):
            run = client.create_flow_run_from_deployment(
                target.id, parameters={"workspace": str(workspace.root), "task_id": "decided"}
            )
            seconds.append(_until_started(client, run.id))
    return seconds


def _until_started(client: SyncPrefectClient, run_id: UUID) -> float:
    while True:
        run = client.read_flow_run(run_id)
        if run.state is not None and run.state.is_final():
            assert run.created is not None
            assert run.start_time is not None, run.state.message
            return (run.start_time - run.created).total_seconds()
        time.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace", type=Path)
    parser.add_argument("--reviews", type=int, default=1000)
    parser.add_argument("--mapped", type=int, default=200)
    parser.add_argument("--starts", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="expbench-prefect-") as scratch:
        root = Path(scratch)
        begin = time.monotonic()
        record = up(state=root / "state", directory=root, port=PORT, reporter=SilentReporter())
        result: dict[str, object] = {"up_s": round(time.monotonic() - begin, 1)}
        try:
            with temporary_settings({PREFECT_API_URL: record.api_url}):
                workspaces = copies(options.workspace, root / "work", options.reviews)
                result["server_mb"] = round(memory_mb(record, "server"))
                result["worker_mb"] = round(memory_mb(record, "worker"))
                starts = submit_to_running(record, workspaces[0], options.starts)
                result["submit_to_running_s"] = round(statistics.median(starts), 1)
                begin = time.monotonic()
                mapped(options.mapped)
                result["mapped_ms_per_task_run"] = round(1000 * (time.monotonic() - begin) / options.mapped, 1)
                result["server_mb_before_reviews"] = round(memory_mb(record, "server"))
                begin = time.monotonic()
                made = sum(len(enqueue_reviews(workspace)) for workspace in workspaces)
                result |= {"reviews": made, "enqueue_s": round(time.monotonic() - begin, 1)}
                result["server_mb_with_reviews"] = round(memory_mb(record, "server"))
                result["worker_mb_with_reviews"] = round(memory_mb(record, "worker"))
                database = sum(path.stat().st_size for path in (root / "state").glob("prefect.db*"))
                result["database_mb"] = round(database / 1e6)
                begin = time.monotonic()
                enqueue_reviews(workspaces[-1])
                result["enqueue_one_paper_again_s"] = round(time.monotonic() - begin, 1)
        finally:
            down(state=root / "state")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
