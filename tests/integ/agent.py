# SPDX-License-Identifier: Apache-2.0
"""Programs that do what they are told, in a namespace of their own, while a test talks to them.

An agent listens on a Unix socket, which does not care about network namespaces. A request and its
answer are one line of JSON each; what the agent raises, the test sees as AgentError.
"""

import copy
import json
import os
import socket
import sys
import threading
import traceback

from lab import SUPPORT_CPU, LabError, wait_until

START_TIMEOUT_S = 45
ANSWER_TIMEOUT_S = 90
HERE = os.path.dirname(os.path.abspath(__file__))


class AgentError(RuntimeError):
    """The agent's own traceback, or its silence."""


def serve(path, handler):
    """The agent's side: answers every line with handler(request), for ever."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(256)
        while True:
            peer, _ = listener.accept()
            threading.Thread(target=_serve_one, args=(peer, handler), daemon=True).start()


def _serve_one(peer, handler):
    with peer, peer.makefile("rw") as stream:
        for line in stream:
            try:
                answer = {"result": handler(json.loads(line))}
            except Exception:  # whatever it was, the test is to see it
                answer = {"error": traceback.format_exc()}
            stream.write(json.dumps(answer) + "\n")
            stream.flush()


class Agent:
    """The test's side. The program is a file of this folder; its first argument is the socket."""

    def __init__(self, lab, ns, name, program, *arguments, env=None, cpu=SUPPORT_CPU, nice=0):
        path = str(lab.dir / f"{name}.agent")
        argv = [sys.executable, os.path.join(HERE, program), path, *arguments]
        self.process = lab.start(ns, name, argv, env=env, cpu=cpu, nice=nice)
        self._path = path
        self._open()

    def _open(self):
        self._socket = wait_until(lambda: self._connect(self._path), START_TIMEOUT_S,
                                  f"agent {self.process.name}")
        self._stream = self._socket.makefile("rw")

    def second_line(self):
        """The same program, for another thread: to be asked beside the first."""
        other = copy.copy(self)
        other._open()
        return other

    def _connect(self, path):
        if not self.process.alive():
            raise LabError(f"{self.process.name} ended: {self.process.output()}")
        one = socket.socket(socket.AF_UNIX)
        try:
            one.connect(path)
        except OSError:
            one.close()
            return None
        one.settimeout(ANSWER_TIMEOUT_S)
        return one

    def ask(self, **request):
        self.begin(**request)
        return self.answer()

    def begin(self, **request):
        """Asks; answer() is to follow before the next question."""
        self._stream.write(json.dumps(request) + "\n")
        self._stream.flush()

    def answer(self):
        try:
            line = self._stream.readline()
        except TimeoutError:
            line = ""
        if not line:
            raise AgentError(f"{self.process.name} does not answer: {self.process.output()}")
        answer = json.loads(line)
        if "error" in answer:
            raise AgentError(f"{self.process.name}: {answer['error']}")
        return answer["result"]

    def close(self):
        self._stream.close()
        self._socket.close()
