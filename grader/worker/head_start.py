"""A head start for the host: the GPU waits for the flag, and what is called meanwhile is queued behind it.

What Python takes to come to its first launch is no part of a kernel's time, and on a busy host it varies by a tenth of
a millisecond. A submission that queued its work behind a wait of its own would be spared it; so all are.
"""

from __future__ import annotations

from typing import Any

from grader.protocol.flag import Flag

__all__ = ["HeadStart"]

_MAPPED = 2  # CU_MEMHOSTREGISTER_DEVICEMAP
_NO_LESS = 0  # CU_STREAM_WAIT_VALUE_GEQ
_CANNOT = ("CUDA_ERROR_NOT_PERMITTED", "CUDA_ERROR_NOT_SUPPORTED")


class HeadStart:
    """The flag as the GPU sees it; on a GPU or a driver that cannot wait for memory nothing is ever queued.

    Raises:
        RuntimeError: the driver answered another error: a worker that lacks what others have would be timed otherwise.
    """

    def __init__(self, flag: Flag) -> None:
        from cuda.bindings import driver

        self._driver: Any = driver
        self._possible = True
        self._ask("cuMemHostRegister", flag.address, Flag.BYTES, _MAPPED)
        self._address = self._ask("cuMemHostGetDevicePointer", flag.address, 0)

    def begin(self, number: int) -> bool:
        """Has torch's current stream wait until the flag is raised for this round; False where that cannot be."""
        import torch

        stream = torch.cuda.current_stream().cuda_stream
        self._ask("cuStreamWaitValue64", stream, self._address, number, _NO_LESS)
        return self._possible

    def _ask(self, name: str, *arguments: Any) -> Any:
        """What the driver's function gives, while all is possible."""
        if not self._possible:
            return None
        try:
            error, *found = getattr(self._driver, name)(*arguments)
        except (AttributeError, RuntimeError):  # the bindings, or the driver, are older than the function
            self._possible = False
            return None
        if int(error):
            self._possible = False
            if error.name not in _CANNOT:
                raise RuntimeError(f"{name}: the CUDA driver answered {error.name}")
        return found[0] if found else None
