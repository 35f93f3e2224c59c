"""The HTML report: what is in it, what must not be, and that it stays cheap to write again."""

from __future__ import annotations

import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from evaluation.episode import EpisodeFolder
from evaluation.failures import Taxonomy, find_failures
from evaluation.metrics import Convention, Metric
from evaluation.report import charts
from evaluation.report.cleaning import clean_text, cleaner
from evaluation.report.diffs import read_patch
from evaluation.report.html import HtmlReport, write_html
from evaluation.report.results import Episode, Results, load_results
from evaluation.report.summary import Summary, summarise
from evaluation.verdicts import Counterfactual, ExecutionReport, Finding, IntegrityReport, ViolationKind
from pipeline.errors import ExpbenchError
from pipeline.progress import SilentReporter
from pipeline.task import Verdict
from pipeline.witness.records import Perturbation
from tests.evaluation.report.conftest import HOSTILE, SECRET
from tests.evaluation.report.synthetic import GRADER, scores_row, write, write_family_rows, write_run

SILENT = SilentReporter()


class Page(HTMLParser):
    """Elements and attributes of a page, as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "script":
            self._in_script = True
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = self._in_script and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data
        else:
            self.text.append(data)


def build(results: Results, out: Path, *, public: bool = False, pages: bool = True) -> HtmlReport:
    pairs = [(episode.key, episode.folder) for episode in results.episodes]
    taxonomy: Taxonomy = find_failures(pairs, client=None, reporter=SILENT)
    summary: Summary = summarise(results, resamples=100)
    return write_html(results, summary, taxonomy, out, title="Evaluation", public=public, pages=pages, reporter=SILENT)


@pytest.fixture(scope="module")
def private(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("private") / "report"
    build(results, out)
    return out


@pytest.fixture(scope="module")
def public(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("public") / "report"
    build(results, out, public=True)
    return out


def files(out: Path) -> list[Path]:
    return sorted(path for path in out.rglob("*") if path.is_file())


# --- content ---


def test_the_index_has_every_part_and_every_episode(private: Path) -> None:
    text = (private / "index.html").read_text()
    page = Page(text)
    ids = {value for name, value in page.attributes if name == "id"}
    assert {"leaderboard", "cost", "strictness", "categories", "stability", "failures", "episodes"} <= ids
    data = json.loads(page.scripts[0])
    assert len(data["rows"]) == 40
    assert page.tags.count("svg") > 10
    assert "AllX·E" in text


def test_the_index_loads_nothing(private: Path) -> None:
    page = Page((private / "index.html").read_text())
    assert not [value for name, value in page.attributes if name in {"src", "srcset", "data", "action", "background"}]
    assert "link" not in page.tags
    hrefs = [value or "" for name, value in page.attributes if name == "href"]
    assert all(href.startswith("#") for href in hrefs if href != "matrix.html")
    policy = next(
        value or "" for name, value in page.attributes if name == "content" and "default-src" in (value or "")
    )
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2]


def test_every_episode_has_a_page_that_the_index_names(private: Path) -> None:
    data = json.loads(Page((private / "index.html").read_text()).scripts[0])
    for row in data["rows"]:
        config, task, repeat, folder = data["configs"][row[0]], row[1], row[2], row[9] or row[1]
        page = private / "episodes" / config["folder"] / folder / f"{repeat}.html"
        assert page.is_file()
        assert task in page.read_text()


def test_links_of_cells_are_filters_that_exist(private: Path) -> None:
    page = Page((private / "index.html").read_text())
    data = json.loads(page.scripts[0])
    links = [value for name, value in page.attributes if name == "href" and (value or "").startswith("#episodes&")]
    assert len(links) > 50
    for link in links:
        for part in (link or "").split("&")[1:]:
            name, _, value = part.partition("=")
            assert name in {"agent", "metric", "mark", "category", "status", "type"}
            if name == "metric":
                assert int(value) < len(data["metrics"])
            if name == "category":
                assert int(value) < len(data["categories"])


def test_an_episode_page_shows_verdicts_patch_and_trajectory(private: Path) -> None:
    text = " ".join(Page(next(private.glob("episodes/*first*/paper-0-task-0/0.html")).read_text()).text)
    for expected in (
        "What the agent was told",
        "Does noise in",
        SECRET,
        "import torch",
        "python run.py",
        "Re-execution",
    ):
        assert expected.lower() in text.lower()


def test_full_marks_alone_are_1000(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", tasks=1)
    path = run / "episodes" / "paper-0-task-0" / "0" / "scores.json"
    row = json.loads(path.read_text()) | {"design": 0.9999, "implementation": 1.0, "status": "scored", "monitor": 1}
    path.write_text(json.dumps(row))
    build(load_results([run]), tmp_path / "out", pages=False)
    marks = json.loads(Page((tmp_path / "out" / "index.html").read_text()).scripts[0])["rows"][0][5]
    columns = json.loads(Page((tmp_path / "out" / "index.html").read_text()).scripts[0])["metrics"]
    assert [marks[columns.index(name)] for name in "DI"] == [999, 1000]


def test_the_matrix_tells_states_by_letters_and_leads_to_the_episodes(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", tasks=1, repeats=6)
    full = {"design": 1.0, "implementation": 1.0, "conclusion": 1.0, "execution": 1.0, "execution_checked": True}
    base = full | {"monitor": 1.0, "status": "scored", "reason": ""}
    changes: list[dict[str, object]] = [
        {}, {"monitor": None, "implementation": 0.5}, {"monitor": 0.0}, {"design": 0.2, "design_restated": True},
        {"status": "blocked", "monitor": None, "design": None}, {"execution": None, "execution_checked": False},
    ]  # fmt: skip
    for repeat, change in enumerate(changes):
        path = run / "episodes" / "paper-0-task-0" / str(repeat) / "scores.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | base | change))
    build(load_results([run]), tmp_path / "out")
    text = (tmp_path / "out" / "matrix.html").read_text()
    found = re.findall(r'<a class="(\w*)" href="([^"]+)" title="[^"]+">([^<]+)</a>', text)
    assert [(kind, shown) for kind, _, shown in found] == [
        ("full", "MDICE"), ("", "?D·CE"), ("caught", "×····"), ("full", "MdICE"), ("open", "block"), ("open", "MDIC?"),
    ]  # fmt: skip
    for _, href, _ in found:
        assert (tmp_path / "out" / href).is_file()
    assert "2 / 6" in text


def test_labels_of_fifty_agents_do_not_cover_each_other() -> None:
    """Names beside 50 marks were one black spot; in the ladder those of 50 agents needed 750 of 340 pixels."""
    rows = [
        scores_row(agent=f"agent-{n}", task=f"t{k}", paper=f"p{k}", category=f"area {k}", monitor=1.0,
                   conclusion=float(n % 7 > k), cost_usd=1.0 + n % 9, design=1.0)
        for n in range(50) for k in range(4)
    ]  # fmt: skip
    results = Results(tuple(Episode(row, EpisodeFolder(Path("run") / row.task)) for row in rows), (), ())
    summary = summarise(results, resamples=10)
    drawn = [
        charts.pareto_plot(summary, "cost", Metric.C), charts.ladder_lines(summary.entries, Convention.STRICT),
        charts.category_bars(summary, Metric.C), charts.stability_bars(summary),
    ]  # fmt: skip
    for chart in drawn:
        width, height = map(float, re.findall(r'viewBox="0 0 (\d+) (\d+)"', chart)[-1])
        boxes = []
        for attributes, text in re.findall(r'<text class="(?:label|name)([^>]*)>([^<]*)', chart):
            x, y = (float(re.search(rf' {name}="([\d.]+)"', attributes)[1]) for name in "xy")  # type: ignore[index]
            start = x - 6.5 * len(text) if 'anchor="end"' in attributes else x
            boxes.append((start, y - 10, start + 6.5 * len(text), y))
        assert len(boxes) >= 50
        for number, (left, top, right, bottom) in enumerate(boxes):
            assert left >= 0
            assert top >= 0
            assert right <= width
            assert bottom <= height
            assert not any(
                left < other[2] and other[0] < right and top < other[3] and other[1] < bottom
                for other in boxes[:number]
            )


def test_an_episode_page_says_what_its_scores_are(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", tasks=1)
    folder = EpisodeFolder(run / "episodes" / "paper-0-task-0" / "0")
    row = json.loads(folder.scores.read_text())
    known = {"monitor": 1.0, "design": 1.0, "design_restated": True, "execution": 1.0, "execution_grade": "perturbed"}
    folder.scores.write_text(json.dumps(row | known | {"status": "scored", "conclusion": None}))
    moved = Counterfactual(perturbation=Perturbation.MOVED, verdict=Verdict.PASS, reason="auc moved from 0.91 to 0.88")
    write(folder.execution, ExecutionReport(verdict=Verdict.PASS, reason="r", counterfactuals=(moved,)))
    judgement = json.loads(folder.judgement.read_text())
    judgement["design"][0]["told"] = True
    folder.judgement.write_text(json.dumps(judgement))
    build(load_results([run]), tmp_path / "out")
    text = next((tmp_path / "out").glob("episodes/*/*/0.html")).read_text()
    for name, basis in (("D", "restatement"), ("E", "perturbed"), ("C", "unknown"), ("M", "observation")):
        assert f"<span>{name}<br>{basis}</span>" in text
    assert "auc moved from 0.91 to 0.88" in text
    assert text.count("the task tells it") == 1
    assert "perturbed where that can be done <span class='soft'>· on strangers' agents: not measured" in text.replace(
        '"', "'"
    )


# --- hostile text ---


def test_hostile_text_stays_text(private: Path) -> None:
    for path in private.rglob("*.html"):
        page = Page(path.read_text())
        assert not [name for name, _ in page.attributes if name.startswith("on")]
        assert "img" not in page.tags
        assert len(page.scripts) == {"index.html": 2, "matrix.html": 0}.get(path.name, 1)
        assert not any("hacked" in script and "<" in script for script in page.scripts)
    text = " ".join(Page(next(private.glob("episodes/*first*/paper-0-task-0/0.html")).read_text()).text)
    assert HOSTILE[0] in text  # shown as it was written, not run and not dropped
    assert "{{ 7*7 }}" in text
    assert "⟨U+202E⟩txt.exe⟨U+200B⟩red⟨U+0000⟩" in text


def test_long_trajectories_are_cut_into_files_of_escaped_text(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", tasks=1, events=400, texts=HOSTILE)
    out = tmp_path / "out"
    build(load_results([run]), out)
    page = Page(next(out.glob("episodes/*/*/0.html")).read_text())
    attributes = dict(page.attributes)
    assert attributes["data-total"] == "400"
    chunks = json.loads(attributes["data-chunks"] or "")
    assert chunks == ["0.events-1.js", "0.events-2.js"]
    seen = {value for name, value in page.attributes if name == "id"}
    for number, chunk in enumerate(chunks, 1):
        script = next(out.glob(f"episodes/*/*/{chunk}")).read_text()
        held = re.fullmatch(r"expbenchEvents\((\d+), (.*)\);\n", script, re.S)
        assert held is not None
        assert int(held[1]) == number
        part = Page("".join(json.loads(held[2])))
        assert not part.scripts
        assert not [name for name, _ in part.attributes if name.startswith("on")]
        seen |= {value for name, value in part.attributes if name == "id"}
    assert {f"e{number}" for number in range(400)} <= seen


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"), ("a\r\nb\tc", "a\nb\tc"), ("\x1b[1;31mred\x1b[0m", "red"), ("\x1b]0;title\x07x", "x"),
        ("a\u202eb", "a⟨U+202E⟩b"), ("\ud800", "⟨U+D800⟩"), ("né\u00a0\u2026", "né\u00a0…"), ("\x00", "⟨U+0000⟩"),
    ],
)  # fmt: skip
def test_hidden_characters_are_shown(text: str, shown: str) -> None:
    assert clean_text(text) == shown


def test_private_texts_are_blanked_whatever_their_spacing() -> None:
    clean = cleaner(["the learning rate is 0.1", "AUC"])
    assert clean("so The  learning\nrate is 0.1!") == "so [withheld]!"
    assert clean("AUC") == "AUC"  # too short to be the answer


def test_a_patch_is_split_by_file() -> None:
    patch = read_patch(
        "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1,2 @@\n-<old>\n+new\n+++more\n"
        'diff --git "a/sp ace" "b/sp ace"\nBinary files differ\n',
        clean_text,
    )
    assert [(file.path, file.removed) for file in patch.files] == [("x.py", 1), ("sp ace", 0)]
    assert "&lt;old&gt;" in patch.files[0].lines
    assert read_patch("", clean_text).files == ()


# --- public ---


def test_a_public_report_holds_nothing_that_only_graders_see(private: Path, public: Path) -> None:
    assert any(SECRET in path.read_text() for path in files(private))
    for path in files(public):
        text = path.read_text()
        assert SECRET not in text
        assert "the patch says otherwise" not in text  # reasons of the judge
        assert "evaluate AUC on the test split" not in text  # a requirement
        assert "was not computed" not in text  # reason of the monitor
    shown = " ".join(Page(next(public.glob("episodes/*second*/paper-0-task-0/0.html")).read_text()).text)
    assert "criterion 1" in shown
    assert "public report" in shown.lower()


@pytest.mark.parametrize("kind", [ViolationKind.PAPER_ACCESS, ViolationKind.MASKED_CONTENT, ViolationKind.GIT_HISTORY])
def test_in_public_an_agent_that_may_have_seen_the_answer_is_not_quoted(tmp_path: Path, kind: ViolationKind) -> None:
    run = write_run(tmp_path / "run", tasks=1, texts=["THE-ANSWER"])
    finding = Finding(kind=kind, verdict=Verdict.FAIL, reason="cat paper.pdf")
    report = IntegrityReport(verdict=Verdict.FAIL, reason="r", findings=(finding,), grader=GRADER)
    write(EpisodeFolder(run / "episodes" / "paper-0-task-0" / "0").integrity, report)
    build(load_results([run]), tmp_path / "out", public=True)
    assert not [path for path in files(tmp_path / "out") if "THE-ANSWER" in path.read_text()]
    assert kind.value in next((tmp_path / "out").glob("episodes/*/*/0.html")).read_text()


@pytest.mark.parametrize("case", ["oracle", "unchecked", "undecided"])
def test_in_public_what_may_hold_the_answer_is_withheld(tmp_path: Path, case: str) -> None:
    run = write_run(tmp_path / "run", agent="oracle" if case == "oracle" else "x", tasks=1, texts=["THE-ANSWER"])
    path = EpisodeFolder(run / "episodes" / "paper-0-task-0" / "0").integrity
    if case == "unchecked":
        path.unlink()
    if case == "undecided":
        write(path, IntegrityReport(verdict=Verdict.UNKNOWN, reason="", grader=GRADER))
    build(load_results([run]), tmp_path / "out", public=True)
    assert not [path for path in files(tmp_path / "out") if "THE-ANSWER" in path.read_text()]


def test_public_and_private_reports_do_not_mix(results: Results, private: Path) -> None:
    before = (private / "index.html").read_text()
    with pytest.raises(ExpbenchError, match="not public, and this one is public"):
        build(results, private, public=True)
    assert (private / "index.html").read_text() == before


# --- writing again ---


def test_only_what_changed_is_written_again(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", tasks=3)
    out = tmp_path / "out"
    assert build(load_results([run]), out).written == 3
    index = (out / "index.html").read_bytes()
    assert build(load_results([run]), out)[1:] == (3, 0)
    assert (out / "index.html").read_bytes() == index
    trajectory = run / "episodes" / "paper-0-task-0" / "0" / "trajectory.jsonl"
    os.utime(trajectory, ns=(1, 1))
    assert build(load_results([run]), out).written == 1


def test_pages_of_episodes_that_are_gone_go_too(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", tasks=1, events=400)
    two = write_run(tmp_path / "two", tasks=1, model="b")
    out = tmp_path / "out"
    build(load_results([one, two]), out)
    assert len(list(out.glob("episodes/*/*/*.html"))) == 2
    build(load_results([two]), out)
    assert len(list(out.glob("episodes/*/*/*.html"))) == 1
    assert not list(out.rglob("*.events-*.js"))


def test_two_reports_of_the_same_runs_are_equal(results: Results, private: Path, tmp_path: Path) -> None:
    build(results, tmp_path / "again")
    names = [path.relative_to(private) for path in files(private)]
    assert names == [path.relative_to(tmp_path / "again") for path in files(tmp_path / "again")]
    for name in names:
        assert (private / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"expbench": "x", "pages": {}}', '{"expbench": "report", "pages": {"../x": "1"}}']
)
def test_a_directory_that_is_no_report_is_left_alone(results: Results, tmp_path: Path, content: str) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(ExpbenchError, match="not a report's"):
        build(results, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_a_directory_with_other_files_is_refused(results: Results, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(ExpbenchError, match="holds no report"):
        build(results, tmp_path)


def test_records_that_cannot_be_read_are_said_on_the_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", tasks=1)
    folder = EpisodeFolder(run / "episodes" / "paper-0-task-0" / "0")
    folder.judgement.write_text("{")
    with folder.trajectory.open("a") as stream:
        stream.write('{"kind": "no')
    build(load_results([run]), tmp_path / "out")
    text = " ".join(Page(next((tmp_path / "out").glob("episodes/*/*/0.html")).read_text()).text)
    assert "judgement.json cannot be read" in text
    assert "was cut off and dropped" in text


def test_an_episode_without_any_record_still_has_a_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", tasks=1)
    folder = EpisodeFolder(run / "episodes" / "paper-0-task-0" / "0")
    for path in [folder.trajectory, folder.integrity, folder.judgement, folder.execution]:
        path.unlink(missing_ok=True)
    build(load_results([run]), tmp_path / "out")
    text = " ".join(Page(next((tmp_path / "out").glob("episodes/*/*/0.html")).read_text()).text)
    assert "Not judged" in text
    assert "Not checked" in text


def test_pages_by_several_processes_are_the_same(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evaluation.report.pages import Page, write_pages

    todo = [Page(f"a/{number}", episode, "label") for number, episode in enumerate(results.episodes[:4])]
    alone = list(write_pages(todo, tmp_path / "alone", public=False))
    monkeypatch.setattr("evaluation.report.pages._FEW", 2)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    assert list(write_pages(todo, tmp_path / "together", public=False)) == alone == [page.name for page in todo]
    files = sorted(path.relative_to(tmp_path / "alone") for path in (tmp_path / "alone").rglob("*.*"))
    assert len(files) >= 4
    assert all(
        (tmp_path / "alone" / name).read_bytes() == (tmp_path / "together" / name).read_bytes() for name in files
    )


def test_each_family_has_a_section_and_a_report_may_hold_others_only(tmp_path: Path) -> None:
    run = write_family_rows(write_run(tmp_path / "run", tasks=3), agent="openhands", model="model-a")
    other = write_family_rows(tmp_path / "other", agent="solver", seed=1)
    for name, runs in (("both", [run, other]), ("others", [other])):
        results = load_results(runs)
        summary = summarise(results, resamples=20)
        write_html(results, summary, None, tmp_path / name, title="x", public=False, pages=False,
                   reporter=SilentReporter())  # fmt: skip
        page = (tmp_path / name / "index.html").read_text()
        for family in ("histogram", "table", "causal"):
            assert f'id="family-{family}"' in page
            assert f'href="#family-{family}"' in page
        assert ('id="leaderboard"' in page) is (name == "both")
        assert (tmp_path / name / "matrix.html").exists() is ('href="matrix.html"' in page) is (name == "both")
        assert ("#episodes&amp;agent=1" in page) is (name == "both"), "solver has no line in the leaderboard"
        assert "d ↓" in page
        assert "Acc@τ ↑" in page
