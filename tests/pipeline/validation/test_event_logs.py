"""Logs of experiment trackers: files that the trackers themselves wrote, and damaged ones."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.validation.event_logs import read_tensorboard, read_wandb
from pipeline.validation.outcome import match_claims
from pipeline.validation.outputs import read_file
from tests.pipeline.validation.support import claim

# Five steps of `test/accuracy` from 0.80 to 0.8736 and of `loss` from 1.5 to 1.1, written by tensorboardX 2.6.
TENSORBOARD = (
    "c-oU-fPlsI-b$RmMZY|mf8ds*6mL>dVrHJ6YguYuiIq`bqUuCNs5-{#H{Upa$U)R;iE)W=@s^|(m*^)ZCzlo_CRd7{J>z44@q*HQ31ox0QlT"
    "1nxwyGla`KCdMHv_l*bB_(WmSf%+c3Y}nbSNIqE3Jjo6)P90_`6@6myY+Y7v@!LzlB0p#@>MvGHbmo-$4g6vLOmR5D>Ryv-ua-bTIB4aM-w2"
    "rUT1)6$mN#~$6j2gPvaET~FmY=$Sli?To2|6LEo@Fav5gyFMh&a{`=X{d=}_*$4s7Hoz)EQz=8d|G=3#qcKxEeONUp6Ri7NS9Iv0D^#^xc"
)
# Three metrics, four steps, and a summary, written by wandb 0.31 offline; what it records of the machine is taken out.
WANDB = (
    "c-p;_%TB^T6owf<tiw%)pr%XXWkJ%+bf%q-OJBleQ=lX+Xb2Py8e(8!;zAcbkPF|$H}O<cQ<S1aWxDD#|2g0PB|SMiI(>P{M5mcSnx-G)1}V"
    "6gUeIZg&A})L&wKt1A&M(la})1TVgiXReGG|m=nq5JYqv)OuRWfj95o~+q!7Th-yzv9d%LsnA;E4mVi<b8{tWFfLn@1#mLsIi;i0zQqzdnm#"
    "Ihna6qODWQgK`)8!pW3#|$^XfXVg$FH31jKHL>oa`ym<l75GlLJC_@DN-OENx7+15|ZJAFOUQvg=MM4!S#7rd62~-s7HV*lY8`wF@M{KWHl7"
    "~t*q>~8u?vZMKShW6?1tN$%JX9R8cH4#gbLb*zb0_-}OU*-)!u+wvyi|B#1tNJ)fHtsNrziSwzp5(>q++DfEmA3;s%(q~{UGEpXJy6wQ5DHx"
    "+2iMKJpS(|9gnto1GP>LM6-^%}0?d<!POBS_ndeeeF*_bayzP&E"
)


def unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b85decode(text))


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Path, Path]:
    board, wandb = tmp_path / "events.out.tfevents.1700000000.host", tmp_path / "run-abc.wandb"
    board.write_bytes(unpacked(TENSORBOARD))
    wandb.write_bytes(unpacked(WANDB))
    return board, wandb


def test_the_last_value_and_the_best_ones_of_each_series(logs: tuple[Path, Path]) -> None:
    board, wandb = logs
    assert [(s.name, s.last, s.lowest, s.highest) for s in read_tensorboard(board)] == [
        ("test/accuracy", 0.8736, 0.8, 0.8736), ("loss", 1.1, 1.1, 1.5),
    ]  # fmt: skip
    found = {series.name: series for series in read_wandb(wandb)}
    assert found["test_accuracy"].last == pytest.approx(0.8368)
    assert (found["nested/f1"].last, found["best"].last) == (0.53, 0.8765)
    assert not any(name.startswith("_") for name in found)


def test_claims_are_found_in_them(logs: tuple[Path, Path]) -> None:
    for path, text in zip(logs, ("0.874", "0.837"), strict=True):
        observations, problems = read_file(path, f"runs/{path.name}")
        assert problems == []
        (match,) = match_claims([claim("c1", "test accuracy", text)], [observations])
        assert match.verdict == "pass", match
        assert "last of" in match.where
        assert not match.place.endswith(("lowest :: 1", "highest :: 1"))


def test_a_log_that_was_cut_off_gives_what_is_there(logs: tuple[Path, Path]) -> None:
    board, wandb = logs
    board.write_bytes(board.read_bytes()[:-20])
    wandb.write_bytes(wandb.read_bytes()[: len(wandb.read_bytes()) // 2])
    assert read_tensorboard(board)[0].lowest == 0.8
    assert read_wandb(wandb)


def test_records_that_are_longer_than_a_block(tmp_path: Path) -> None:
    item = b"\x0a\x03acc" + b"\x82\x01\x04" + b"0.91"
    history = b"\x0a" + bytes([len(item)]) + item
    record = b"\x12" + bytes([len(history)]) + history
    rest = 32768 - 7 - 7 - 7 - 4  # header, a filling chunk, and room for four bytes of the record
    filling = bytes(4) + struct.pack("<HB", rest, 1) + bytes(rest)
    first = bytes(4) + struct.pack("<HB", 4, 2) + record[:4]
    last = bytes(4) + struct.pack("<HB", len(record) - 4, 4) + record[4:]
    path = tmp_path / "x.wandb"
    path.write_bytes(b":W&B\xe1\xbe\x00" + filling + first + last)
    assert [(series.name, series.last) for series in read_wandb(path)] == [("acc", 0.91)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=400), st.sampled_from([b"", b":W&B\xe1\xbe\x00"]))
def test_nothing_breaks_the_readers(tmp_path: Path, data: bytes, head: bytes) -> None:
    for name in ("events.out.tfevents.1", "x.wandb"):
        path = tmp_path / name
        path.write_bytes(head + data)
        observations, problems = read_file(path, name)
        assert isinstance(observations, list)
        assert all("could not be read" in problem.message for problem in problems)
