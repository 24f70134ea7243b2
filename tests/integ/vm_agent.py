# SPDX-License-Identifier: Apache-2.0
"""The first process of a virtual machine (vm.py): runs the scripts that come by its serial line.

A question and its answer are one line of JSON each. Nothing but Python's own library: it starts
under emulation."""

import json
import os
import subprocess

PORT = "/dev/vport{}p1"
ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
       "LC_ALL": "C.UTF-8"}


def run(script, timeout):
    done = subprocess.Popen(["bash", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, errors="replace", env=ENV, cwd="/")
    try:
        output, _ = done.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        done.kill()
        output, _ = done.communicate()
        return {"status": -1, "output": f"{output}\nnot within {timeout} s"}
    return {"status": done.returncode, "output": output}


def serve():
    port = next(p for p in map(PORT.format, range(8)) if os.path.exists(p))
    with open(port, "r+b", buffering=0) as line:
        def say(document):
            line.write(json.dumps(document).encode() + b"\n")
        say({"status": 0})
        text = b""
        while True:
            text += line.read(4096) or b""
            while b"\n" in text:
                question, text = text.split(b"\n", 1)
                say(run(**json.loads(question)))


def main():
    """The first process takes leave of what ran in the background; another one serves."""
    server = os.fork()
    if server == 0:
        serve()
    while os.wait()[0] != server:
        pass


if __name__ == "__main__":
    main()
