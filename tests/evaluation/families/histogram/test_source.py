"""Published tasks as a source: catalogue, bad input, import, workspace, tool ablation."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evaluation.ablations import ablate, parse_ablation
from evaluation.episode import EpisodeLimits
from evaluation.families.histogram import load_histogram_task
from evaluation.families.histogram.catalogue import holds_tasks, read_catalogue
from evaluation.families.histogram.importing import import_tasks
from evaluation.families.histogram.rules import RULES
from evaluation.lock import repository_commit
from evaluation.sources import load_tasks
from flows.cli import app
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import SilentReporter
from tests.evaluation.families.histogram.support import FILE, load_one, publish, series, template

PUBLISHED = Path(__file__).parents[5] / "shared" / "data" / "collider-bench"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    publish(tmp_path / "source")
    return tmp_path / "source"


def test_a_dry_run_can_ask_the_oracle(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads the reference, which was removed with the scratch directory before it was asked."""
    monkeypatch.setattr("flows.evaluate.agent_sandbox", lambda: None)
    result = CliRunner().invoke(
        app, ["evaluate", str(source), "--agent", "oracle", "--out", str(tmp_path / "run"), "--dry-run", "--json"]
    )
    assert json.loads(result.stdout)["obstacles"] == []


def test_a_source_is_known_by_its_names(source: Path, tmp_path: Path) -> None:
    task = source / "tasks" / "p-1_sim-T5Wg"
    assert all(holds_tasks(path) for path in (source, source / "tasks", task))
    (tmp_path / "harbor" / "t").mkdir(parents=True)
    (tmp_path / "harbor" / "t" / "task.toml").write_text("")
    assert not holds_tasks(tmp_path / "harbor")
    assert not RULES.is_source(tmp_path / "nothing")


def test_a_task_says_what_the_harness_needs(source: Path, tmp_path: Path) -> None:
    [task], problems = load_tasks(source, scratch=tmp_path / "s", reporter=SilentReporter(), build=False)
    assert problems == []
    public = task.public
    assert (public.id, public.family.value, public.paper.id) == ("p-1_sim-T5Wg", "histogram", "p-1")
    assert public.question == "Predict the yield in `S_T`."
    assert public.resources.wall_time_s == 9000
    assert public.paper.sha256
    assert task.category == "easy"
    assert task.blocked
    assert RULES.limits(task, EpisodeLimits()).wall_s == 9000
    assert RULES.limits(task, EpisodeLimits(wall_s=60)).wall_s == 60
    told = RULES.instructions(task, limits=EpisodeLimits(wall_s=90, model_calls=7), network=("pypi.org",))
    assert "1.5 minutes" in told
    assert "7 model calls" in told
    assert "pypi.org" in told


BROKEN = {
    "task.toml": ("[task", "cannot be read"),
    "paper": ('paper = "../../etc"', "lead out"),
    "absolute": ('paper = "/etc"', "lead out"),
    "id": ('id = "../x"', "lead out"),
    "mode": ('mode = "area"', "none of"),
    "tolerance": ('tolerance = "much"', "wrong type"),
    "walltime": ('walltime = "soon"', "no time"),
    "table": ("metrics = 3\n[task]", "no table"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_task_is_named_and_the_rest_is_read(source: Path, tmp_path: Path, name: str) -> None:
    bad = publish(source, task="bad_task", paper="P-2")
    settings = bad / "task.toml"
    text, cause = BROKEN[name]
    if name == "table":
        settings.write_text('metrics = 3\n[task]\nid = "bad_task"\npaper = "P-2"\n')
    elif name == "task.toml":
        settings.write_text(text)
    else:
        key = text.split(" ")[0]
        lines = [text if line.startswith(f"{key} ") else line for line in settings.read_text().split("\n")]
        settings.write_text("\n".join(lines))
    entries, problems = read_catalogue(source)
    assert [entry.task.id for entry in entries] == ["p-1_sim-T5Wg"]
    assert [problem.where for problem in problems] == ["tasks/bad_task/task.toml"]
    assert cause in problems[0].message


def test_broken_files_links_and_duplicates_are_named(source: Path, tmp_path: Path) -> None:
    def spoil(name: str) -> Path:
        return publish(source, task=name, paper=f"P-{name}")

    (spoil("yaml") / "template" / FILE).write_text("a: [")
    (spoil("two") / "template" / "b.yaml").write_text("a: 1")
    link = spoil("link") / "template" / FILE
    link.unlink()
    link.symlink_to("/etc/passwd")
    linked = source / "tasks" / "shared" / "P-ref" / "reference" / FILE
    spoil("ref")
    linked.unlink()
    linked.symlink_to(source / "tasks" / "shared" / "P-1" / "reference" / FILE)
    (spoil("edges") / "template" / FILE).write_text(template(edges=((1, 2), (2, 3), (3, 4), (4, 5))))
    (spoil("told") / "TASK.md").unlink()
    again = publish(source, task="again", paper="P-3")
    (again / "task.toml").write_text(
        (source / "tasks" / "p-1_sim-T5Wg" / "task.toml").read_text().replace("p-1", "P-1", 1)
    )
    entries, problems = read_catalogue(source)
    assert len(entries) == 1
    found = {problem.where.removeprefix("tasks/"): problem.message for problem in problems}
    assert len(found) == 7
    assert "not YAML" in found[f"yaml/template/{FILE}"]
    assert "2 templates" in found["two/template"]
    assert "symbolic link" in found[f"link/template/{FILE}"]
    assert "symbolic link" in found[f"shared/P-ref/reference/{FILE}"]
    assert "no bin of the template" in found[f"shared/P-edges/reference/{FILE}"]
    assert "no such file" in found["told/TASK.md"]
    assert "tasks/p-1_sim-T5Wg" in found["again/task.toml"], "the directory that is called as its task is kept"


def test_what_an_import_cannot_give_along_costs_its_task_alone(source: Path, tmp_path: Path) -> None:
    def shared(name: str) -> Path:
        publish(source, task=name, paper=f"P-{name}")
        return source / "tasks" / "shared" / f"P-{name}"

    (shared("none") / "paper" / "P-none.pdf").write_text("no PDF")
    with (shared("huge") / "paper" / "P-huge.pdf").open("wb") as stream:
        stream.truncate(1 << 30)
    (publish(source, task="bytes", paper="P-bytes") / "TASK.md").write_bytes(b"\xff\xfe")
    head, problems = import_tasks(source, tmp_path / "out")
    assert head is not None
    assert head.tasks == ("p-1_sim-T5Wg",)
    found = {problem.where.removeprefix("tasks/"): problem.message for problem in problems}
    assert "larger than 256 MB" in found["shared/P-huge/paper/P-huge.pdf"]
    assert found["shared/P-none/paper/P-none.pdf"] == "it is no PDF"
    assert "can't decode" in found["bytes/TASK.md"]


def test_another_benchmark_s_directory_is_recognised(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for kind in ("prbench", "exp-bench", "release"):
        result = CliRunner().invoke(app, ["import", kind, str(source), "--out", str(out)])
        assert isinstance(result.exception, ExpbenchError)
        assert result.exception.kind is FailureKind.RECORD_INVALID
        assert "as those of collider-bench are" in result.exception.cause
        assert result.exception.next_step == f"expbench import collider-bench {source} --out {out}"


def test_the_import_keeps_what_can_be_read_and_counts_the_rest(source: Path, tmp_path: Path) -> None:
    bad = publish(source, task="bad", paper="P-2")
    (bad / "task.toml").write_text("[task")
    (source / "tasks" / "p-1_sim-T5Wg" / "artifacts").mkdir()
    (source / "tasks" / "p-1_sim-T5Wg" / "artifacts" / "eff.txt").write_text("0.9\n")
    out = tmp_path / "out"
    arguments = ["import", "collider-bench", str(source), "--out", str(out), "--shape-variants", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert (value["tasks"], value["errors"], value["shape_variants"], value["papers"]) == (2, 1, 1, 1)
    assert value["problems"][0]["where"] == "tasks/bad/task.toml"
    assert value["ids"] == ["p-1_shape-T5Wg", "p-1_sim-T5Wg"]
    assert json.loads((out / "problems.json").read_text())["problems"] == value["problems"]
    entries, problems = read_catalogue(out)
    assert problems == []
    assert [(entry.task.id, entry.task.mode) for entry in entries] == [
        ("p-1_shape-T5Wg", "shape"), ("p-1_sim-T5Wg", "shape_norm"),
    ]  # fmt: skip
    shape = out / "tasks" / "p-1_shape-T5Wg"
    assert "simulation (shape-only)" in (shape / "TASK.md").read_text()
    assert "ignores overall normalization" in (shape / "TASK.md").read_text()
    assert "scoring: shape_only" in (shape / "template" / FILE).read_text()
    before = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["--repositories", "x.json"], FailureKind.USAGE),
        (["--out", "{full}"], FailureKind.WORKSPACE_CONFLICT),
        (["{missing}"], FailureKind.RECORD_INVALID),
        (["{empty}"], FailureKind.RECORD_INVALID),
    ],
)
def test_an_import_that_cannot_be_is_refused(
    source: Path, tmp_path: Path, arguments: list[str], kind: FailureKind
) -> None:
    places = {"full": tmp_path / "full", "missing": tmp_path / "missing", "empty": tmp_path / "empty"}
    for name in ("full", "empty"):
        places[name].mkdir()
    (places["full"] / "mine.txt").write_text("kept")
    given = [part.format(**places) for part in arguments]
    directory = given.pop() if given[-1] in {str(places["missing"]), str(places["empty"])} else str(source)
    out = [] if "--out" in given else ["--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, ["import", "collider-bench", directory, *given, *out])
    assert isinstance(result.exception, ExpbenchError), result.output
    assert result.exception.kind is kind
    assert (places["full"] / "mine.txt").read_text() == "kept"
    assert not (tmp_path / "out").exists()


def test_a_workspace_holds_what_the_paper_says_and_no_reference(source: Path, tmp_path: Path) -> None:
    shared = source / "tasks" / "shared" / "P-1"
    (shared / "object_efficiencies").mkdir()
    (shared / "object_efficiencies" / "eff.root").write_bytes(b"\0\1root")
    (shared / "object_efficiencies" / "leak.yaml").symlink_to(shared / "reference" / FILE)
    task = load_one(source, tmp_path / "s", build=True)
    tree = task.masked_repository
    assert tree is not None
    files = {path.relative_to(tree).as_posix(): path for path in tree.rglob("*") if path.is_file()}
    names = {name for name in files if not name.startswith(".git/")}
    assert names == {
        "TASK.md", "AGENTS.md", "TOOLS.md", "report.md", "papers/P-1.pdf", f"results/{FILE}",
        "object_efficiencies/eff.root", "bin/read-paper", "bin/run-analysis", "bin/check-results",
        "tools/read_paper.py", "tools/run_analysis.py", "tools/check_results.py",
        "tools/READ-PAPER.md", "tools/RUN-ANALYSIS.md", "tools/CHECK-RESULTS.md",
    }  # fmt: skip
    assert files[f"results/{FILE}"].read_text() == template()
    assert all(b"46.48" not in path.read_bytes() for path in files.values())
    assert files["bin/read-paper"].stat().st_mode & 0o111
    assert "{" not in files["AGENTS.md"].read_text().replace("{'", "")
    assert task.private is not None
    assert not tree.is_relative_to(task.private)
    log = subprocess.run(["git", "log", "--oneline"], cwd=tree, capture_output=True, text=True, check=True)
    assert len(log.stdout.splitlines()) == 1
    other = load_one(source, tmp_path / "again", build=True)
    assert repository_commit(other.masked_repository) == repository_commit(tree)
    assert other.private_digest == task.private_digest


def test_a_tool_is_taken_out_with_every_mention_of_it(source: Path, tmp_path: Path) -> None:
    task = load_one(source, tmp_path / "s", build=True)
    changed = ablate(task, parse_ablation("tool:read-paper")).task
    tree = changed.masked_repository
    assert tree is not None
    assert repository_commit(tree) != repository_commit(task.masked_repository)
    texts = [path for path in tree.rglob("*") if path.is_file() and ".git" not in path.relative_to(tree).parts]
    assert all("read-paper" not in path.name and "read_paper" not in path.name for path in texts)
    assert all(b"read-paper" not in path.read_bytes() for path in texts if path.suffix != ".pdf")
    assert (tree / "bin" / "run-analysis").is_file()
    for text in ("tool:delphes", "method:0.5"):
        with pytest.raises(ExpbenchError) as caught:
            ablate(task, parse_ablation(text))
        assert caught.value.kind is FailureKind.USAGE


def test_the_tools_run(source: Path, tmp_path: Path) -> None:
    """As an agent calls them; the reader needs its companion and says so."""
    tree = load_one(source, tmp_path / "s", build=True).masked_repository
    assert tree is not None

    def call(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)

    assert "text and figures" in call("bin/read-paper", "--doc").stdout
    reading = call("bin/read-paper", "papers/P-1.pdf")
    assert (reading.returncode, "cannot be reached" in reading.stderr) == (1, True)
    assert call("bin/run-analysis").returncode == 2
    (tree / "analysis").mkdir()
    (tree / "analysis" / "analysis.py").write_text("print('yield', 1.5)\nraise SystemExit(3)\n")
    ran = call("bin/run-analysis")
    assert (ran.returncode, ran.stdout) == (3, "yield 1.5\n")
    assert (tree / "logs" / "run-analysis.log").read_text() == (
        "$ python3 analysis/analysis.py\nyield 1.5\n[exit code 3]\n"
    )


def test_results_are_checked_for_their_form(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program itself, in this Python: the one on the path of a machine need not have PyYAML."""
    tree = load_one(source, tmp_path / "s", build=True).masked_repository
    assert tree is not None
    monkeypatch.chdir(tree)
    scope: dict[str, object] = {"__name__": "check"}
    exec(compile((tree / "tools" / "check_results.py").read_text(), "check_results.py", "exec"), scope)
    complaints = scope["complaints"]
    path = Path("results") / FILE
    assert len(complaints(path)) == 4  # type: ignore[operator]
    path.write_text(template((1, 2, "-1", ".nan")))
    assert [text[:5] for text in complaints(path)] == ["bin 3", "bin 4"]  # type: ignore[operator]
    path.write_text(template((1, 2, 3, 4), ((600, 800), (800, 1000), (1000, 1300), (1300, 1700))))
    assert complaints(path) == ["its bins are not those of the template"]  # type: ignore[operator]


def test_a_task_may_name_its_environment(source: Path, tmp_path: Path) -> None:
    settings = source / "tasks" / "p-1_sim-T5Wg" / "task.toml"
    settings.write_text(
        settings.read_text() + '[environment]\npython = "3.12"\npackages = ["uproot==5.6", "awkward==2.8"]\n'
    )
    task = load_one(source, tmp_path / "s", build=True)
    assert (task.public.environment.python, task.public.environment.packages) == (
        "3.12",
        ("awkward==2.8", "uproot==5.6"),
    )
    assert task.masked_repository is not None
    assert "`awkward==2.8`" in (task.masked_repository / "TOOLS.md").read_text()


def test_an_extra_document_and_text_numbers_are_read(source: Path) -> None:
    task = load_histogram_task(source / "tasks" / "p-1_sim-T5Wg")
    from evaluation.families.histogram import score_histogram

    path = source / "h.yaml"
    path.write_text(template(("0.49", "1.78", "6.10", "46.48")) + "---\nnotes: mine\n---\n" + series((1, 1, 1, 1)))
    found = score_histogram(task, path)
    assert (found.valid, found.distance) == (True, 0.0)


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published tasks are not at hand")
def test_the_published_tasks_are_a_source(tmp_path: Path) -> None:
    tasks, problems = load_tasks(PUBLISHED, scratch=tmp_path, reporter=SilentReporter())
    assert problems == []
    assert [task.id for task in tasks] == ["sus-16-034_sim-TChiWZ", "sus-16-046_sim-T5Wg", "sus-16-046_sim-TChiWg"]
    assert all(task.masked_repository is not None and not task.blocked for task in tasks)
