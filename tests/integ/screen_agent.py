#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An agent (agent.py) with a terminal of 180 columns and 40 lines, in which a program runs.

usage: screen_agent.py SOCKET PROGRAM...

Asked for {op}: `look`, the lines of the screen, and which of them have something in reverse; `press` {keys}, which
types them; `status`, the program's exit status, or null while it runs.
"""

import codecs
import os
import pty
import struct
import sys
import termios
import threading
from fcntl import ioctl

import pyte

import agent

COLUMNS, LINES = 180, 40


class Terminal:
    def __init__(self, argv):
        self.screen = pyte.Screen(COLUMNS, LINES)
        self.stream = pyte.Stream(self.screen)
        self.lock = threading.Lock()
        self.status = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
            # It dies with this agent, whose session it has left.
            os.execvpe("setpriv", ["setpriv", "--pdeathsig", "KILL", *argv], {**os.environ, "TERM": "xterm"})
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        text = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            try:
                came = os.read(self.fd, 65536)
            except OSError:  # the program is gone
                came = b""
            if not came:
                break
            with self.lock:
                self.stream.feed(text.decode(came))
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def answer(self, request):
        with self.lock:
            if request["op"] == "look":
                marked = [y for y in range(LINES) if any(c.reverse for c in self.screen.buffer[y].values())]
                return {"lines": self.screen.display, "marked": marked}
            if request["op"] == "press":
                os.write(self.fd, request["keys"].encode())
                return None
            return self.status


if __name__ == "__main__":
    agent.serve(sys.argv[1], Terminal(sys.argv[2:]).answer)
