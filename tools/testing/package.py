# SPDX-License-Identifier: Apache-2.0
"""The part of tools/test that makes the Debian package, and tries it as its user installs it."""

import subprocess

from testing.integ import SERVICE_TEST, pytest
from testing.report import FAILED, ROOT, Counts, Stage, run

PACKAGES = ROOT / "build-package"


def make_packages():
    """Those of what is committed, and a Debian for them, unless they are there already."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    stamp = PACKAGES / "commit"
    if stamp.exists() and stamp.read_text() == commit:
        return True
    if not run(["rm", "-rf", "--one-file-system", PACKAGES]):
        return False
    PACKAGES.mkdir()
    if not run(["tests/package/make", PACKAGES]) or not run(["tests/package/root", PACKAGES]):
        return False
    stamp.write_text(commit)
    return True


def service(name):
    """Under systemd, in a virtual machine: all, or the tests with this in their names."""
    with Stage("packages, and a Debian that boots"):
        if not make_packages():
            FAILED.append("tests/package/make")
            return Counts(failed=1)
    with Stage("the package under systemd"):
        return pytest(ROOT / "build" / "service.xml", ["-s", SERVICE_TEST, "-k", name])


def package(only):
    if not run(["tools/setup", "package"]):
        return Counts(failed=1)
    if only:
        return service(only[0])
    with Stage("the package"):
        ok = run(["tests/package/check"])
    if not ok:
        FAILED.append("tests/package/check")
    return Counts(passed=int(ok), failed=int(not ok))
