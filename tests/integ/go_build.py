# SPDX-License-Identifier: Apache-2.0
"""Builds Go programs for the tests; a machine without a Go toolchain skips what needs them."""

import re
import shutil
import subprocess

import pytest

from testbed import HERE

MIN_GO = (1, 25)


def go_version():
    """The version of the Go toolchain, or None."""
    if not shutil.which("go"):
        return None
    text = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, timeout=30,
                          check=False).stdout
    found = re.search(r"go(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def go_build(module, package, target, timeout=380, min_go=MIN_GO):
    """Builds a package of the module in tests/integ/MODULE into the file `target`, or skips the
    test."""
    version = go_version()
    if version is None or version < min_go:
        pytest.skip(f"needs a Go toolchain >= {min_go[0]}.{min_go[1]}, which this machine lacks")
    target.parent.mkdir(exist_ok=True)
    subprocess.run(["go", "build", "-o", target, package], cwd=HERE / module, check=True,
                   timeout=timeout)
    return target
