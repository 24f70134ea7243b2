# SPDX-License-Identifier: Apache-2.0
"""tools/demo --check: passes, and leaves nothing behind, also when it is interrupted."""

import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from lab import leftovers, sweep, wait_until
from testbed import ROOT

DEMO = ROOT / "tools" / "demo"


def huge_pages():
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return [line for line in lines if line.startswith("HugePages_")]


def start_demo(how="--check"):
    return subprocess.Popen([DEMO, "--no-setup", how], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def label_of(demo):
    return f"shunt-demo-{demo.pid}"


def assert_nothing_left(demo):
    done = subprocess.run(["pgrep", "-a", "-f", f"/run/shunt-lab/{label_of(demo)}"], timeout=10,
                          capture_output=True, text=True, check=False)
    assert leftovers(label_of(demo)) == [] and done.stdout == ""


def test_demo_checks_itself_and_leaves_nothing():
    before = huge_pages()
    demo = start_demo()
    output, _ = demo.communicate(timeout=140)
    assert demo.returncode == 0, output
    assert_nothing_left(demo)
    assert huge_pages() == before


@pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL))
def test_interrupted_demo_leaves_nothing(number):
    demo = start_demo()
    wait_until(lambda: leftovers(label_of(demo)), 30, "the demo's namespaces")
    time.sleep(1.5)
    os.kill(demo.pid, number)
    output, _ = demo.communicate(timeout=30)
    assert demo.returncode != 0, output
    if number == signal.SIGKILL:
        sweep()  # as the next run does
    assert_nothing_left(demo)


def test_two_demos_run_at_once():
    for demo in (start_demo(), start_demo()):
        output, _ = demo.communicate(timeout=140)
        assert demo.returncode == 0, output


def test_kept_demo_stays_until_it_is_stopped():
    demo = start_demo("--keep")
    output, _ = demo.communicate(timeout=140)
    assert demo.returncode == 0, output
    kept = f"{label_of(demo)}-0"
    try:
        sweep()
        assert f"{kept}-lb" in leftovers(kept)
        info = re.search(r"(\S*shuntctl --socket \S+) show", output)[1].split()
        subprocess.run([*info, "show", "info"], check=True, timeout=10, stdout=subprocess.DEVNULL)
    finally:
        subprocess.run([DEMO, "--stop", kept], check=True, timeout=30)
    assert_nothing_left(demo)
