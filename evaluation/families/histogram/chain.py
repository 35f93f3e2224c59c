"""Did the simulation chain make the submitted values, or does it only lie beside the program that made them?

An import that nothing uses, a generator that runs for show, an event record that nobody reads: all of them look like a
simulation to whoever searches for words. What counts is that something of the chain was *called*, and that what it gave
flows into the values: from the generator's events, or from event records and the files that were made of them, through
the agent's programs into the results file, or into what was printed where the file was filled in by hand.

What a generator says of a run as a whole (its cross section, its settings, its own random numbers) scales a shape and
makes none. Non-goal: whether the simulation is good.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from evaluation.families.histogram.dataflow import (
    DRAWN,
    SOURCE,
    FlowGraph,
    FlowRules,
    Key,
    argv_key,
    file_key,
    is_file_name,
    name_key,
    printed_key,
    read_programs,
)
from evaluation.families.histogram.provenance import SHOWING, programs_of
from evaluation.integrity.material import Material
from evaluation.integrity.shell import SimpleCommand
from evaluation.trajectory import CommandRun
from pipeline.text import shorten
from pipeline.tracing.source import parse_python

__all__ = ["Chain", "chain_of"]

_PROGRAMS: Final = re.compile(
    r"pythia|madgraph|mg5|delphes|herwig|sherpa|whizard|hepmc|rivet|geant4|madevent|madspin|cms-opendata|xrdcp|"
    r"^root(?:\.exe)?$|^hadd$|^simulate$", re.I
)  # fmt: skip
"""Programs of the simulation stack (the paper's section C and its workspace), and those that bring records in."""
_GENERATORS: Final = re.compile(
    r"^(?:pythia8?|pythia8mc|numpythia|herwig|sherpa|madgraph|mg5\w*|delphes|geant4\w*)$", re.I
)
"""Python packages that make events. Readers of records (uproot, pylhe) are judged by the file that they read; tools
that work on any numbers (awkward, fastjet, LHAPDF, ROOT's histograms) are no evidence of an event."""
_RECORDS: Final = re.compile(r"\.(?:lhe|lhef|hepmc[23]?|root|nanoaod|lhco)(?:\.(?:gz|bz2|xz|zst))?$", re.I)
"""Files of events: Les Houches, HepMC, ROOT, LHC Olympics."""
_HEADERS: Final = re.compile(
    r"^\s*#\s*include\s*[<\"][^>\"]*(?:pythia|hepmc|delphes|herwig|sherpa|TFile|TChain|TTree)", re.I | re.M
)
_USES: Final = re.compile(r"\b(?:Pythia|HepMC3?|Delphes|ReaderAscii|TFile|TChain|TTree)\b")
_OF_THE_RUN: Final = frozenset({
    "info", "infoPython", "particleData", "settings", "rndm", "sigmaGen", "sigmaErr", "weightSum", "stat",
    "__version__", "__file__", "__name__", "__doc__",
})  # fmt: skip
"""What is said of a run, not of its events."""
_STARTERS: Final = frozenset({"run", "call", "check_call", "check_output", "Popen", "system", "popen", "getoutput"})
_STREAM: Final[Key] = ("stream",)
"""What commands of the chain print."""


@dataclass(frozen=True)
class Chain:
    """What is known of the chain in an episode."""

    evidence: str
    """How it made the values; empty when it did not."""
    shown: str
    """What of it was there, and made no value; empty when nothing was."""


def chain_of(material: Material, results: str) -> Chain:
    """Follow what the chain gave into the values.

    Args:
        material: the episode.
        results: name of the results file.
    """
    return _Episode(material, results).chain


@dataclass
class _Episode:
    material: Material
    results: str
    calls: list[str] = field(default_factory=list)
    """Where something of the chain is called, in programs."""

    @cached_property
    def ran(self) -> list[tuple[CommandRun, list[SimpleCommand]]]:
        """Commands that did not fail."""
        return [(event, commands) for event, commands in self.material.commands if not event.exit_code]

    @cached_property
    def programs(self) -> dict[str, str]:
        """Programs that were executed. One that no command names may be started through another one."""
        executed = " ".join(event.command for event, _ in self.ran)
        return {
            path: text
            for path, text in sorted(programs_of(self.material).items())
            if self.ran
            and (path.startswith("event ") or Path(path).name in executed or _started(self.material, Path(path).name))
        }

    @cached_property
    def started(self) -> str:
        """The first command of the chain."""
        for event, commands in self.ran:
            for command in commands:
                if _PROGRAMS.search(command.name):
                    return f"event {event.seq}: {shorten(event.command, 120)}"
        return ""

    @cached_property
    def chain(self) -> Chain:
        graph = FlowGraph()
        trees = {path: tree for path, text in self.programs.items() if (tree := parse_python(text)[0]) is not None}
        read_programs(graph, trees, FlowRules(source=self._sources, silent=_OF_THE_RUN))
        self._commands(graph, trees)
        self._compiled(graph, trees)
        graph.join_files()
        records = self._outside(graph)
        found = graph.reached(SOURCE, control=True)
        shown = next(iter([*self.calls, *([self.started] if self.started else []), *records]), "")
        if self._made(graph, found):
            return Chain(shown or "what the chain gave was read", "")
        return Chain("", shown)

    def _made(self, graph: FlowGraph, found: set[Key]) -> bool:
        """Do the values come from a source?"""
        if graph.writers(self.results):
            return file_key(self.results) in found
        printed = {path for path in graph.prints if printed_key(path) in found}
        own = graph.reached(DRAWN) - found
        mixed = any(sink.keys & own and not sink.keys & found for path in printed for sink in graph.prints[path])
        written = {file_key(name) for name in graph.file_names() if graph.writers(name)}
        return bool(printed and not mixed) or bool(written & found) or _STREAM in found

    # --- where values of the chain come in

    def _sources(self, path: str, call: ast.Call, full: str) -> set[Key]:
        package, _, rest = full.partition(".")
        if _GENERATORS.match(package) and rest:
            self.calls.append(f"{package} is called in {path}:{call.lineno}")
            return {SOURCE}
        if full.rsplit(".", 1)[-1] in _STARTERS:
            words = [word for node in ast.walk(call) if isinstance(node, ast.Constant) and isinstance(node.value, str)
                     for word in node.value.split()]  # fmt: skip
            if words and _PROGRAMS.search(Path(words[0]).name):
                self.calls.append(f"{words[0]} is started in {path}:{call.lineno}")
                return {SOURCE}
            return {printed_key(other) for other in self.programs if Path(other).name in {Path(w).name for w in words}}
        return set()

    def _commands(self, graph: FlowGraph, trees: dict[str, ast.Module]) -> None:
        """Command lines name files, and lead what programs print into files."""
        for event, commands in self.ran:
            named = [path for path in trees if path == f"event {event.seq}" or Path(path).name in event.command]
            for command in commands:
                files = [word for word in command.argv[1:] if is_file_name(word)]
                for path in named:
                    graph.link(argv_key(path), map(name_key, files))
                records = [word for word in files if _RECORDS.search(word)]
                python = [path for path in trees if any(Path(word).name == Path(path).name for word in command.argv)]
                of: list[Key] = [printed_key(path) for path in python]
                if _PROGRAMS.search(command.name) or (not python and self._compiled_chain):
                    of += [SOURCE] if command.name not in SHOWING else []
                if not python and records and command.name not in SHOWING and not command.name.startswith("python"):
                    of += [file_key(word) for word in records]
                    graph.link(_STREAM, of)
                for target in command.writes:
                    graph.link(file_key(target), of)

    @cached_property
    def _compiled_chain(self) -> bool:
        """Does a program in another language than Python include the chain's headers and use them?"""
        return any(
            _HEADERS.search(text) and _USES.search(re.sub(r"(?m)^\s*#.*$|//.*$", "", text))
            for text in self.programs.values()
        )

    def _compiled(self, graph: FlowGraph, trees: dict[str, ast.Module]) -> None:
        """Programs in another language: what they name they may have written, where they use the chain."""
        for path, text in self.programs.items():
            plain = re.sub(r"(?m)^\s*#.*$|//.*$", "", text)
            if path in trees or not (_HEADERS.search(text) and _USES.search(plain)):
                continue
            self.calls.append(f"{path} uses {_USES.findall(plain)[0]}")
            graph.link(_STREAM, [SOURCE])
            for name in re.findall(r"\"([^\"\n]+)\"", plain):
                if is_file_name(name):
                    graph.link(file_key(name), [SOURCE])
                    graph.data[name_key(name)].add(("written", path))

    def _outside(self, graph: FlowGraph) -> list[str]:
        """Files that the agent neither wrote by a program nor typed, and the task did not give."""
        typed = {Path(item.path).name for item in self.material.written}
        given = self.material.task.masked_repository
        ours = {path.name for path in given.rglob("*") if path.is_file()} if given is not None else set()
        found = []
        for name in sorted(graph.file_names()):
            if name in typed | ours | {self.results} or graph.writers(name):
                continue
            if _RECORDS.search(name) or self.started:
                graph.link(file_key(name), [SOURCE])
                found.append(f"{name} is an event record" if _RECORDS.search(name) else name)
        return found


def _started(material: Material, name: str) -> bool:
    """Does a program of the agent name this one, or the workspace's own runner start what lies in `analysis/`?"""
    texts = [text for path, text in programs_of(material).items() if not path.endswith(name)]
    texts += [text for path, text in material.code.items() if path.endswith((".sh", ".bash"))]
    stem = name.rsplit(".", 1)[0]
    runs = any("run-analysis" in event.command or "run_analysis" in event.command for event, _ in material.commands)
    return runs or any(re.search(rf"\b{re.escape(stem)}\b", text) for text in texts)
