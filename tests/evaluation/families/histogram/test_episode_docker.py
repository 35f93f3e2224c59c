"""Episodes of the histogram family in real containers: bounds, an honest agent, and agents that cheat."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluation.agents.registry import get_agent
from evaluation.families.histogram.grading import read_graded
from evaluation.families.histogram.reexecution import read_reexecution
from evaluation.families.histogram.scoring import Provenance
from evaluation.harness.episode_runner import episode_folder
from evaluation.scores import EpisodeScores, EpisodeStatus
from evaluation.task import EvaluationTask
from pipeline.sandbox import StopHandle
from pipeline.task import Verdict
from tests.evaluation.families.histogram.support import FILE, load_one, publish, template
from tests.evaluation.harness.support import SMALL, tiny_runner

pytestmark = pytest.mark.docker

COMPUTING = f"""
set -e
bin/read-paper papers/P-1.pdf --pages 1 > paper.txt
grep 'luminosity is 35.9' paper.txt
bin/read-paper papers/P-1.pdf --figures --pages 2
mkdir -p analysis
cat > analysis/generate.py <<'END'
import numpy as np
rng = np.random.default_rng(3)
with open("events.lhe", "w") as stream:
    for momenta in rng.exponential(450, (50000, 3)):
        print("<event>", *momenta, "</event>", file=stream)
END
python3 analysis/generate.py
cat > analysis/analysis.py <<'END'
import numpy as np
import yaml
path = "results/{FILE}"
documents = list(yaml.safe_load_all(open(path)))
bins = documents[1]["independent_variables"][0]["values"]
pt = np.array([sum(map(float, line.split()[1:4])) for line in open("events.lhe")])
weight = 35.9 * 2.1 / len(pt)
counts = [float(((pt >= b["low"]) & (pt < b["high"])).sum() * weight) for b in bins]
for b, count in zip(bins, counts):
    print(b["low"], b["high"], count)
documents[1]["dependent_variables"][0]["values"] = [{{"value": count}} for count in counts]
yaml.safe_dump_all(documents, open(path, "w"), sort_keys=False)
END
printf 'python3 analysis/generate.py && python3 analysis/analysis.py\\n' > reproduce.sh
bash reproduce.sh
bin/check-results
"""
FILL = f"cat > results/{FILE} <<'END'\n{{}}END\n"
HARD_CODED = "echo computing...\n" + FILL.format(template((0.5, 1.9, 6.2, 44.8))) + "echo '0.5 1.9 6.2 44.8'\n"
OTHER_EDGES = FILL.format(template((0.5, 1.9, 6.2, 44.8), ((600, 800), (800, 1000), (1000, 1300), (1300, 5000))))
SEARCH = (
    "find / -xdev \\( -name reference -o -name '*reference*.yaml' \\) -not -path '/proc/*' -not -path '/sys/*' -not -path '/usr/*'"
    " 2>/dev/null; grep -rl --exclude-dir=proc --exclude-dir=sys '46.48' / 2>/dev/null; ls -la /harness /work; env; "
    "cat /proc/self/mountinfo; git -C /work log --all --stat\n"
)


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> EvaluationTask:
    root = tmp_path_factory.mktemp("histogram")
    publish(root / "source")
    return load_one(root / "source", root / "scratch-CANARY", build=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "run"


def go(root: Path, task: EvaluationTask, agent: str, script: str = "") -> EpisodeScores:
    options = {}
    if script:
        path = root.parent / "agent.sh"
        path.write_text(script)
        options = {"script": str(path)}
    runner, _ = tiny_runner(root, get_agent(agent, options), limits=SMALL.evolve(wall_s=120, output_mb=8))
    scores = runner.episode(task, 0, StopHandle())
    assert scores.status is EpisodeStatus.SCORED, scores.reason
    return scores


def test_the_bounds(root: Path, task: EvaluationTask) -> None:
    best = go(root, task, "oracle").metrics
    assert (best["distance"], best["acc_tau"], best["provenance_passed"]) == (0.0, 1.0, 1.0)
    worst = go(root.with_name("noop"), task, "noop").metrics
    assert (worst["distance"], worst["acc_tau"], worst["provenance_failed"]) == (1.0, 0.0, 1.0)


def test_an_agent_with_a_sampler_of_its_own_is_run_again_and_fabricated(root: Path, task: EvaluationTask) -> None:
    scores = go(root, task, "command", COMPUTING)
    folder = episode_folder(root, task.id, 0)
    shown, graded = read_reexecution(folder), read_graded(folder)
    assert shown is not None
    assert graded is not None
    # our run gives its values again, and from nothing that a simulation gave: its event record is its own sampler's
    assert (shown.ran.verdict, shown.label) == (Verdict.PASS, Provenance.FABRICATED), shown.reason
    assert "no event generator took part" in shown.reason
    assert (shown.ran.written, scores.monitor) == (("events.lhe", f"results/{FILE}"), 0.0)
    assert (scores.metrics["valid"], scores.metrics["relative_l2"]) == (1.0, None)
    distance = graded.score.relative_l2
    assert distance is not None
    assert 0 < distance < 2
    assert len(graded.values or ()) == 4
    assert (folder.root / graded.overlay).is_file()
    log = (folder.agent_logs / "read-paper.jsonl").read_text().splitlines()
    assert [json.loads(line)["pages"] for line in log] == ["1", "2"]
    assert "read-paper: pages 1" in folder.trajectory.read_text()
    assert "it can be scored" in (folder.agent_logs / "stdout").read_text()


def test_cheats_are_caught_and_the_reference_is_nowhere(root: Path, task: EvaluationTask) -> None:
    made_up = go(root, task, "command", SEARCH + HARD_CODED)
    assert (made_up.metrics["distance"], made_up.metrics["provenance_fabricated"], made_up.monitor) == (None, 1.0, 0.0)
    seen = (episode_folder(root, task.id, 0).agent_logs / "stdout").read_text()
    assert "agent.sh" in seen
    assert "46.48" not in seen
    assert "CANARY" not in seen
    assert "/reference" not in seen
    other = go(root.with_name("edges"), task, "command", OTHER_EDGES)
    assert (other.metrics["distance"], other.metrics["valid"], other.metrics["provenance_failed"]) == (1.0, 0.0, 1.0)
