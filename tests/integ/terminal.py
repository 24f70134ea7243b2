# SPDX-License-Identifier: Apache-2.0
"""A program on a terminal of its own, and what it has drawn there, as pyte's screen tells it."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

import pyte

CTRL_C, CTRL_D, UP, TAB = "\x03", "\x04", "\x1b[A", "\t"


class Terminal:
    """Use it as a context: at its end the program is killed, if it still runs."""

    def __init__(self, argv, rows=24, columns=80, env=None):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""  # all that came
        self.status = None  # of the exit
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            with contextlib.suppress(OSError):
                os.execvpe(str(argv[0]), [str(word) for word in argv],
                           {**environment, "TERM": "linux", "LC_ALL": "C.UTF-8", **(env or {})})
            os._exit(127)
        self._set_size(rows, columns)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None and self._reap(os.WNOHANG) is None:
            os.kill(self.pid, signal.SIGKILL)
            self._reap(0)
        os.close(self.fd)

    def _set_size(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _reap(self, flags):
        pid, status = os.waitpid(self.pid, flags)
        if pid:
            self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def resize(self, rows, columns):
        self.screen.resize(rows, columns)
        self._set_size(rows, columns)

    def type(self, text):
        os.write(self.fd, text.encode())

    def look(self, seconds=0.1):
        """Takes what has come, and what comes so soon."""
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return
        with contextlib.suppress(OSError):  # the program has ended
            data = os.read(self.fd, 65536)
            self.raw += data
            self.stream.feed(data)

    @property
    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self):
        return "\n".join(self.lines).rstrip()

    def wait_for(self, condition, what, timeout=60):
        """Until condition(self.text) is true, or the text has it, if it is one; returns its value."""
        deadline = time.monotonic() + timeout
        while True:
            value = condition in self.text if isinstance(condition, str) else condition(self.text)
            if value:
                return value
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not within {timeout} s on\n{self.text}")
            self.look()

    def wait_for_end(self, timeout=60):
        """The exit status."""
        deadline = time.monotonic() + timeout
        while self._reap(os.WNOHANG) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"it still runs after {timeout} s, on\n{self.text}")
            self.look()
        seen = -1
        while len(self.raw) > seen:  # a read takes some of it
            seen = len(self.raw)
            self.look()
        return self.status
