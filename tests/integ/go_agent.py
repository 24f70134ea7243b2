#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An agent (agent.py) that is a channel of grpc-go: it hands each request on to grpcgo's client, as one of its batches,
and its answer back.

usage: go_agent.py SOCKET PROGRAM TARGET
"""

import json
import subprocess
import sys
import threading

import agent


def main():
    path, program, target = sys.argv[1:]
    client = subprocess.Popen([program, target], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    lock = threading.Lock()

    def ask(batch):
        with lock:
            client.stdin.write(json.dumps(batch) + "\n")
            client.stdin.flush()
            return json.loads(client.stdout.readline())
    agent.serve(path, ask)


if __name__ == "__main__":
    main()
