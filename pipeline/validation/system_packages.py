"""Debian packages that a log shows to be missing: shared libraries, programs, compilers and headers.

Tables hold what was seen; a shared library that is in none of them is guessed from its soname by Debian's naming rule
(`libxcb.so.1` is in `libxcb1`). A wrong guess costs one build: the package is not found, and is dropped with a problem.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["PARTS_OF_PYTHON", "missing_build_packages", "missing_libraries", "missing_programs", "unknown_package"]

_LIBRARY = re.compile(r"(lib[\w+.-]+\.so(?:\.\d+)*): cannot open shared object file")
_LIBRARIES: Final = {
    "libGL.so.1": "libgl1", "libglib-2.0.so.0": "libglib2.0-0", "libgthread-2.0.so.0": "libglib2.0-0",
    "libgomp.so.1": "libgomp1", "libSM.so.6": "libsm6", "libXext.so.6": "libxext6", "libXrender.so.1": "libxrender1",
    "libsndfile.so.1": "libsndfile1", "libgfortran.so.5": "libgfortran5", "libopenblas.so.0": "libopenblas0",
    "libstdc++.so.6": "libstdc++6", "libusb-1.0.so.0": "libusb-1.0-0", "libX11.so.6": "libx11-6",
    "libEGL.so.1": "libegl1", "libGLU.so.1": "libglu1-mesa", "libosmesa.so.8": "libosmesa6",
    "libOSMesa.so.8": "libosmesa6", "libR.so": "r-base-core",
}  # fmt: skip
_PART: Final = re.compile(r"No module named ['\"]_?(tkinter|gdbm|idlelib)\b")
PARTS_OF_PYTHON: Final = {"tkinter": "python3-tk", "gdbm": "python3-gdbm", "idlelib": "idle-python3"}
"""Modules of Python's standard library that Debian ships apart."""
_SONAME: Final = re.compile(r"^(lib[\w+.-]*?)\.so\.(\d+)$")
_PROGRAM = re.compile(
    r"failed to execute (?:\w+\()?['\"\[]*([\w.+-]+)['\"\])]*"  # graphviz, wrappers of subprocess
    r"|\[Errno 2\] No such file or directory: ['\"]([\w.+-]+)['\"](?!/)"
    r"|(?:sh|bash)(?:: line)?(?:: \d+)?: ([\w.+-]+): (?:command )?not found"
    r"|because (\w+) could not be found"  # Matplotlib with TeX
    r"|([\w.+-]+) (?:executable )?(?:is|was|has) not (?:been )?found(?: in (?:your )?PATH| on PATH)"
)
_TEX: Final = ("cm-super-minimal", "dvipng", "texlive-fonts-recommended", "texlive-latex-extra")
_PROGRAMS: Final[dict[str, tuple[str, ...]]] = {
    "dot": ("graphviz",), "neato": ("graphviz",), "ffmpeg": ("ffmpeg",), "ffprobe": ("ffmpeg",),
    "java": ("default-jre-headless",), "Rscript": ("r-base-core",), "R": ("r-base-core",), "git": ("git",),
    "gcc": ("build-essential",), "g++": ("build-essential",), "cc": ("build-essential",), "make": ("build-essential",),
    "gfortran": ("gfortran",), "cmake": ("cmake",), "ninja": ("ninja-build",), "swig": ("swig",), "perl": ("perl",),
    "latex": _TEX, "pdflatex": _TEX, "dvipng": _TEX, "wget": ("wget",), "curl": ("curl",), "unzip": ("unzip",),
    "time": ("time",), "bc": ("bc",), "convert": ("imagemagick",), "gs": ("ghostscript",), "glpsol": ("glpk-utils",),
    "cbc": ("coinor-cbc",), "minisat": ("minisat",), "z3": ("z3",), "tesseract": ("tesseract-ocr",), "bwa": ("bwa",),
    "nproc": ("coreutils",), "parallel": ("parallel",), "jq": ("jq",), "xvfb-run": ("xvfb",), "Xvfb": ("xvfb",),
}  # fmt: skip
_BUILD: Final[tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]] = tuple(
    (re.compile(pattern), packages)
    for pattern, packages in (
        (
            r"(?:gcc|g\+\+|cc|c\+\+)['\"`]?(?: failed)?:? .*(?:not found|No such file)|Unknown compiler|no acceptable C"
            r"|command '\S*(?:gcc|g\+\+|cc)' (?:failed|not found)|Could not find (?:a )?(?:C|C\+\+) compiler",
            ("build-essential", "python3-dev"),
        ),
        (r"Python\.h: No such file|Python\.h' file not found", ("build-essential", "python3-dev")),
        (r"(?:gfortran|Fortran compiler).*(?:not found|No such file|cannot be found)", ("gfortran",)),
        (r"(?:cmake|CMake).*(?:not found|must be installed|No such file|is not installed)", ("cmake",)),
        (r"pkg-config.*(?:not found|could not be found|No such file)", ("pkg-config",)),
        (r"(?:rustc|cargo|Rust).*(?:not found|not installed|No such file|cannot be found)", ("cargo",)),
        (r"swig.*(?:not found|No such file)", ("swig",)),
        (r"openssl/\w+\.h: No such file", ("libssl-dev",)),
        (r"ffi\.h: No such file", ("libffi-dev",)),
        (r"hdf5\.h|libhdf5", ("libhdf5-dev",)),
        (r"(?:libxml2?|xmlversion\.h|libxslt)", ("libxml2-dev", "libxslt1-dev")),
        (r"gsl/\w+\.h|gsl-config", ("libgsl-dev",)),
        (r"(?:cblas|lapacke?|openblas)(?:\.h)?.*(?:not found|No such file)", ("libopenblas-dev",)),
        (r"gmp\.h", ("libgmp-dev",)),
        (r"pg_config", ("libpq-dev",)),
        (r"sndfile\.h", ("libsndfile1-dev",)),
        (r"portaudio\.h", ("portaudio19-dev",)),
        (r"graphviz/\w+\.h", ("libgraphviz-dev",)),
        (r"git executable must be specified|git: (?:command )?not found", ("git",)),
    )
)
_UNKNOWN: Final = re.compile(
    r"Unable to locate package (\S+)|Package '?([\w.+-]+)'? has no installation candidate"
    r"|Couldn't find any package by (?:glob|regex) '([^']+)'"
)


def missing_libraries(log: str) -> tuple[str, ...]:
    """Debian packages with the shared libraries, and the parts of Python, that a log says are missing."""
    parts = {PARTS_OF_PYTHON[name] for name in _PART.findall(log)}
    return tuple(sorted(parts | {package for name in _LIBRARY.findall(log) if (package := _package_of(name))}))


def _package_of(library: str) -> str:
    if library in _LIBRARIES:
        return _LIBRARIES[library]
    if library.startswith(("libcuda", "libcu", "libnv")):
        return ""  # of a GPU's driver, which no package of an image brings
    match = _SONAME.match(library)
    if match is None:
        return ""
    stem = match[1].lower().replace("_", "-")
    return f"{stem}-{match[2]}" if stem[-1].isdigit() else f"{stem}{match[2]}"


def missing_programs(log: str) -> tuple[str, ...]:
    """Debian packages with the programs that a log says are missing; programs in no table are passed over."""
    names = [next(filter(None, groups)) for groups in _PROGRAM.findall(log)]
    return tuple(sorted({package for name in names for package in _PROGRAMS.get(name, ())}))


def missing_build_packages(log: str) -> tuple[str, ...]:
    """Debian packages that a failed build of a source archive asks for: compilers, headers."""
    return tuple(sorted({package for pattern, packages in _BUILD if pattern.search(log) for package in packages}))


def unknown_package(log: str) -> str:
    """The Debian package that an install did not find; empty when it failed otherwise."""
    match = _UNKNOWN.search(log)
    return next(filter(None, match.groups())).rstrip(".,:;'") if match else ""
