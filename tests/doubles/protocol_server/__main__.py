"""`python -m tests.doubles.protocol_server --script FILE.yaml [--port N] [--record FILE.jsonl]`.

Prints the base URL on one line and serves until it is interrupted or terminated.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from pipeline.errors import ExpbenchError, FailureKind
from tests.doubles.protocol_server.script import load_script
from tests.doubles.protocol_server.server import ProtocolServer


def main(argv: list[str] | None = None) -> int:
    """Serve; the exit code is 0 when it was asked to stop."""
    parser = argparse.ArgumentParser(prog="python -m tests.doubles.protocol_server", description=__doc__)
    parser.add_argument("--script", type=Path, required=True, help="turns, as YAML or JSON")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--record", type=Path, help="append one JSON line a request")
    parser.add_argument("--api-key", help="require this key")
    arguments = parser.parse_args(argv)
    try:
        server = ProtocolServer(
            load_script(arguments.script), record_to=arguments.record, api_key=arguments.api_key, port=arguments.port
        )
        try:
            server.start()
        except OSError as error:
            raise ExpbenchError(
                FailureKind.USAGE,
                f"port {arguments.port}",
                f"cannot be listened on: {error.strerror}",
                consequence="The protocol server was not started",
                next_step="Give another port, or 0 for a free one",
            ) from error
    except ExpbenchError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    asked_to_stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked_to_stop.set())
    sys.stdout.write(f"{server.base_url}\n")
    sys.stdout.flush()
    asked_to_stop.wait()
    server.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
