# SPDX-License-Identifier: Apache-2.0
"""still_agent.py TID: holds one thread still, by ptrace(2), and lets its process's other threads run. It ends with the
thread, or lets it go as it is ended itself. Nothing but Python's own library: it runs in virtual machines."""

import ctypes
import os
import sys

SEIZE, INTERRUPT = 0x4206, 0x4207
WALL = 0x40000000  # also threads that are no children


def ptrace(request, tid):
    if libc.ptrace(request, tid, None, None) != 0:
        sys.exit(f"ptrace({request:#x}, {tid}): {os.strerror(ctypes.get_errno())}")


libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long
thread = int(sys.argv[1])
ptrace(SEIZE, thread)
ptrace(INTERRUPT, thread)
status = os.waitpid(thread, WALL)[1]
print("held", flush=True)
while not (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
    status = os.waitpid(thread, WALL)[1]
