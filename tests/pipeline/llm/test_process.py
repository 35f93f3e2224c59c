"""What needs a process of its own: light imports, Ctrl-C, forks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SETUP = """
import os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that started us in the background has it ignored
from pathlib import Path
from pipeline.llm import Budget, CallLedger, ModelClient, ModelConfig, Request, user
from tests.doubles.protocol_server import ProtocolServer, Script, turns
ledger, budget = CallLedger(Path(sys.argv[1])), Budget()
def client(server): return ModelClient(ModelConfig(model="m", base_url=server.base_url), ledger=ledger, budget=budget)
def ask(text): return Request(messages=(user(text),))
"""


def run(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        capture_output=True, text=True, check=False, timeout=120, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_layer_imports_no_client_library():
    heavy = "('openai', 'langchain', 'langchain_core', 'langchain_openai', 'langsmith', 'httpx2')"
    out = run(f"import sys, pipeline.llm; print([m for m in sys.modules if m.split('.')[0] in {heavy}])")
    assert out.strip() == "[]"


def test_ctrl_c_aborts_a_call_and_is_recorded(tmp_path: Path):
    out = run(
        SETUP
        + """
with ProtocolServer(Script.of(turns.text("first"), turns.text("never", hold="gate"))) as server, client(server) as c:
    c.chat(ask("1"))
    def interrupt():
        while len(server.requests) < 2: threading.Event().wait(0.005)
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=interrupt); thread.start()
    try: c.chat(ask("2"))
    except KeyboardInterrupt: print("interrupted")
    thread.join()
print([record.outcome for record in ledger.records()], budget.reserved.calls, budget.spent.calls)
""",
        str(tmp_path / "calls.jsonl"),
    )
    assert out.splitlines() == ["interrupted", "['done', 'KeyboardInterrupt'] 0 2"]


def test_a_forked_child_opens_connections_of_its_own(tmp_path: Path):
    out = run(
        SETUP
        + """
with ProtocolServer(Script.of(turns.text("parent"), turns.text("child"), turns.text("again"))) as server:
    c = client(server)
    c.chat(ask("1"))
    child = os.fork()
    if child == 0:
        print(c.chat(ask("2")).text, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print(c.chat(ask("3")).text)
    c.close()
print(len(ledger.records()))
""",
        str(tmp_path / "calls.jsonl"),
    )
    assert out.split() == ["child", "again", "3"]
