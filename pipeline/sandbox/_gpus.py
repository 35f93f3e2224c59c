"""GPUs as device requests of Docker Engine.

The engine knows counts and device ids only. A type ("A40") or an amount of memory is therefore looked for among the
devices that the NVIDIA driver of this machine lists, and asked for by id; where the driver's program is missing, such a
request cannot be met.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, NamedTuple

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

    if wanted.type is None and wanted.memory_mb is None:
        return DeviceRequest(count=wanted.count, capabilities=_CAPABILITIES)
    there = _devices()
    found = [device.id for device in there if _suits(device, wanted)]
    if len(found) < wanted.count:
        have = ", ".join(f"{device.name} with {device.memory_mb} MB" for device in there) or "none"
        raise gpu_unavailable(f"{_described(wanted)} were asked for, this machine has {have}")
    return DeviceRequest(device_ids=found[: wanted.count], capabilities=_CAPABILITIES)


class _Device(NamedTuple):
    id: str
    name: str
    memory_mb: int


def _suits(device: _Device, wanted: Gpus) -> bool:
    named = wanted.type is None or wanted.type.lower() in device.name.lower()
    return named and (wanted.memory_mb is None or device.memory_mb >= wanted.memory_mb)


def _described(wanted: Gpus) -> str:
    kind = f" of type {wanted.type}" if wanted.type else ""
    return f"{wanted.count} GPU(s){kind}" + (f" with {wanted.memory_mb} MB each" if wanted.memory_mb else "")


def _devices() -> list[_Device]:
    """The GPUs that the driver lists."""
    command = ["nvidia-smi", "--query-gpu=index,name,memory.total", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_S, check=True)
    except FileNotFoundError as error:
        raise gpu_unavailable("nvidia-smi is not installed, so the kinds of GPUs are not known") from error
    except (subprocess.SubprocessError, OSError) as error:
        raise gpu_unavailable(f"nvidia-smi failed: {error}") from error
    found: list[_Device] = []
    for line in done.stdout.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) == 3 and parts[1]:
            found.append(_Device(parts[0], parts[1], int(parts[2]) if parts[2].isdigit() else 0))
    return found
