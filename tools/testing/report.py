# SPDX-License-Identifier: Apache-2.0
"""What every stage of tools/test shares: running a command, counting, and saying what failed."""

import collections
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

FAILED = []  # names, told again at the very end: a log is often seen by its last lines only

Counts = collections.namedtuple("Counts", "passed failed skipped", defaults=(0, 0, 0))


def add(*counts):
    return Counts(*(sum(c[i] for c in counts) for i in range(3)))


class Stage:
    """Says what begins, and in the end how long it took."""

    def __init__(self, text):
        self.text = text

    def __enter__(self):
        self.start = time.monotonic()
        print(f"\n== {self.text}", flush=True)

    def __exit__(self, *_):
        print(f"== {self.text}: {time.monotonic() - self.start:.0f} s", flush=True)


def run(argv, **kwargs):
    """Runs with the output visible; True = exit status 0."""
    return subprocess.run([str(a) for a in argv], cwd=ROOT, stdin=subprocess.DEVNULL, check=False,
                          **kwargs).returncode == 0
