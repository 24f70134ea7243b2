# SPDX-License-Identifier: Apache-2.0
"""What each target of a build is made of, as ninja knows it: its rules for what is generated and linked, and the
headers that the compilers named when they last ran."""

import os
import subprocess

from testing.report import ROOT


def _ninja(name, *words):
    return subprocess.run(["ninja", "-C", name, "-t", *words], cwd=ROOT, check=True, text=True,
                          stdout=subprocess.PIPE).stdout.splitlines()


def _headers(name):
    """{object: files it was compiled from}"""
    found, of = {}, None
    for line in _ninja(name, "deps"):
        if line.startswith("    "):
            of.append(line.strip())
        elif ": #deps " in line:
            of = found.setdefault(line.partition(": #deps ")[0], [])
    return found


def _inputs(name, targets):
    """{target: what ninja makes it of}. That it only has to come after something is no input."""
    found, of, listed = {}, None, False
    for line in _ninja(name, "query", *targets):
        if not line.startswith(" "):
            of = found.setdefault(line.removesuffix(":"), [])
        elif line.startswith("  ") and line[2] != " ":
            listed = line.startswith("  input:")
        elif listed and not line.startswith("    || "):
            of.append(line.strip().removeprefix("| "))
    return found


def _users(name, targets):
    """{path: what is made of it at once}, of these targets and all that they need in turn."""
    headers, users, known, new = _headers(name), {}, set(), sorted(targets)
    while new:
        known.update(new)
        needed = set()
        for target, inputs in _inputs(name, new).items():
            for path in (*inputs, *headers.get(target, ())):
                users.setdefault(path, set()).add(target)
                needed.add(path)
        # Outside of the build's folder is the source tree, and the system: nobody makes these.
        new = sorted(path for path in needed - known if not path.startswith(("../", "/")))
    return users


class Graph:
    """Of one build that is up to date: what would be made anew, from changed files to these targets."""

    def __init__(self, name, targets):
        self._from_build = lambda path: os.path.relpath(ROOT / path, ROOT / name)
        self._users = _users(name, targets)

    def knows(self, path):
        """Of a file of the source tree: that something is made of it."""
        return self._from_build(path) in self._users

    def made_of(self, files):
        """All that is made of any of these, by ninja's names."""
        made, waiting = set(), [self._from_build(path) for path in files]
        while waiting:
            for user in self._users.get(waiting.pop(), ()):
                if user not in made:
                    made.add(user)
                    waiting.append(user)
        return made
