"""GPUs as device requests of Docker Engine.

The engine knows counts and device ids only. A type ("A40") is therefore looked for among the devices that the NVIDIA
driver of this machine lists, and asked for by id; where the driver's program is missing, a typed request cannot be met.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from pipeline.sandbox._engine import gpu_unavailable
from pipeline.sandbox.base import Gpus

if TYPE_CHECKING:
    from docker.types import DeviceRequest

__all__ = ["device_request"]

_CAPABILITIES = [["gpu", "compute", "utility"]]
_ASK_S = 30


def device_request(wanted: Gpus) -> DeviceRequest:
    """The request for these GPUs.

    Raises:
        ExpbenchError: `GPU_UNAVAILABLE`: there are not enough of that type. (That there are none of any type shows when
            the container starts.)
    """
    from docker.types import DeviceRequest

    if wanted.type is None:
        return DeviceRequest(count=wanted.count, capabilities=_CAPABILITIES)
    found = [index for index, name in _devices() if wanted.type.lower() in name.lower()]
    if len(found) < wanted.count:
        raise gpu_unavailable(f"{wanted.count} of type {wanted.type} were asked for, this machine has {len(found)}")
    return DeviceRequest(device_ids=found[: wanted.count], capabilities=_CAPABILITIES)


def _devices() -> list[tuple[str, str]]:
    """(id, name) of each GPU that the driver lists."""
    command = ["nvidia-smi", "--query-gpu=index,name", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_S, check=True)
    except FileNotFoundError as error:
        raise gpu_unavailable("nvidia-smi is not installed, so the types of GPUs are not known") from error
    except (subprocess.SubprocessError, OSError) as error:
        raise gpu_unavailable(f"nvidia-smi failed: {error}") from error
    rows = (line.partition(",") for line in done.stdout.splitlines())
    return [(index.strip(), name.strip()) for index, _, name in rows if name.strip()]
