"""The witness inside a Python process: what runs, which random streams and files it uses; moves them where asked to.

It is mounted as one file under a random name into the `site-packages` of an environment, and a line of a `.pth` file
calls `begin` before the program starts. Standard library of Python 3.8 to 3.13 only. The program must not notice: no
output, no exception, no exit code, no thread of ours. What goes wrong in here becomes a fact of the record.

A record is one JSON object in one file a process, written as a whole and replaced: when the process ends in order
(`atexit`, `os._exit`, `exec`, SIGTERM), and now and then before, for those that are killed.

- Functions: `sys.settrace` up to Python 3.11, `sys.monitoring` after it, where code outside the tree costs nothing.
- Random generators: classes of NumPy are replaced by subclasses of them when it is imported, which answer `isinstance`
  for all generators; `random.Random` is a Python class and gets other methods; so does torch.
- Labels: `permuted` changes the arrays that a function returns in place when it returns, so that it does not matter how
  the function was reached, and nothing is wrapped.
- Plots: what matplotlib and plotly are given is read when their functions return, which are not wrapped either: a frame
  of ours would stand in tracebacks and in the places that warnings name. Back ends that need a screen are Agg.
"""

# ruff: noqa: B905, BLE001, E501, N807, PLR0911, PLR0912, PTH100, PTH105, PTH109, PTH110, PTH112, PTH113, PTH117, PTH118
# ruff: noqa: PTH119, PTH120, PTH208, S110, SIM105, UP006, UP031, UP035, UP036, UP045
# nothing may come out of here; pathlib is a program's own import, and a slow one

from __future__ import annotations

import atexit
import builtins
import copyreg
import json
import os
import signal
import sys
import time
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

_MAX_FUNCTIONS = 4000
_MAX_VALUES = 64
_MAX_CALLERS = 32
_MAX_TEXT = 80
_MAX_SEQUENCE = 8
_MAX_FILES = 512
_MAX_SEEDS = 256
_MAX_FACTS = 64
_PRINTED = 256 * 1024
# Arguments of every call are looked at up to here, and of every 61st (a prime: loops have even lengths) after it:
# looking costs 3 us, counting 0.4
_LOOKED_AT = 1000
_EVERY = 61
# From Python 3.12 on a function is not followed after so many calls until something is printed a second later
_COUNTED = 100_000
_DISTINCT = 200
_SNAPSHOT_S = 1.0
# Series that plots were given, numbers of one (its first and last ones) and of all, cells of an image (a photograph is
# none), axes whose labels are still to be set and that are kept alive for it
_MAX_SERIES = 400
_MAX_PLOTTED = 2000
_MAX_ALL_PLOTTED = 200_000
_MAX_CELLS = 400
_MAX_OPEN_AXES = 16
_FEWEST_LABELS = 8
_GENERATOR, _ARGUMENTS, _PERMUTE, _STDOUT, _PLOT = 1, 2, 4, 8, 16
_RESUMABLE = 0x20 | 0x80 | 0x200
_NESTED = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")

_OUTSIDE, _TREE, _OWN = 0, 1, 2


class _Cell(list):  # type: ignore[type-arg]
    """[calls, what is to be looked at, code, kind, path or package, qualified name, notes, are some calls looked at?].

    A list is the fastest.
    """


class _Notes:
    """Arguments and callers of a function."""

    __slots__ = ("arguments", "callers", "distinct")

    def __init__(self) -> None:
        self.arguments: Dict[str, Dict[str, None]] = {}
        self.callers: Dict[str, None] = {}
        self.distinct = 0


_config: Dict[str, Any] = {}
_cells: Dict[int, _Cell] = {}
_names: Dict[int, str] = {}
_libraries: List[str] = []
_seeds: Dict[str, None] = {}
_facts: Dict[str, None] = {}
_reads: Dict[str, None] = {}
_writes: Dict[str, None] = {}
_printed: List[str] = []
_originals: Dict[str, Tuple[Any, str, Any]] = {}
_once: Dict[int, Callable[[], Any]] = {}
_kept: List[Any] = []
_orders: Dict[int, List[int]] = {}
_plots: List[Any] = []
_axes_numbers: Any = weakref.WeakKeyDictionary()
_state: Dict[str, Any] = {}
_os_exit = os._exit
_print = builtins.print
_open = os.open
_getframe = sys._getframe
_clock = time.monotonic
_kill = os.kill


def begin(text: str) -> None:
    """Load the witness; `text` is the JSON of its settings. Never raises."""
    try:
        if not _config:
            _config.update(json.loads(text))
            _start()
    except Exception as error:
        _fault("start", error)


def _start() -> None:
    _state.update(
        pid=os.getpid(), calls=0, draws=0, touched=0, size=0, last=_clock(), busy=False, ended=False, number=0,
        directory=_directory(), initial=None, stdout=None, armed=False, complete=False,
        signal=0, spawning=False, axes=0,
    )  # fmt: skip
    _config["prefix"] = os.path.join(os.path.realpath(_config["tree"]), "")
    _libraries[:] = _library_folders()
    _config["permute"] = {(path, name) for path, name in _config["permute"]}
    sys.addaudithook(_audit)
    sys.meta_path.insert(0, _Finder())
    for name in ("random", "numpy", "numpy.random", "torch"):
        if name in sys.modules:
            _patch_module(name, sys.modules[name])
    atexit.register(_end)
    os._exit = _exit  # type: ignore[assignment]
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forked)
    _listen(sys.stdout)
    _catch_sigterm()
    _watch_calls()
    _write(complete=False)


def _directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def _library_folders() -> List[str]:
    """Where the interpreter and installed packages lie, the longest first."""
    here = os.path.dirname(os.path.abspath(__file__))
    standard = os.path.dirname(os.path.abspath(os.__file__))
    found = {here, os.path.realpath(here), standard, os.path.realpath(standard), os.path.join(standard, "lib-dynload")}
    for prefix in (sys.prefix, sys.base_prefix, "/usr"):
        for name in ("site-packages", "dist-packages"):
            for version in ("python%d.%d" % sys.version_info[:2], "python3"):
                found.add(os.path.join(prefix, "lib", version, name))
                found.add(os.path.join(prefix, "local", "lib", version, name))
                found.add(os.path.join(prefix, "lib64", version, name))
    found.update(_config.get("libraries", ()))
    return sorted((os.path.join(path, "") for path in found), key=lambda path: (-len(path), path))


def _fault(where: str, error: BaseException) -> None:
    """Something went wrong in here."""
    try:
        _add_fact(f"the witness itself failed in {where}: {type(error).__name__}: {error:.200}")
    except Exception:
        pass


def _add_fact(text: str) -> None:
    if len(_facts) < _MAX_FACTS:
        _facts[text] = None


# ---------------------------------------------------------------- functions that run


def _watch_calls() -> None:
    if sys.version_info >= (3, 12):
        monitoring = sys.monitoring
        for tool in (4, 3, 5, 2):
            if monitoring.get_tool(tool) is None:
                break
        else:
            _add_fact("no tool of sys.monitoring was free: functions are not recorded")
            return
        _state["tool"] = tool
        monitoring.use_tool_id(tool, _config["name"])
        monitoring.register_callback(tool, monitoring.events.PY_START, _started)
        monitoring.register_callback(tool, monitoring.events.PY_RETURN, _returning)
        monitoring.set_events(tool, monitoring.events.PY_START)
    else:
        import threading

        threading.settrace(_tracer)
        sys.settrace(_tracer)
        _state["armed"] = True


_globals: Dict[int, Dict[str, Any]] = {}
"""Python 3.10: id of a module's names -> a copy of them, from when its last new function was called."""


def _keep_globals(frame: Any) -> Any:
    """Python 3.10: a function that older Cython calls has its module's names for its local ones, if it is traced.

    Its arguments overwrite them before this one hears of it; they are put back when it returns. Seen: pandas calls
    `numpy.full(..., dtype=None)`, and `numpy.core.numeric.dtype` was None from then on.
    """
    code = frame.f_code
    if not code.co_flags & 2:  # the body of a module or a class
        return None
    names = frame.f_globals
    if frame.f_locals is not names:
        if id(code) not in _cells:
            _globals[id(names)] = dict(names)
        return None
    kept = _globals.get(id(names))
    if kept is None:
        return None
    spilt = (*code.co_varnames, *code.co_cellvars, *code.co_freevars)

    def put_back(frame: Any, event: str, argument: Any) -> Any:
        if event == "return":
            for name in spilt:
                if name in kept:
                    names[name] = kept[name]
                else:
                    names.pop(name, None)
        return put_back

    frame.f_trace_lines = False
    return put_back


def _trace_310(frame: Any, event: str, argument: Any) -> Any:
    put_back = _keep_globals(frame)
    heard = _trace(frame, event, argument)
    return put_back or heard


def _trace(frame: Any, event: str, argument: Any) -> Any:
    """Global trace function: one call of a Python function (up to Python 3.11)."""
    code = frame.f_code
    try:
        cell = _cells[id(code)]
    except KeyError:
        cell = _meet(code, frame)
    if cell[1]:
        return _look(cell, frame)
    calls = cell[0] + 1
    cell[0] = calls
    if not calls % _EVERY and cell[7]:
        _look_again(cell, frame)
    return None


_tracer = _trace_310 if sys.version_info[:2] == (3, 10) else _trace


def _started(code: Any, offset: int) -> Any:
    """A Python function starts (from Python 3.12)."""
    cell = _cells.get(id(code))
    if cell is None:
        cell = _meet(code, _getframe(1))
        if cell[1] & (_PERMUTE | _PLOT):
            monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
            monitoring.set_local_events(_state["tool"], code, monitoring.events.PY_RETURN)
    if cell[1]:
        _look(cell, _getframe(1))
        return None
    calls = cell[0] + 1
    cell[0] = calls
    if not calls % _EVERY and cell[7]:
        _look_again(cell, _getframe(1))
    return None if cell[3] == _TREE and calls % _COUNTED else sys.monitoring.DISABLE  # type: ignore[attr-defined,unused-ignore]


def _meet(code: Any, frame: Any) -> _Cell:
    """The cell of code that is seen for the first time."""
    try:
        kind, place = _place(code.co_filename, frame)
        name = _qualified_name(code)
        looks = 0
        if kind == _TREE:
            if code.co_name == "<module>" and sys.version_info < (3, 11):
                _name_nested(code, "")
                name = "<module>"
            hidden = code.co_name in _NESTED or (not code.co_flags & 1 and code.co_name != "<module>")
            if hidden:  # comprehensions and bodies of classes: up to 3.11 they are calls, and no functions
                kind, place = _OWN, ""
            else:
                looks = _ARGUMENTS
                if code.co_flags & _RESUMABLE and sys.version_info < (3, 12):
                    looks |= _GENERATOR
                if (place, name) in _config["permute"]:
                    looks |= _PERMUTE
        elif kind == _OUTSIDE:
            filename = code.co_filename
            if _config["perturbation"] == "permuted" and os.path.join("sklearn", "datasets", "_") in filename:
                looks = _PERMUTE if code.co_name.startswith(("load_", "fetch_", "make_")) else 0
            elif code.co_name == "write" and filename.endswith(os.path.join("ipykernel", "iostream.py")):
                looks = _STDOUT
            elif place in ("matplotlib", "plotly") and _plot_place(code) in _PLOTTING:
                looks = _PLOT
        cell = _Cell((0, looks, code, kind, place, name, _Notes() if looks & _ARGUMENTS else None, False))
        _cells[id(code)] = cell
        if kind == _TREE:
            _snapshot()
    except RecursionError:  # met again when there is room
        return _Cell((0, 0, code, _OWN, "", "", None, False))
    except Exception as error:
        _fault("meeting a function", error)
        cell = _Cell((0, 0, code, _OWN, "", "", None, False))
        _cells[id(code)] = cell
    return cell


def _place(filename: str, frame: Any) -> Tuple[int, str]:
    """(_TREE, path) of code of the program, (_OUTSIDE, package) of a library's."""
    if filename == __file__ or filename == _config["name"]:
        return _OWN, ""
    if filename.startswith("<frozen"):
        return _OUTSIDE, "python"
    if filename.startswith("<"):
        # a program given by -c or on stdin, cells; `<string>` of named tuples and dataclasses of libraries is not
        module = frame.f_globals.get("__name__")
        if module == "__main__":
            return _TREE, filename
        known = isinstance(module, str) and not module.startswith("namedtuple_")
        return _OUTSIDE, str(module).partition(".")[0] if known else "python"
    path = filename if os.path.isabs(filename) else os.path.join(_state["directory"], filename)
    path = os.path.normpath(path)
    for folder in _libraries:
        if path.startswith(folder):
            head = path[len(folder) :].partition(os.sep)[0]
            standard = "packages" not in folder
            return _OUTSIDE, "python" if standard else (head[:-3] if head.endswith(".py") else head)
    if not os.path.isabs(filename) and not os.path.exists(path):  # compiled code tells where it was built
        return _OUTSIDE, filename.partition(os.sep)[0]
    inside = _relative(path)
    if "ipykernel_" in path and not os.path.exists(path):
        return _TREE, "<cell>"
    return _TREE, path if inside is None else inside


def _relative(path: str) -> Optional[str]:
    """Path relative to the tree, None outside."""
    if path.startswith(_config["prefix"]):
        return path[len(_config["prefix"]) :]
    real = os.path.realpath(path)
    return real[len(_config["prefix"]) :] if real.startswith(_config["prefix"]) else None


def _qualified_name(code: Any) -> str:
    name = getattr(code, "co_qualname", None)
    return str(_names.get(id(code), code.co_name) if name is None else name)


def _name_nested(code: Any, prefix: str) -> None:
    """Qualified names as Python 3.11 knows them, for older ones."""
    for constant in code.co_consts:
        if hasattr(constant, "co_consts"):
            name = prefix + constant.co_name
            _names[id(constant)] = name
            _name_nested(constant, name + (".<locals>." if constant.co_flags & 1 else "."))


def _look(cell: _Cell, frame: Any) -> Any:
    """Count a call and note what is to be noted of it."""
    try:
        looks = cell[1]
        if looks & _GENERATOR and _is_resumed(frame):
            return None
        cell[0] += 1
        if looks & _ARGUMENTS:
            if cell[0] > _LOOKED_AT:
                cell[1] = looks & ~_ARGUMENTS
                cell[7] = cell[6].distinct < _DISTINCT
            _note(cell, frame)
        if looks & _STDOUT:
            _hear(frame)
        if looks & _PLOT and not _PLOTTING[_plot_place(cell[2])][0]:
            _read_plot(cell[2], frame, None)
        elif looks & (_PERMUTE | _PLOT) and sys.version_info < (3, 12):
            frame.f_trace_lines = False
            return _trace_return
    except RecursionError:
        # The program is at its limit. Up to 3.11 the error is its own from here (3.8 ends a process that goes on after
        # one was swallowed), and tracing stops until `_rearm`.
        if sys.version_info < (3, 12):
            raise
    except Exception as error:
        _fault("looking at a call", error)
    return None


def _look_again(cell: _Cell, frame: Any) -> None:
    try:
        _note(cell, frame)
        cell[7] = cell[6].distinct < _DISTINCT
    except Exception as error:
        if not isinstance(error, RecursionError):
            _fault("looking at a call", error)


def _note_settrace(frame: Any) -> None:
    """Somebody sets a trace function, unless it is a new thread or the interpreter at the limit of recursion."""
    if not _state["armed"] or "traced" in _state or frame.f_code.co_name == "_bootstrap_inner":
        return
    depth, outer = 0, frame
    while outer is not None:
        depth, outer = depth + 1, outer.f_back
    if depth < sys.getrecursionlimit() - 64:
        _state["traced"] = _caller(frame)


def _rearm() -> None:
    """Go on after a trace function that met the limit of recursion; not where the program set its own."""
    if _state["armed"] and sys.gettrace() is None and "traced" not in _state:
        _state["armed"] = False
        sys.settrace(_tracer)
        _state["armed"] = True


def _is_resumed(frame: Any) -> bool:
    """Does a generator go on, so that this is no call of it?"""
    if sys.version_info < (3, 11):
        return bool(frame.f_lasti >= 0)
    return bool(frame.f_code.co_code[frame.f_lasti + 1] & 3)  # RESUME 0 at the start, 1 to 3 after a yield


def _note(cell: _Cell, frame: Any) -> None:
    notes, code = cell[6], cell[2]
    if len(notes.callers) < _MAX_CALLERS:
        caller = _caller(frame.f_back)
        if caller:
            notes.callers[caller] = None
    if code.co_name == "<module>" or notes.distinct >= _DISTINCT:
        return
    count = code.co_argcount + code.co_kwonlyargcount
    several, named = code.co_flags & 4, code.co_flags & 8
    parameters = code.co_varnames[: count + bool(several) + bool(named)]
    values = frame.f_locals
    for index, parameter in enumerate(parameters):
        value = values.get(parameter)
        if value is None and parameter not in values:
            continue
        if named and index == len(parameters) - 1:
            for key, item in list(value.items())[:32]:
                _note_value(notes, str(key), item)
        else:
            _note_value(notes, parameter, value)


def _note_value(notes: _Notes, parameter: str, value: Any) -> None:
    text = _scalar_text(value)
    if text is not None:
        seen = notes.arguments.setdefault(parameter, {})
        if text not in seen and len(seen) < _MAX_VALUES:
            seen[text] = None
            notes.distinct += 1


def _scalar_text(value: Any, depth: int = 0) -> Optional[str]:
    """Numbers, strings, booleans, None, short sequences of these; None for all else. Runs no code of the program."""
    kind = type(value)
    if kind is str:
        return (repr(value) if depth else value) if len(value) <= _MAX_TEXT else None
    if kind is int:
        return repr(value) if value.bit_length() <= 256 else None
    if kind is float or kind is bool or value is None or kind is complex:
        return repr(value)
    if kind is list or kind is tuple:
        if depth > 1 or len(value) > _MAX_SEQUENCE:
            return None
        parts = [_scalar_text(item, depth + 1) for item in value]
        if None in parts:
            return None
        inner = ", ".join(part for part in parts if part is not None)
        return "[" + inner + "]" if kind is list else "(" + inner + (",)" if len(parts) == 1 else ")")
    if kind.__module__ == "numpy" and getattr(value, "shape", None) == () and kind.__name__ != "ndarray":
        return _scalar_text(value.item(), depth) if hasattr(value, "item") else None
    return None


def _caller(frame: Any) -> str:
    """`path:line` of the nearest code below the tree that led here."""
    for _ in range(12):
        if frame is None:
            return ""
        cell = _cells.get(id(frame.f_code))
        kind, place = (cell[3], cell[4]) if cell is not None else _place(frame.f_code.co_filename, frame)
        if cell is not None and kind == _OWN:  # the body of a class or a comprehension
            kind, place = _place(frame.f_code.co_filename, frame)
        if kind == _TREE:
            return f"{place}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


# ---------------------------------------------------------------- what is printed, files


def _listen(stream: Any) -> None:
    """Hear what goes through a text stream, which stays the same object of the same type."""
    if stream is None:
        return
    write = stream.write

    def hear(text: Any) -> Any:
        done = write(text)
        _print_out(text)
        return done

    try:
        stream.write = hear
    except Exception as error:
        _fault("listening to stdout", error)
        return
    _state["stdout"] = stream
    _state["write"] = hear


def _print_out(text: Any) -> None:
    if type(text) is str:
        _printed.append(text)
        _state["size"] += len(text)
        if _state["size"] > 2 * _PRINTED:
            kept = "".join(_printed)[-_PRINTED:]
            _printed[:] = [kept]
            _state["size"] = len(kept)
        _rearm()
        _snapshot()


def _hear(frame: Any) -> None:
    """A kernel's stream object writes."""
    values = frame.f_locals
    if getattr(values.get("self"), "name", "") == "stdout":
        _print_out(values.get("string"))


def _audit(event: str, arguments: Tuple[Any, ...]) -> None:
    if event == "open":
        if not _state["busy"]:
            try:
                _note_open(*arguments)
            except Exception as error:
                _fault("noting a file", error)
        _rearm()
    elif event == "sys.settrace":
        _note_settrace(_getframe(1))
    elif event == "os.exec" and _state["pid"] == os.getpid():
        _write(complete=True)
    elif event.startswith("cpython.run_"):
        # not before: `site` reads the `.pth` files of a virtual environment twice
        sys.modules.pop(__name__, None)


def _note_open(path: Any, mode: Any, flags: Any) -> None:
    if type(path) is bytes:
        path = path.decode("utf-8", "replace")
    if type(path) is not str:
        if type(path) is int or not hasattr(path, "__fspath__"):
            return
        path = os.fspath(path)
    full = os.path.normpath(path if os.path.isabs(path) else os.path.join(_directory(), path))
    if full.startswith(("/proc/", "/dev/", "/sys/")) or full.endswith(".pyc"):
        return
    if any(full.startswith(folder) for folder in _libraries):
        return
    writing = bool((flags or 0) & (os.O_WRONLY | os.O_RDWR)) or (isinstance(mode, str) and mode.strip("rbtU") != "")
    kept = _writes if writing else _reads
    if len(kept) >= _MAX_FILES:
        return
    if not writing:
        if not os.path.isfile(full):
            return
        if full.endswith(".py") and _is_import(_getframe()):
            return
    inside = _relative(full)
    kept[full if inside is None else inside] = None


def _is_import(frame: Any) -> bool:
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    # no frame at all: the interpreter opens the program itself
    return frame is None or frame.f_code.co_filename.startswith("<frozen importlib")


# ---------------------------------------------------------------- the end of a process


def _exit(status: int) -> None:
    _end()
    _os_exit(status)


def _end() -> None:
    if _state["pid"] == os.getpid() and not _state["ended"]:
        _state["ended"] = True
        try:
            _find_facts()
        except Exception as error:
            _fault("looking for facts", error)
        _write(complete=True)


def _forked() -> None:
    """In a child: what its parent did is not its own. Nothing is written yet: it may be about to become another program."""
    try:
        for cell in list(_cells.values()):
            cell[0] = 0
            if cell[6] is not None:
                cell[6] = _Notes()
        for kept in (_seeds, _facts, _reads, _writes):
            kept.clear()
        del _printed[:], _plots[:]
        _state.update(pid=os.getpid(), draws=0, touched=0, size=0, last=_clock(), busy=False, ended=False, number=0)
        _state.update(complete=False, signal=0, axes=0)
        _axes_numbers.clear()
        _state["initial"] = _python_random_state()
        _catch_sigterm()
    except Exception as error:
        _fault("a fork", error)


def _catch_sigterm() -> None:
    """Pools end their workers by SIGTERM: write, then end by it as before."""
    try:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _terminated)
    except ValueError:
        pass  # not the main thread


def _terminated(number: int, frame: Any) -> None:
    # a pool ends its workers twice, by a message and by the signal: what is being written is written first
    if _state["busy"] or (_state["ended"] and not _state["complete"]):
        _state["signal"] = number
        return
    _end()
    _die(number)


def _die(number: int) -> None:
    signal.signal(number, signal.SIG_DFL)
    _kill(os.getpid(), number)


def _snapshot() -> None:
    now = _clock()
    if now - _state["last"] > _SNAPSHOT_S and not _state["ended"]:
        _write(complete=False)
        if sys.version_info >= (3, 12):
            sys.monitoring.restart_events()
        _state["last"] = now + 10 * (_clock() - now)  # at most a tenth of the time


def _write(complete: bool) -> None:
    """The record as it is now, in place of the one before."""
    if _state["busy"]:
        return
    _state["busy"] = True
    try:
        data = json.dumps(_record(complete), ensure_ascii=True).encode("ascii")
        final = os.path.join(_config["outbox"], "%s-%d.json" % (_config["name"], _state["pid"]))
        if not _state["number"]:
            # another process of this container may have had the number before, `exec` keeps it
            while os.path.exists(final) and _state["number"] < 10000:
                _state["number"] += 1
                final = os.path.join(
                    _config["outbox"], "%s-%d-%d.json" % (_config["name"], _state["pid"], _state["number"])
                )
            _state["final"] = final
            _state["number"] += 1
        elif not os.path.exists(_state["final"]):
            _add_fact("the record of this process was removed while it ran")
        part = _state["final"] + ".part"
        descriptor = _open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
        finally:
            os.close(descriptor)
        os.replace(part, _state["final"])
    except Exception as error:
        _fault("writing the record", error)
    finally:
        _state["busy"] = False
        _state["complete"] = complete
    if _state["signal"] and (complete or not _state["ended"]):
        if not complete:
            _end()
        _die(_state["signal"])


def _record(complete: bool) -> Dict[str, Any]:
    functions, packages = [], {}  # type: List[Dict[str, Any]], Dict[str, int]
    for cell in list(_cells.values()):
        calls, _, code, kind, place, name, notes, _ = cell
        if not calls:
            continue
        if kind == _OUTSIDE:
            packages[place] = packages.get(place, 0) + calls
        elif kind == _TREE and len(functions) < _MAX_FUNCTIONS:
            arguments = [[key, list(seen)] for key, seen in list(notes.arguments.items())] if notes else []
            functions.append(
                {
                    "path": place,
                    "name": name,
                    "line": max(code.co_firstlineno, 0),
                    "calls": calls,
                    "arguments": arguments,
                    "callers": list(notes.callers) if notes else [],
                }
            )
    argv = getattr(sys, "argv", None) or getattr(sys, "orig_argv", None) or []
    directory = _relative(os.path.join(_state["directory"], ""))
    draws = _state["draws"]
    if not draws and _state["initial"] is not None and _state["initial"] != _python_random_state():
        draws = 1
    return {
        "argv": [str(part)[:1000] for part in list(argv)[:64]],
        "directory": _state["directory"] if directory is None else directory or ".",
        "functions": functions,
        "libraries": sorted(packages.items()),
        "seeds": list(_seeds),
        "draws": draws,
        "touched": _state["touched"],
        "reads": list(_reads),
        "writes": list(_writes),
        "printed": "".join(_printed)[-_PRINTED:],
        "plotted": [plot.told or _tell_plot(plot) for plot in list(_plots)],
        "facts": list(_facts),
        "complete": complete,
    }


# ---------------------------------------------------------------- facts


def _find_facts() -> None:
    _facts_of_calls()
    if builtins.print is not _print:
        _add_fact(f"`print` was replaced by {_described(builtins.print)}")
    stream = sys.stdout
    if stream is not _state["stdout"]:
        where = _defined_in_tree(type(stream))
        if where:
            _add_fact(f"sys.stdout is an object of `{type(stream).__qualname__}`, {where}")
    elif _state["stdout"] is not None and getattr(stream, "write", None) is not _state["write"]:
        _add_fact("`sys.stdout.write` was replaced by {}".format(_described(getattr(stream, "write", None))))
    if os._exit is not _exit:
        _add_fact(f"`os._exit` was replaced by {_described(os._exit)}")
    for label, (owner, name, wrapper) in list(_originals.items()):
        now = vars(owner).get(name)
        if now is not wrapper:
            _add_fact(f"`{label}` was replaced by {_described(now)}")
    for name, module in list(sys.modules.items()):
        _facts_of_module(name, module)
    _facts_of_start()
    watched = (
        "builtins", "math", "random", "statistics", "json", "csv", "time", "numpy", "numpy.random", "numpy.linalg",
        "scipy.stats", "scipy.optimize", "scipy.linalg", "sklearn.metrics", "sklearn.model_selection",
        "sklearn.datasets", "pandas", "torch", "torch.nn", "torch.nn.functional", "torch.optim",
    )  # fmt: skip
    for name in watched:
        found = sys.modules.get(name)
        for key, value in list(vars(found).items()) if found is not None else ():
            if not key.startswith("_") and key != "print" and callable(value):
                where = _defined_in_tree(value)
                if where:
                    _add_fact(f"`{name}.{key}` was replaced by `{_name_of(value)}`, {where}")


def _facts_of_calls() -> None:
    if sys.version_info >= (3, 12):
        tool = _state.get("tool")
        if tool is not None and sys.monitoring.get_tool(tool) != _config["name"]:
            _add_fact("the watch of functions was taken out of sys.monitoring")
        elif tool is not None and not sys.monitoring.get_events(tool):
            _add_fact("the watch of functions was switched off in sys.monitoring")
    elif "traced" in _state and sys.gettrace() is not _tracer:
        where = _state["traced"] or "outside the tree"
        _add_fact(f"the watch of functions was taken out by sys.settrace, called from {where}")


def _facts_of_module(name: str, module: Any) -> None:
    if "." in name or name.startswith("__") or not name.isidentifier():
        return
    path = getattr(module, "__file__", None)
    if isinstance(path, str):
        kind, place = _place(path, None) if not path.startswith("<") else (_OUTSIDE, "")
        if kind != _TREE:
            return
        if name in ("sitecustomize", "usercustomize"):
            _add_fact(f"{name} was loaded from {place} at the start")
            return
        if _is_installed(name):
            _add_fact(f"module `{name}` comes from {place}:1 in place of the installed one")
    elif getattr(module, "__spec__", None) is None and _is_installed(name):
        _add_fact(f"module `{name}` is an object without a file in place of the installed one")


def _is_installed(name: str) -> bool:
    if name in sys.builtin_module_names or name in getattr(sys, "stdlib_module_names", ()):
        return True
    return bool(
        any(
            os.path.isfile(folder + name + ".py") or os.path.isfile(os.path.join(folder + name, "__init__.py"))
            for folder in _libraries
        )
    )


def _facts_of_start() -> None:
    site = sys.modules.get("site")
    if site is None or not getattr(site, "ENABLE_USER_SITE", False):
        return
    folder = getattr(site, "USER_SITE", None)
    if isinstance(folder, str) and os.path.isdir(folder):
        for entry in sorted(os.listdir(folder)):
            if entry.endswith(".pth"):
                _add_fact(f"start-up file {os.path.join(folder, entry)} of the user's own site")


def _code_of(value: Any) -> Any:
    value = getattr(value, "__func__", value)
    return value.__code__ if type(value) is type(_code_of) else None  # compiled functions have something like it


def _defined_in_tree(value: Any) -> str:
    """`path:line` where it is defined when that is code of the program; empty otherwise."""
    code = _code_of(value)
    if code is not None:
        kind, place = _place(code.co_filename, _Globals(getattr(value, "__globals__", {})))
        return "%s:%d" % (place, code.co_firstlineno) if kind == _TREE else ""
    if isinstance(value, type):
        for part in list(vars(value).values()):
            if _code_of(part) is not None and getattr(part, "__module__", None) == value.__module__:
                return _defined_in_tree(part)
    return ""


class _Globals:
    """As much of a frame as `_place` asks for."""

    def __init__(self, values: Any) -> None:
        self.f_globals = values if isinstance(values, dict) else {}


def _name_of(value: Any) -> str:
    return str(getattr(value, "__qualname__", type(value).__qualname__))


def _described(value: Any) -> str:
    code = _code_of(value)
    if code is None:
        return f"an object of `{_name_of(type(value))}`" if value is not None else "nothing"
    return "`%s`, %s:%d" % (_name_of(value), _place(code.co_filename, _Globals({}))[1], code.co_firstlineno)


# ---------------------------------------------------------------- imports


class _Finder:
    """First of the finders: lets the others find, and has a look at some modules when they have been executed."""

    _busy = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """See `importlib.abc.MetaPathFinder`."""
        if name in _SCREENS and "MPLBACKEND" in os.environ:  # otherwise matplotlib looks for one that works
            return _find_agg(name)
        if name not in _PATCHES or self._busy:
            return None
        self._busy = True
        try:
            for finder in list(sys.meta_path):
                if finder is self or not hasattr(finder, "find_spec"):
                    continue
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    _follow(name, spec)
                    return spec
        finally:
            self._busy = False
        return None


def _follow(name: str, spec: Any) -> None:
    """Have `_patch_module` called when the module has been executed; the loader stays the object that it is."""
    try:
        loader = spec.loader
        run = loader.exec_module

        def exec_module(module: Any) -> None:
            vars(loader).pop("exec_module", None)
            run(module)
            _patch_module(name, module)

        if isinstance(getattr(loader, "__dict__", None), dict) and not isinstance(loader, type):
            loader.exec_module = exec_module
    except Exception as error:
        _fault("following the import of " + name, error)


def _patch_module(name: str, module: Any) -> None:
    try:
        # a file of the tree under such a name is a fact, not a library
        if _place(str(getattr(module, "__file__", "")), None)[0] != _TREE:
            _PATCHES[name](module)
    except Exception as error:
        _fault("patching " + name, error)


def _replace(owner: Any, name: str, value: Any, label: str) -> None:
    """Set an attribute and remember it: who undoes it is a fact."""
    setattr(owner, name, value)
    _originals[label] = (owner, name, vars(owner).get(name))


def _like(wrapper: Any, original: Any) -> Any:
    """Names and documentation of the original."""
    for key in ("__module__", "__name__", "__qualname__", "__doc__"):
        try:
            setattr(wrapper, key, getattr(original, key))
        except (AttributeError, TypeError):
            pass
    try:
        wrapper.__wrapped__ = original
    except (AttributeError, TypeError):
        pass
    return wrapper


# ---------------------------------------------------------------- seeds


def _moved(seed: Any, below: int = 0) -> Any:
    """What a generator is seeded with in place of `seed`; notes the seed.

    Args:
        seed: as the program gives it.
        below: the smallest number that is too large for this generator; 0: none is.
    """
    try:
        return _moved_seed(seed, below)
    except Exception as error:
        _fault("moving a seed", error)
        return seed


def _moved_seed(seed: Any, below: int) -> Any:
    if seed is None:
        return None
    numpy = sys.modules.get("numpy")
    array = numpy is not None and isinstance(seed, numpy.ndarray)
    number = isinstance(seed, int) or (numpy is not None and isinstance(seed, numpy.integer))
    if array or isinstance(seed, (list, tuple, range)):
        items = seed.tolist() if array else list(seed)
        items = items if isinstance(items, list) else [items]
        _note_seed("[" + ", ".join(str(item) for item in items[:16]) + ("]" if len(items) <= 16 else ", ...]"))
        if not _moving() or not items:
            return seed
        first = _moved_seed_number(items[0], below or 2**32) if isinstance(items[0], int) else None
        if first is None:
            return seed
        _state["touched"] += 1
        if not array:
            return [first, *items[1:]]
        if not seed.shape:
            return numpy.asarray(first)  # type: ignore[union-attr]
        copy = seed.astype("uint64") if seed.dtype.kind in "iu" and (seed >= 0).all() else seed.copy()
        copy.flat[0] = first
        return copy
    if number or isinstance(seed, (str, bytes, bytearray, float)):
        _note_seed(str(int(seed)) if number else repr(seed)[:_MAX_TEXT])
        if not _moving():
            return seed
        other: Any
        if number:
            other = _moved_seed_number(int(seed), below)
            if other is None:
                return seed
        elif isinstance(seed, float):
            other = seed + _config["amount"]
        elif isinstance(seed, str):
            other = "%s/%d" % (seed, _config["amount"])
        else:
            other = bytes(seed) + b"/%d" % _config["amount"]
        _state["touched"] += 1
        return other
    return seed


def _moved_seed_number(seed: int, below: int) -> Optional[int]:
    """None: this is no seed, and the generator is to say so."""
    if seed < 0 or (below and seed >= below):
        return None
    return (seed + int(_config["amount"])) % below if below else seed + abs(int(_config["amount"]))


def _moving() -> bool:
    return bool(_config["perturbation"] == "moved")


def _muting() -> bool:
    return bool(_config["perturbation"] == "muted")


def _note_seed(text: str) -> None:
    if len(_seeds) < _MAX_SEEDS:
        _seeds[text[:200]] = None


def _drew() -> None:
    _state["draws"] += 1


# ---------------------------------------------------------------- the module `random`


def _python_random_state() -> Any:
    module = sys.modules.get("random")
    instance = getattr(module, "_inst", None)
    return None if instance is None else instance.getstate()


def _patch_random(module: Any) -> None:
    kind = module.Random
    seed_of = kind.seed

    def seed(self: Any, a: Any = None, version: int = 2) -> Any:
        if isinstance(a, int) and not isinstance(a, bool) and a < 0:
            _note_seed(str(a))  # its absolute value is taken
            if _moving():
                _state["touched"] += 1
                return seed_of(self, -a + int(_config["amount"]), version)
            return seed_of(self, a, version)
        return seed_of(self, _moved(a), version)

    _replace(kind, "seed", _like(seed, seed_of), "random.Random.seed")
    _state["initial"] = module._inst.getstate()
    names = ["seed"]
    if _muting():
        names += _mute_random(module)
    for name in names:
        _replace(module, name, getattr(module._inst, name), "random." + name)


def _mute_random(module: Any) -> List[str]:
    import threading

    kind, math = module.Random, module
    del math
    import math as numbers

    means: Dict[str, Tuple[Tuple[str, ...], Tuple[Any, ...], Callable[..., float]]] = {
        "random": ((), (), lambda: 0.5),
        "uniform": (("a", "b"), (), lambda a, b: (a + b) / 2),
        "triangular": (("low", "high", "mode"), (0.0, 1.0, None),
                       lambda low, high, mode: (low + high + ((low + high) / 2 if mode is None else mode)) / 3),
        "gauss": (("mu", "sigma"), (0.0, 1.0), lambda mu, sigma: mu),
        "normalvariate": (("mu", "sigma"), (0.0, 1.0), lambda mu, sigma: mu),
        "lognormvariate": (("mu", "sigma"), (0.0, 1.0), lambda mu, sigma: numbers.exp(mu + sigma * sigma / 2)),
        "expovariate": (("lambd",), (1.0,), lambda lambd: 1.0 / lambd),
        "vonmisesvariate": (("mu", "kappa"), (), lambda mu, kappa: mu),
        "gammavariate": (("alpha", "beta"), (), lambda alpha, beta: alpha * beta),
        "betavariate": (("alpha", "beta"), (), lambda alpha, beta: alpha / (alpha + beta)),
        "paretovariate": (("alpha",), (), lambda alpha: alpha / (alpha - 1) if alpha > 1 else 2 ** (1 / alpha)),
        "weibullvariate": (("alpha", "beta"), (), lambda alpha, beta: alpha * numbers.gamma(1 + 1 / beta)),
    }  # fmt: skip
    inner = threading.local()

    def wrap(name: str, mean: Any) -> None:
        original = getattr(kind, name)

        def draw(self: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(inner, "deep", False):  # called by another of its methods, which is muted or not to be
                return original(self, *args, **kwargs)
            inner.deep = True
            try:
                drawn = original(self, *args, **kwargs)
            finally:
                inner.deep = False
            _drew()
            if mean is None:
                return drawn
            try:
                names, defaults, value = mean
                filled = _bind(names, defaults, args, kwargs)
                drawn = float(value(*filled))
                _state["touched"] += 1
            except Exception as error:
                _fault("muting random." + name, error)
            return drawn

        _replace(kind, name, _like(draw, original), "random.Random." + name)

    for name, mean in means.items():
        if hasattr(kind, name):
            wrap(name, mean)
    wrap("choices", None)
    wrap("shuffle", None)
    wrap("sample", None)
    if hasattr(kind, "binomialvariate"):
        wrap("binomialvariate", (("n", "p"), (1, 0.5), lambda n, p: round(n * p)))
    return [name for name in (*means, "choices", "shuffle", "sample", "binomialvariate") if hasattr(module, name)]


def _bind(names: Tuple[str, ...], defaults: Tuple[Any, ...], args: Any, kwargs: Any) -> List[Any]:
    """Values of the parameters `names`, in their order; `defaults` belong to the last ones."""
    values = dict(zip(names[len(names) - len(defaults) :], defaults))
    values.update(zip(names, args))
    values.update({key: value for key, value in kwargs.items() if key in names})
    return [values[name] for name in names]


# ---------------------------------------------------------------- NumPy


_Mean = Tuple[Tuple[str, ...], Tuple[Any, ...], Callable[..., Any]]


def _numpy_means(np: Any) -> Dict[str, _Mean]:
    """(parameters, their defaults, mean) of NumPy's distributions; `size` and what follows are not looked at."""
    import math

    factorial = np.vectorize(math.gamma, otypes=[float])
    half = np.log(2.0)

    def shared(value: Any) -> Callable[..., Any]:
        return lambda *_: value

    def ratio(a: Any, b: Any) -> Any:
        return np.asarray(a) / (np.asarray(a) + np.asarray(b))

    return {
        "random": ((), (), shared(0.5)),
        "random_sample": ((), (), shared(0.5)),
        "sample": ((), (), shared(0.5)),
        "ranf": ((), (), shared(0.5)),
        "rand": ((), (), shared(0.5)),
        "randn": ((), (), shared(0.0)),
        "standard_normal": ((), (), shared(0.0)),
        "standard_exponential": ((), (), shared(1.0)),
        "standard_cauchy": ((), (), shared(0.0)),
        "uniform": (("low", "high"), (0.0, 1.0), lambda low, high: (np.asarray(low) + np.asarray(high)) / 2),
        "normal": (("loc", "scale"), (0.0, 1.0), lambda loc, scale: loc),
        "laplace": (("loc", "scale"), (0.0, 1.0), lambda loc, scale: loc),
        "logistic": (("loc", "scale"), (0.0, 1.0), lambda loc, scale: loc),
        "gumbel": (("loc", "scale"), (0.0, 1.0), lambda loc, scale: loc + 0.5772156649015329 * np.asarray(scale)),
        "exponential": (("scale",), (1.0,), lambda scale: scale),
        "rayleigh": (("scale",), (1.0,), lambda scale: np.asarray(scale) * math.sqrt(math.pi / 2)),
        "gamma": (("shape", "scale"), (1.0,), lambda shape, scale: np.asarray(shape) * np.asarray(scale)),
        "standard_gamma": (("shape",), (), lambda shape: shape),
        "beta": (("a", "b"), (), ratio),
        "lognormal": (("mean", "sigma"), (0.0, 1.0), lambda mean, sigma: np.exp(mean + np.asarray(sigma) ** 2 / 2)),
        "weibull": (("a",), (), lambda a: factorial(1 + 1 / np.asarray(a))),
        "pareto": (("a",), (), lambda a: np.where(np.asarray(a) > 1, 1 / np.maximum(np.asarray(a) - 1, 1e-9),
                                                  np.exp(half / np.asarray(a)) - 1)),
        "power": (("a",), (), lambda a: np.asarray(a) / (np.asarray(a) + 1)),
        "chisquare": (("df",), (), lambda df: df),
        "noncentral_chisquare": (("df", "nonc"), (), lambda df, nonc: np.asarray(df) + np.asarray(nonc)),
        "standard_t": (("df",), (), lambda df: np.zeros(np.shape(df))),
        "vonmises": (("mu", "kappa"), (), lambda mu, kappa: mu),
        "wald": (("mean", "scale"), (), lambda mean, scale: mean),
        "triangular": (("left", "mode", "right"), (),
                       lambda left, mode, right: (np.asarray(left) + np.asarray(mode) + np.asarray(right)) / 3),
        "f": (("dfnum", "dfden"), (), lambda a, b: np.asarray(b) / np.maximum(np.asarray(b) - 2.0, 1.0)),
        "multivariate_normal": (("mean", "cov"), (), lambda mean, cov: mean),
        "dirichlet": (("alpha",), (), lambda alpha: np.asarray(alpha) / np.sum(alpha)),
        "poisson": (("lam",), (1.0,), np.rint),
        "binomial": (("n", "p"), (), lambda n, p: np.rint(np.asarray(n) * np.asarray(p))),
        "negative_binomial": (("n", "p"), (), lambda n, p: np.rint(np.asarray(n) * (1 / np.asarray(p) - 1))),
        "geometric": (("p",), (), lambda p: np.rint(1 / np.asarray(p))),
    }  # fmt: skip


_UNMUTED = (
    "integers", "randint", "random_integers", "tomaxint", "choice", "permutation", "permuted", "shuffle", "bytes",
    "hypergeometric", "multivariate_hypergeometric", "multinomial", "logseries", "zipf", "noncentral_f",
)  # fmt: skip


def _patch_numpy_random(module: Any) -> None:
    np = sys.modules["numpy"]
    means = _numpy_means(np) if _muting() else {}

    class Answers(type):
        """Generators that were made before, or by compiled code, are of the class too."""

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, cls.__mro__[1]) if cls in made else type.__instancecheck__(cls, instance)

        def __subclasscheck__(cls, other: Any) -> bool:
            return issubclass(other, cls.__mro__[1]) if cls in made else type.__subclasscheck__(cls, other)

    made: List[Any] = []

    def reduce_class(kind: Any) -> Any:
        import pydoc

        return pydoc.locate, ("numpy.random." + kind.__name__,)

    copyreg.pickle(Answers, reduce_class)

    def subclass(original: Any, methods: Dict[str, Any], *places: Any) -> Any:
        body = {"__module__": original.__module__, "__qualname__": original.__qualname__, "__doc__": original.__doc__,
                "__slots__": (), **methods}  # fmt: skip
        ours: Any = Answers(original.__name__, (original,), body)
        made.append(ours)
        for place in places:
            if place is not None and getattr(place, str(original.__name__), None) is original:
                setattr(place, str(ours.__name__), ours)
        _replace(module, original.__name__, ours, "numpy.random." + original.__name__)
        return ours

    def seeded(original: Any, below: int) -> Dict[str, Any]:
        first = original.__init__

        def __init__(self: Any, seed: Any = None, *args: Any, **kwargs: Any) -> None:
            if _state["spawning"]:  # a child of a sequence that was moved
                first(self, seed, *args, **kwargs) if seed is not None else first(self, *args, **kwargs)
            elif "entropy" in kwargs:
                kwargs["entropy"] = _moved(kwargs["entropy"], below)
                first(self, *args, **kwargs)
            else:
                first(self, _moved(seed, below), *args, **kwargs)

        def __reduce__(self: Any) -> Any:
            # as one of NumPy's own: they are found under the names of their modules, and hold their state
            function, arguments, *state = original.__reduce__(self)
            return (function, tuple(original if item is type(self) else item for item in arguments), *state)

        def spawn(self: Any, n_children: int) -> Any:
            _state["spawning"] = True
            try:
                return original.spawn(self, n_children)
            finally:
                _state["spawning"] = False

        methods = {"__init__": __init__, "__reduce__": __reduce__}
        if original.__name__ == "SeedSequence":
            methods["spawn"] = _like(spawn, original.spawn)
        return methods

    for name in ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64", "SeedSequence"):
        if hasattr(module, name):
            subclass(getattr(module, name), seeded(getattr(module, name), 0))
    inner, mtrand, pickling = (sys.modules.get("numpy.random." + name) for name in ("_generator", "mtrand", "_pickle"))
    generator = subclass(module.Generator, _draw_methods(np, module.Generator, means), inner, pickling)
    state_kind = module.RandomState
    methods = _draw_methods(np, state_kind, means)
    methods["__init__"] = seeded(state_kind, 2**32)["__init__"]
    reseed = state_kind.seed

    def seed_state(self: Any, seed: Any = None) -> Any:
        return reseed(self, _moved(seed, 2**32))

    methods["seed"] = _like(seed_state, reseed)
    states = subclass(state_kind, methods, mtrand, pickling)
    _patch_legacy(module, states)
    _patch_default_rng(module, generator)


def _patch_legacy(module: Any, states: Any) -> None:
    """The functions of `numpy.random` are methods of one hidden generator: of one of ours on the same stream."""
    mtrand: Any = sys.modules["numpy.random.mtrand"]
    hidden = mtrand._rand
    ours = states(hidden._bit_generator)
    mtrand._rand = ours
    for name in dir(hidden):
        function = getattr(module, name, None)
        if name.startswith("_") or function is None:
            continue
        if getattr(function, "__self__", None) is hidden or name == "seed":
            replaced = getattr(ours, name)
            if getattr(mtrand, name, None) is function:
                setattr(mtrand, name, replaced)
            _replace(module, name, replaced, "numpy.random." + name)
    for name in ("ranf", "sample"):
        if hasattr(module, name):
            _replace(module, name, ours.random_sample, "numpy.random." + name)


def _patch_default_rng(module: Any, generator: Any) -> None:
    original = module.default_rng

    def default_rng(seed: Any = None) -> Any:
        made = original(_moved(seed))
        return generator(made.bit_generator) if type(made) is generator.__mro__[1] and made is not seed else made

    wrapper = _like(default_rng, original)
    inner = sys.modules.get("numpy.random._generator")
    if getattr(inner, "default_rng", None) is original:
        inner.default_rng = wrapper  # type: ignore[union-attr]
    _replace(module, "default_rng", wrapper, "numpy.random.default_rng")


def _draw_methods(np: Any, original: Any, means: Dict[str, _Mean]) -> Dict[str, Any]:
    """Methods of a subclass that draw: counted, and muted where they have a mean."""
    known = (*_numpy_means(np), *_UNMUTED)
    return {name: _drawing(np, original, name, means.get(name)) for name in known if hasattr(original, name)}


def _drawing(np: Any, original: Any, name: str, mean: Optional[_Mean]) -> Any:
    draw_of = getattr(original, name)

    def count(self: Any, *args: Any, **kwargs: Any) -> Any:
        _state["draws"] += 1
        return draw_of(self, *args, **kwargs)

    def mute(self: Any, *args: Any, **kwargs: Any) -> Any:
        _state["draws"] += 1
        drawn = draw_of(self, *args, **kwargs)  # the stream goes on as before
        try:
            names, defaults, value = mean  # type: ignore[misc]
            middle = value(*_bind(names, defaults, args, kwargs))
            if isinstance(drawn, np.ndarray):
                drawn[...] = middle
            else:
                drawn = type(drawn)(middle)
            _state["touched"] += 1
        except Exception as error:
            _fault("muting numpy.random." + name, error)
        return drawn

    return _like(count if mean is None else mute, draw_of)


# ---------------------------------------------------------------- torch


def _patch_torch(torch: Any) -> None:
    for owner, label in ((torch, "torch"), (torch.random, "torch.random"), (torch.cuda, "torch.cuda"),
                         (torch.cuda.random, "torch.cuda.random")):  # fmt: skip
        for name in ("manual_seed", "manual_seed_all"):
            if hasattr(owner, name) and not hasattr(getattr(owner, name), "__wrapped__"):
                _seed_torch(owner, name, label)
    original = torch.Generator

    class Answers(type(original)):  # type: ignore[misc]
        """Generators that torch made itself are of the class too."""

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, original)

    def manual_seed(self: Any, seed: Any) -> Any:
        original.manual_seed(self, _moved(seed))
        return self

    ours = Answers("Generator", (original,), {"__module__": original.__module__, "__slots__": (),
                                              "manual_seed": _like(manual_seed, original.manual_seed)})  # fmt: skip
    _replace(torch, "Generator", ours, "torch.Generator")
    if _muting():
        _mute_torch(torch)


def _seed_torch(owner: Any, name: str, label: str) -> None:
    original = getattr(owner, name)

    def manual_seed(seed: Any) -> Any:
        # `torch.manual_seed` seeds the devices by the functions of their modules: a seed is moved once
        if _state.get("seeding"):
            return original(seed)
        _state["seeding"] = True
        try:
            return original(_moved(seed))
        finally:
            _state["seeding"] = False

    _replace(owner, name, _like(manual_seed, original), label + "." + name)


def _mute_torch(torch: Any) -> None:
    def of_tensor(mean: Any) -> Any:
        return lambda drawn, args, kwargs: mean

    def normal(drawn: Any, args: Any, kwargs: Any) -> Any:
        return kwargs.get("mean", args[0] if args else 0.0)

    def normal_in(drawn: Any, args: Any, kwargs: Any) -> Any:
        return kwargs.get("mean", args[1] if len(args) > 1 else 0.0)

    def uniform_in(drawn: Any, args: Any, kwargs: Any) -> Any:
        low = kwargs.get("from", args[1] if len(args) > 1 else 0.0)
        return (low + kwargs.get("to", args[2] if len(args) > 2 else 1.0)) / 2

    def exponential_in(drawn: Any, args: Any, kwargs: Any) -> Any:
        return 1.0 / kwargs.get("lambd", args[1] if len(args) > 1 else 1.0)

    def wrap(owner: Any, name: str, mean: Any, label: str) -> None:
        original = getattr(owner, name)

        def draw(*args: Any, **kwargs: Any) -> Any:
            _drew()
            drawn = original(*args, **kwargs)
            try:
                with torch.no_grad():
                    middle = mean(drawn, args, kwargs)
                    drawn.copy_(middle) if isinstance(middle, torch.Tensor) else drawn.fill_(middle)
                _state["touched"] += 1
            except Exception as error:
                _fault("muting " + label, error)
            return drawn

        _replace(owner, name, _like(draw, original), label)

    for name, mean in (("rand", 0.5), ("randn", 0.0), ("rand_like", 0.5), ("randn_like", 0.0)):
        wrap(torch, name, of_tensor(mean), "torch." + name)
    wrap(torch, "normal", normal, "torch.normal")
    for name, rule in (("normal_", normal_in), ("uniform_", uniform_in), ("exponential_", exponential_in)):
        wrap(torch.Tensor, name, rule, "torch.Tensor." + name)


# ---------------------------------------------------------------- what plots are given


class _Plot:
    """One series; its labels are read when its figure is saved, shown or cleared, or the record is written."""

    __slots__ = ("across", "artist", "axes", "errors", "kind", "number", "row", "series", "told", "values", "x")

    def __init__(self, kind: str, axes: Any, artist: Any, series: str, row: Optional[float], across: bool) -> None:
        self.kind, self.axes, self.artist, self.series, self.row, self.across = kind, axes, artist, series, row, across
        self.number = 0
        self.x: List[Any] = []
        self.values: List[float] = []
        self.errors: List[float] = []
        self.told: Optional[Dict[str, Any]] = None


def _plot_place(code: Any) -> Tuple[str, str]:
    """(file, function): where a function of a plotting library stands."""
    return os.path.basename(code.co_filename), code.co_name


def _read_plot(code: Any, frame: Any, result: Any) -> None:
    """A function of a plotting library returns, or starts; those that others of them call tell nothing new."""
    outer = frame.f_back
    for _ in range(8):
        if outer is None:
            break
        cell, place = _cells.get(id(outer.f_code)), _plot_place(outer.f_code)
        if cell is not None and cell[4] == "matplotlib" and (place in _COMPOSED or place[0] == "colorbar.py"):
            return
        outer = outer.f_back
    try:
        _PLOTTING[_plot_place(code)][1](frame.f_locals, result)
    except Exception as error:
        _fault("reading a plot", error)


def _add_plot(
    kind: str, axes: Any, x: Any, values: Any, errors: Any = (), artist: Any = None, series: str = "",
    row: Optional[float] = None, across: bool = False,
) -> Optional[_Plot]:  # fmt: skip
    """Keep the finite ones of some values with what stands under them."""
    left = _MAX_ALL_PLOTTED - sum(len(plot.values) for plot in _plots)
    if len(_plots) >= _MAX_SERIES or left <= 0:
        return None
    told = len(errors) == len(values) and all(_is_finite(error) for error in errors)
    rows = [
        (key, float(value), float(error))
        for key, value, error in zip(x, values, errors if told else [0.0] * len(values))
        if _is_finite(value) and (type(key) is str or _is_finite(key))
    ]
    if not rows:
        return None
    rows = rows[:left]
    plot = _Plot(kind, axes, artist, series, row, across)
    if axes is not None and axes not in _axes_numbers:
        _state["axes"] += 1
        _axes_numbers[axes] = _state["axes"]
    plot.number = _state["axes"] if axes is None else _axes_numbers[axes]
    plot.x = [key[:_MAX_TEXT] if type(key) is str else float(key) for key, _, _ in rows]
    plot.values = [value for _, value, _ in rows]
    plot.errors = [error for _, _, error in rows] if told else []
    _plots.append(plot)
    opened = [other.number for other in _plots if other.axes is not None]
    if len(set(opened)) > _MAX_OPEN_AXES:
        _close_plots(lambda other: other.number == opened[0])
    return plot


def _is_finite(value: Any) -> bool:
    return bool(value - value == 0)


def _floats(values: Any) -> List[float]:
    """The numbers of an array, a list or a masked one; not-a-number where there is none."""
    np: Any = sys.modules["numpy"]
    array = np.ma.asarray(values)
    if array.dtype.kind in "buif":
        return list(np.ma.filled(_ends(array).astype(float), np.nan).tolist())
    real = (int, float, np.integer, np.floating)
    return [float(item) if isinstance(item, real) else float("nan") for item in _ends(array).tolist()]


def _ends(array: Any) -> Any:
    """The first and the last ones of many."""
    array, half = array.ravel(), _MAX_PLOTTED // 2
    return array if array.size <= 2 * half else sys.modules["numpy"].ma.concatenate([array[:half], array[-half:]])


def _keys(given: Any, drawn: Any) -> List[Any]:
    """Where values stand: dates and categories as they were given, else the numbers that are drawn."""
    array = sys.modules["numpy"].asarray(given)
    items = list(_ends(array)) if array.dtype.kind in "MOUS" else []
    known = [type(item).__module__.partition(".")[0] in ("builtins", "datetime", "numpy", "pandas") for item in items]
    numbers = [isinstance(item, (int, float)) for item in items]
    if items and len(items) == len(drawn) and all(known) and not any(numbers):
        return [str(item) for item in items]
    return list(drawn)


def _errors(value: Any, count: int) -> List[float]:
    """Half lengths of error bars; none where they differ to the two sides."""
    if value is None:
        return []
    found = _floats(value)
    return found * count if len(found) == 1 else found if len(found) == count else []


def _read_lines(given: Dict[str, Any], lines: Any) -> None:
    for line in lines:
        x, y = _floats(line.get_xdata(orig=False)), _floats(line.get_ydata(orig=False))
        _add_plot("plot", given["self"], _keys(line.get_xdata(orig=True), x), y, artist=line)


def _read_bars(given: Dict[str, Any], bars: Any) -> None:
    across = given.get("orientation") == "horizontal"
    if across:
        x, y = [bar.get_y() + bar.get_height() / 2 for bar in bars], [bar.get_width() for bar in bars]
    else:
        x, y = [bar.get_x() + bar.get_width() / 2 for bar in bars], [bar.get_height() for bar in bars]
    errors = _errors(given.get("xerr" if across else "yerr"), len(y))
    _add_plot("barh" if across else "bar", given["self"], _floats(x), _floats(y), errors, bars, across=across)


def _read_points(given: Dict[str, Any], points: Any) -> None:
    pairs = sys.modules["numpy"].ma.asarray(points.get_offsets())
    _add_plot("scatter", given["self"], _floats(pairs[:, 0]), _floats(pairs[:, 1]), artist=points)


def _read_error_bars(given: Dict[str, Any], bars: Any) -> None:
    line = bars[0]
    x, y = (given["x"], given["y"]) if line is None else (line.get_xdata(orig=False), line.get_ydata(orig=False))
    y = _floats(y)
    _add_plot("errorbar", given["self"], _floats(x), y, _errors(given.get("yerr"), len(y)), bars)


def _read_histogram(given: Dict[str, Any], result: Any) -> None:
    counts, edges, patches = result
    single = sys.modules["numpy"].ndim(counts) == 1
    for index, count in enumerate([counts] if single else counts):
        drawn = patches if single else patches[index]
        across, artist = given.get("orientation") == "horizontal", drawn[0] if len(drawn) else None
        _add_plot("hist", given["self"], _floats(edges[:-1]), _floats(count), artist=artist, across=across)


def _read_image(given: Dict[str, Any], image: Any) -> None:
    array = image.get_array()
    mesh = hasattr(image, "_meshHeight") or type(image).__name__ == "QuadMesh"
    if array.ndim == 1 and hasattr(image, "_meshHeight"):  # before matplotlib 3.8
        array = array.reshape(image._meshHeight, image._meshWidth)
    if array.ndim == 2 and array.size <= _MAX_CELLS:
        middle = 0.5 if mesh else 0.0
        for index, row in enumerate(array):
            places = [column + middle for column in range(len(row))]
            _add_plot("pcolormesh" if mesh else "imshow", given["self"], places, _floats(row), row=index + middle)


def _read_boxes(given: Dict[str, Any], result: Any) -> None:
    violins = "vpstats" in given
    stats = given["vpstats" if violins else "bxpstats"]
    medians = _floats([item["median" if violins else "med"] for item in stats])
    positions = given.get("positions")
    positions = range(1, len(medians) + 1) if positions is None else positions
    across = given.get("orientation") == "horizontal" or given.get("vert") is False
    _add_plot("violinplot" if violins else "boxplot", given["self"], _floats(positions), medians, across=across)


def _read_text(given: Dict[str, Any], text: Any) -> None:
    """Numbers written into axes are one series."""
    value = _number_in(text.get_text())
    if value is None:
        return
    axes, x = given["self"], getattr(text, "xy", text.get_position())[0]
    same = [plot for plot in _plots if plot.kind == "text" and plot.axes is axes]
    key = x[:_MAX_TEXT] if type(x) is str else _floats([x])[0]
    if type(key) is not str and not _is_finite(key):  # a date
        key = float(len(same[0].x) if same else 0)
    if not same:
        _add_plot("text", axes, [key], [value])
    elif len(same[0].values) < _MAX_PLOTTED:
        same[0].x.append(key)
        same[0].values.append(value)


def _number_in(text: Any) -> Optional[float]:
    try:
        value = float(str(text).strip().strip("$").rstrip("\\%"))
    except ValueError:
        return None
    return value if _is_finite(value) else None


def _read_table(given: Dict[str, Any], result: Any) -> None:
    names, columns = given.get("rowLabels"), given.get("colLabels")
    for index, row in enumerate(given["cellText"]):
        cells = [(_number_in(cell), float(place) if columns is None else str(columns[place]))
                 for place, cell in enumerate(row)]  # fmt: skip
        found = [cell for cell in cells if cell[0] is not None]
        series = "" if names is None else str(names[index])[:_MAX_TEXT]
        _add_plot("table", given["ax"], [key for _, key in found], [value for value, _ in found], series=series)


def _read_legend(given: Dict[str, Any], result: Any) -> None:
    """Names that only a legend gives: to the artists themselves, or to those of a colour (seaborn draws samples)."""
    if "handles" not in given:  # another class of this file
        return
    for handle, label in list(zip(given["handles"], given["labels"])):
        same = [plot for plot in _plots if plot.artist is not None and _is_of(handle, plot.artist)]
        if not same and [_colour(other) for other in given["handles"]].count(_colour(handle)) == 1:
            same = [plot for plot in _plots if plot.axes is given["parent"] and plot.artist is not None
                    and not _label_of(plot.artist) and _colour(plot.artist) == _colour(handle)]  # fmt: skip
        for plot in same:
            plot.series = str(label)[:_MAX_TEXT]


def _is_of(handle: Any, artist: Any) -> bool:
    return handle is artist or (isinstance(artist, (list, tuple)) and any(handle is part for part in artist))


def _colour(artist: Any) -> Any:
    while isinstance(artist, (list, tuple)) and artist:
        artist = artist[0]
    read = getattr(artist, "get_facecolor", getattr(artist, "get_color", None))
    colour = sys.modules["numpy"].ravel(sys.modules["matplotlib.colors"].to_rgba_array(read())) if read else None
    return None if colour is None or len(colour) != 4 else tuple(colour[:3].tolist())


def _label_of(artist: Any) -> str:
    label = artist.get_label() if hasattr(artist, "get_label") else ""
    return label[:_MAX_TEXT] if isinstance(label, str) and not label.startswith("_") else ""


def _tick_names(axis: Any) -> Dict[float, str]:
    """Texts that stand at places of an axis: categories, and ticks that the program named."""
    formatter, locator = axis.get_major_formatter(), axis.get_major_locator()
    function: Any = getattr(formatter, "func", None)
    names: Any = {}
    if isinstance(getattr(formatter, "_units", None), dict):
        names = {place: text for text, place in formatter._units.items()}
    elif hasattr(formatter, "seq") and hasattr(locator, "locs"):
        names = dict(zip(locator.locs, formatter.seq))
    elif getattr(function, "args", None) and isinstance(function.args[0], dict):
        names = function.args[0]
    texts = [(place, name.get_text() if hasattr(name, "get_text") else name) for place, name in names.items()]
    return {round(float(place), 6): text[:_MAX_TEXT] for place, text in texts if isinstance(text, str) and text}


def _tell_plot(plot: _Plot) -> Dict[str, Any]:
    """A series with its labels as they are now."""
    told = {
        "kind": plot.kind, "axes": plot.number, "title": "", "x_label": "", "y_label": "", "series": plot.series,
        "x": plot.x, "values": plot.values, "errors": plot.errors,
    }  # fmt: skip
    try:
        told.update(_labels_of(plot))
    except Exception as error:
        _fault("reading the labels of a plot", error)
    return told


def _labels_of(plot: _Plot) -> Dict[str, Any]:
    axes, series = plot.axes, plot.series or _label_of(plot.artist)
    above = getattr(axes.figure, "_suptitle", None)
    titles = [axes.get_title(loc=place) for place in ("center", "left", "right")] + [above and above.get_text()]
    labels, names = (axes.get_xlabel(), axes.get_ylabel()), _tick_names(axes.yaxis if plot.across else axes.xaxis)
    shift = 0.0
    if plot.kind in ("bar", "barh") and len(plot.x) == len(names):  # of a group: all stand beside their ticks alike
        shifts = {round(key - place, 6) for key, place in zip(sorted(plot.x), sorted(names))}
        shift = shifts.pop() if len(shifts) == 1 else 0.0
    places = [key if type(key) is str else names.get(round(key - shift, 6), key) for key in plot.x]
    if plot.row is not None:
        series = _tick_names(axes.yaxis).get(plot.row, str(int(plot.row)))
        places = [place if type(place) is str else float(int(place)) for place in places]
    return {"title": str(next(filter(None, titles), ""))[:400], "x_label": labels[plot.across][:400],
            "y_label": labels[not plot.across][:400], "series": series, "x": places}  # fmt: skip


def _close_plots(which: Callable[[_Plot], bool]) -> None:
    """Labels are final, and axes are let go."""
    for plot in [plot for plot in _plots if plot.told is None and which(plot)]:
        plot.told = _tell_plot(plot)
        plot.axes = plot.artist = None


def _read_plotly(given: Dict[str, Any], result: Any) -> None:
    figure: Any = given.get("self", given.get("fig"))
    if not hasattr(figure, "layout"):
        return
    layout, known = figure.layout, [{**plot.told, "axes": 0} for plot in _plots if plot.told]
    titles = [str(item.title.text or "")[:400] for item in (layout, layout.xaxis, layout.yaxis)]
    _state["axes"] += 1
    for trace in figure.data:
        given = {name: trace[name] for name in ("x", "y", "z", "orientation", "name") if name in trace}
        across = given.get("orientation") == "h"
        keys, values, rows = given.get("xy"[across]), given.get("yx"[across]), given.get("z")
        series = [(str(given.get("name") or ""), values)] if values is not None and rows is None else []
        if rows is not None and sum(len(row) for row in rows) <= _MAX_CELLS:
            series = [(str(name), row) for name, row in zip(range(len(rows)) if values is None else values, rows)]
        for name, numbers in series:
            drawn = _floats(numbers)
            places = [float(place) for place in range(len(drawn))] if keys is None else _keys(keys, _floats(keys))
            plot = _add_plot(str(trace.type), None, places, drawn, series=name[:_MAX_TEXT])
            if plot is not None:
                plot.told = {"kind": plot.kind, "axes": plot.number, "title": titles[0], "x_label": titles[1 + across],
                             "y_label": titles[2 - across], "series": plot.series, "x": plot.x, "values": plot.values,
                             "errors": []}  # fmt: skip
                if {**plot.told, "axes": 0} in known:  # shown, then written
                    _plots.remove(plot)


def _find_agg(name: str) -> Any:
    """In place of a back end that needs a screen or a browser: the code of the one that draws into memory."""
    import importlib.util

    agg = importlib.util.find_spec("matplotlib.backends.backend_agg")
    return importlib.util.spec_from_file_location(name, agg.origin) if agg is not None and agg.origin else None


_SCREENS = {
    "matplotlib.backends.backend_" + name
    for name in ("gtk3agg", "gtk3cairo", "gtk4agg", "gtk4cairo", "macosx", "qt4agg", "qt4cairo", "qt5agg", "qt5cairo",
                 "qtagg", "qtcairo", "tkagg", "tkcairo", "webagg", "wx", "wxagg", "wxcairo")
}  # fmt: skip
_COMPOSED = {("_axes.py", name) for name in ("bar", "errorbar", "hist", "bxp", "violin")}
# (file, function): is it read when it returns?, how
_PLOTTING: Dict[Tuple[str, str], Tuple[bool, Callable[[Dict[str, Any], Any], None]]] = {
    ("_axes.py", "plot"): (True, _read_lines),
    ("_axes.py", "bar"): (True, _read_bars),
    ("_axes.py", "scatter"): (True, _read_points),
    ("_axes.py", "errorbar"): (True, _read_error_bars),
    ("_axes.py", "hist"): (True, _read_histogram),
    ("_axes.py", "imshow"): (True, _read_image),
    ("_axes.py", "pcolormesh"): (True, _read_image),
    ("_axes.py", "bxp"): (True, _read_boxes),
    ("_axes.py", "violin"): (True, _read_boxes),
    ("_axes.py", "text"): (True, _read_text),
    ("_axes.py", "annotate"): (True, _read_text),
    ("table.py", "table"): (True, _read_table),
    ("legend.py", "__init__"): (True, _read_legend),
    ("_base.py", "clear"): (False, lambda given, _: _close_plots(lambda plot: plot.axes is given["self"])),
    ("_base.py", "cla"): (False, lambda given, _: _close_plots(lambda plot: plot.axes is given["self"])),
    ("backend_bases.py", "print_figure"): (
        False, lambda given, _: _close_plots(lambda plot: getattr(plot.axes.figure, "canvas", 0) is given["self"])),
    ("pyplot.py", "show"): (False, lambda given, _: _close_plots(lambda plot: True)),
    ("basedatatypes.py", "show"): (False, _read_plotly),
    ("basedatatypes.py", "write_image"): (False, _read_plotly),
    ("_html.py", "to_html"): (False, _read_plotly),
}  # fmt: skip


# ---------------------------------------------------------------- labels


def _trace_return(frame: Any, event: str, argument: Any) -> Any:
    """Local trace function of a function whose labels are permuted, or which plots (up to Python 3.11)."""
    if event == "return":
        _take_result(frame.f_code, frame, argument)
    return _trace_return


def _returning(code: Any, offset: int, result: Any) -> None:
    """The same, from Python 3.12 on."""
    _take_result(code, _getframe(1), result)


def _take_result(code: Any, frame: Any, result: Any) -> None:
    cell = _cells.get(id(code))
    if cell is None or not cell[1] & _PLOT:
        _permute_result(result)
    elif (result is not None or code.co_name == "__init__") and _PLOTTING[_plot_place(code)][0]:
        _read_plot(code, frame, result)


def _permute_result(result: Any) -> None:
    try:
        if isinstance(result, dict):
            items = list(result.values())
        elif isinstance(result, (tuple, list)) and len(result) <= 64:
            items = list(result)
        else:
            return
        lengths = {_rows(item) for item in items if _dimensions(item) >= 2} - {None}
        for item in items:
            if _dimensions(item) == 1 and _rows(item) in lengths and not _is_permuted(item):
                _permute(item)
    except Exception as error:
        _fault("permuting labels", error)


def _dimensions(item: Any) -> int:
    """Of an array, a tensor, a data frame or a list; -1: none of these."""
    if isinstance(item, list):
        if not item:
            return -1
        return 2 if isinstance(item[0], (list, tuple)) or _dimensions(item[0]) == 1 else 1
    shape = getattr(item, "shape", None)
    return len(shape) if isinstance(shape, tuple) else -1


def _rows(item: Any) -> Optional[int]:
    rows = len(item)
    return rows if rows >= _FEWEST_LABELS else None


def _permute(item: Any) -> None:
    """In place, so that whoever holds the array sees it."""
    order = permutation(len(item))
    if isinstance(item, list):
        item[:] = [item[index] for index in order]
    elif hasattr(item, "iloc"):
        item.iloc[:] = item.to_numpy(copy=True)[order]
    elif hasattr(item, "clone"):
        with sys.modules["torch"].no_grad():
            item.copy_(item.clone()[order])
    else:
        writeable = item.flags.writeable
        item.setflags(write=True)
        item[...] = item[order].copy()
        item.setflags(write=writeable)
    try:
        _once[id(item)] = weakref.ref(item)
    except TypeError:  # a list: kept alive, as its number must not come to mean another one
        if len(_kept) < 64:
            _kept.append(item)
            _once[id(item)] = lambda: item
    _state["touched"] += 1


def _is_permuted(item: Any) -> bool:
    """Was it permuted already, by a function that this one called? Twice would be once back for some permutations."""
    known = _once.get(id(item))
    return known is not None and known() is item


def permutation(count: int) -> List[int]:
    """The fixed permutation of so many labels; no generator of the program is asked."""

    def mix(number: int) -> int:  # splitmix64
        number = (number + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        return number ^ (number >> 31)

    if count not in _orders:
        if len(_orders) > 8:
            _orders.clear()
        _orders[count] = sorted(range(count), key=lambda index: mix(index * 2654435761 + count))
    return _orders[count]


_PATCHES: Dict[str, Callable[[Any], None]] = {
    "random": _patch_random,
    "numpy.random": _patch_numpy_random,
    "torch": _patch_torch,
}
