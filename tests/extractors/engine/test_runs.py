"""What was run, as the reader is shown it, and what its numbers are worth as evidence."""

from __future__ import annotations

from extractors.engine.listing import Listing
from extractors.engine.runs import Rehearsed
from pipeline.errors import FailureKind
from pipeline.match.records import CellMatch, TableMatch
from pipeline.rehearse import Rehearsal
from pipeline.survey import Candidate
from pipeline.task import Band, NumericClaim, Usage
from tests.extractors.engine.papers import paper

PAPER = paper()
LISTING = Listing(PAPER)


def run(key: str, **values: object) -> Rehearsal:
    usage = Usage(argv=("python", f"{key}.py"))
    candidate = Candidate(key=key, usage=usage, entry=f"{key}.py", origin="document", where="README.md:3")
    return Rehearsal.model_validate({"candidate": candidate, "usage": (usage,), "ran": True} | values)


def match(source: str, cells: dict[tuple[int, int], str], missed: tuple[tuple[int, int], ...] = ()) -> TableMatch:
    def cell(place: tuple[int, int], text: str) -> CellMatch:
        row, column = place
        return CellMatch(
            row=row, column=column, text=text, value=float(text), decimals=1, source=source, place=f"at {row} {column}",
            where=source, observed=float(text) / 100, factor=100.0,
        )  # fmt: skip

    return TableMatch(
        label="Table 1", page=2, source=source, origin="run" if source.startswith("run:") else "committed",
        fields=(("Moons", "acc_moons"),), cells=tuple(cell(place, text) for place, text in cells.items()),
        missed=tuple(cell(place, "1.5") for place in missed), compared=len(cells) + len(missed), chance=-9.0,
    )  # fmt: skip


def claim(row: int, column: int, text: str, uncertainty: float | None = None) -> NumericClaim:
    cell = LISTING.evidence(f"T1.r{row}c{column}")
    assert cell is not None
    return NumericClaim(
        id=f"c{row}{column}", metric="accuracy", value=float(text), text=text, decimals=1, uncertainty=uncertainty,
        band=Band(low=0, high=100, source="wide"), evidence=(cell,),
    )  # fmt: skip


GIVEN = {(1, 1): "81.2", (1, 2): "77.4", (2, 1): "86.5"}
CLAIMS = (claim(1, 1, "81.2"), claim(1, 2, "77.4"), claim(2, 1, "86.5"), claim(2, 2, "79.9"))


def test_runs_and_files_are_shown_with_the_cells_that_they_hold_and_without_times() -> None:
    failed = run("gpu", failure=FailureKind.RUN_FAILED, message="no CUDA device", duration_s=17.25)
    known = Rehearsed(
        runs=(
            run("main", duration_s=17.25, writes=("out.csv",)),
            failed,
            run("late", ran=False, message="no time left"),
        ),
        matches=(match("run:main", GIVEN, missed=((3, 1),)), match("old.csv", {(1, 1): "81.2"})),
    )
    shown = known.shown(PAPER, LISTING)
    assert (
        "run 1: `python main.py` in . (stated in README.md:3)\n  ended well\n  wrote out.csv\n  gives 3 cells" in shown
    )
    assert "gives 3 cells of T1: r1c1-2 r2c1; other numbers for r3c1 (prints 1.5, here 1.5)" in shown
    assert "there called `Moons`: `acc_moons`" in shown
    assert "run 2: `python gpu.py` in . (stated in README.md:3)\n  failed: no CUDA device" in shown
    assert "was not run: no time left" in shown
    assert "committed file old.csv: holds 1 cells of T1: r1c1" in shown
    assert "17" not in shown
    assert Rehearsed().shown(PAPER, LISTING) == "Nothing was run."


def test_the_run_that_a_chain_is_binds_its_claims_to_places() -> None:
    known = Rehearsed(runs=(run("main"),), matches=(match("run:main", GIVEN),))
    found = known.behind((Usage(argv=("python", "main.py"), directory="./", reason="other words"),))
    assert found == known.runs[0]
    bound, left_out = known.bound(CLAIMS, known.runs[0], PAPER)
    assert left_out == ()
    assert [item.place for item in bound] == ["at 1 1", "at 1 2", "at 2 1", ""]
    assert (bound[0].factor, bound[0].band.source) == (100.0, "printed precision")
    assert bound[3] == CLAIMS[3]
    assert known.behind((Usage(argv=("python", "main.py", "--fast")),)) is None
    assert Rehearsed(runs=(run("main", failure=FailureKind.RUN_FAILED),)).behind(known.runs[0].usage) is None


def test_a_number_that_the_run_gives_otherwise_is_no_claim() -> None:
    known = Rehearsed(runs=(run("main"),), matches=(match("run:main", GIVEN, missed=((2, 2),)),))
    bound, left_out = known.bound(CLAIMS, known.runs[0], PAPER)
    assert [item.text for item in bound] == ["81.2", "77.4", "86.5"]
    assert left_out == ("left out: row 2, column 2 prints 79.9, and the run gives 1.5",)


def test_another_run_that_gives_half_of_the_numbers_gives_the_answer_away() -> None:
    runs = (run("main"), run("all"), run("some"))
    matches = (match("run:main", GIVEN), match("run:all", GIVEN), match("run:some", {(1, 1): "81.2"}))
    known = Rehearsed(runs=runs, matches=matches)
    assert known.others(CLAIMS, runs[0], PAPER) == (runs[1],)
    assert known.others(CLAIMS, None, PAPER) == runs[:2]
    assert known.others((), None, PAPER) == ()


def test_numbers_that_a_run_reads_from_what_is_committed_are_no_evidence() -> None:
    copying, computing = run("show", reads=("old.csv",)), run("main", reads=("old.csv",), writes=("old.csv",))
    matches = (match("run:show", GIVEN), match("run:main", GIVEN), match("old.csv", GIVEN))
    known = Rehearsed(runs=(copying, computing), matches=matches)
    assert "but reads them from old.csv, which the repository ships: that computes nothing" in known.shown(
        PAPER, LISTING
    )
    assert {item.place for item in known.bound(CLAIMS, copying, PAPER)[0]} == {""}
    assert known.bound(CLAIMS, computing, PAPER)[0][0].place == "at 1 1"
    assert known.others(CLAIMS, computing, PAPER) == ()
