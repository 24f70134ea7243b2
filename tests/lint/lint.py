# SPDX-License-Identifier: Apache-2.0
# What the lint scripts share: the list of sources, and how a complaint is printed.
import os
import subprocess
import sys

SKIP = 77  # meson's exit code for a test that cannot run here


def sources(root, suffixes=(".c", ".h")):
    """Paths below root, relative and sorted: what git tracks, or without git every file."""
    done = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True)
    if done.returncode == 0:
        names = done.stdout.split("\0")
    else:
        names = []
        for folder, subfolders, files in os.walk(root):
            subfolders[:] = [s for s in subfolders if not is_build_folder(os.path.join(folder, s))]
            names += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    return sorted(n for n in names if n.endswith(suffixes) and os.path.isfile(os.path.join(root, n)))


def is_build_folder(path):
    return os.path.basename(path).startswith(".") or os.path.exists(os.path.join(path, "build.ninja"))


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", newline="") as f:
        return f.read()


class Report:
    def __init__(self):
        self.n = 0

    def add(self, path, line, reason):
        print(f"{path}:{line}: {reason}")
        self.n += 1

    def finish(self):
        if self.n:
            print(f"{os.path.basename(sys.argv[0])}: {self.n} complaints", file=sys.stderr)
        sys.exit(1 if self.n else 0)
