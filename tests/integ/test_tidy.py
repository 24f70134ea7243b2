# SPDX-License-Identifier: Apache-2.0
"""tools/demo --check: passes, and leaves nothing behind, also when it is interrupted."""

import os
import pathlib
import signal
import subprocess
import time

import pytest

from lab import leftovers, wait_until
from testbed import ROOT

LABEL = "shunt-demo"
DEMO = ROOT / "tools" / "demo"


def huge_pages():
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return [line for line in lines if line.startswith("HugePages_")]


def processes():
    done = subprocess.run(["pgrep", "-a", "-f", "/run/shunt-lab/shunt-demo"], capture_output=True,
                          text=True, timeout=10, check=False)
    return done.stdout


def start_demo(*arguments):
    return subprocess.Popen([DEMO, "--no-setup", *arguments], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def assert_nothing_left(before):
    assert leftovers(LABEL) == [] and processes() == "" and huge_pages() == before


def test_demo_checks_itself_and_leaves_nothing():
    before = huge_pages()
    demo = start_demo("--check")
    output, _ = demo.communicate(timeout=140)
    assert demo.returncode == 0, output
    assert_nothing_left(before)


@pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
def test_interrupted_demo_leaves_nothing(number):
    before = huge_pages()
    demo = start_demo("--check")
    wait_until(lambda: leftovers(LABEL), 30, "the demo's namespaces")
    time.sleep(1.5)
    os.kill(demo.pid, number)
    output, _ = demo.communicate(timeout=30)
    assert demo.returncode != 0, output
    assert_nothing_left(before)


def test_two_demos_run_at_once():
    first, second = start_demo("--check"), start_demo("--check")
    for demo in (first, second):
        output, _ = demo.communicate(timeout=140)
        assert demo.returncode == 0, output
