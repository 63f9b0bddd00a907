"""Assemble PTX with nvJitLink, which needs no GPU and knows the PTX of the other libraries of its version of CUDA."""

from __future__ import annotations

__all__ = ["assembled"]


def assembled(ptx: str, capability: int | str, max_registers: int | None = None) -> tuple[bytes, str]:
    """Return the machine code (cubin) of PTX, and the assembler's report of registers.

    Raises:
        ImportError, RuntimeError: nvJitLink is not installed, or refuses the PTX.
    """
    from cuda.bindings import nvjitlink

    options = [f"-arch=sm_{capability}", "-verbose"]
    if max_registers:
        options.append(f"-maxrregcount={max_registers}")
    data = ptx.encode()
    handle = nvjitlink.create(len(options), options)
    try:
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), "kernel.ptx")
        nvjitlink.complete(handle)
        cubin = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, cubin)
        log = bytearray(nvjitlink.get_info_log_size(handle))
        nvjitlink.get_info_log(handle, log)
    except nvjitlink.nvJitLinkError as error:
        raise RuntimeError(f"nvJitLink failed: {error}") from None
    finally:
        nvjitlink.destroy(handle)
    return bytes(cubin), log.decode(errors="replace")
