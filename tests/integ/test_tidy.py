# SPDX-License-Identifier: Apache-2.0
"""tools/demo --check: passes, and leaves nothing behind, also when it is interrupted."""

import argparse
import importlib.util
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
TAKES_S, ENDS_S = 280, 60  # bounds of a demo and of its end

pytestmark = pytest.mark.timeout(2 * TAKES_S)


def huge_pages():
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return [line for line in lines if line.startswith("HugePages_")]


def start_demo(how="--check"):
    return subprocess.Popen([DEMO, "--no-setup", how], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def label_of(demo):
    return f"shunt-demo-{demo.pid}"


def assert_nothing_left(demo):
    done = subprocess.run(["pgrep", "-a", "-f", f"/run/shunt-lab/{label_of(demo)}"], timeout=ENDS_S,
                          capture_output=True, text=True, check=False)
    assert leftovers(label_of(demo)) == [] and done.stdout == ""


def test_two_demos_at_once_check_themselves_and_leave_nothing():
    before = huge_pages()
    demos = start_demo(), start_demo()
    for demo in demos:
        output, _ = demo.communicate(timeout=TAKES_S)
        assert demo.returncode == 0, output
    for demo in demos:
        assert_nothing_left(demo)
    assert huge_pages() == before


@pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL))
def test_interrupted_demo_leaves_nothing(number):
    demo = start_demo()
    wait_until(lambda: leftovers(label_of(demo)), ENDS_S, "the demo's namespaces")
    time.sleep(1.5)
    os.kill(demo.pid, number)
    output, _ = demo.communicate(timeout=ENDS_S)
    assert demo.returncode != 0, output
    if number == signal.SIGKILL:
        sweep()  # as the next run does
    assert_nothing_left(demo)


def test_stop_removes_what_a_killed_demo_left():
    demo = start_demo("--keep")
    killed = f"{label_of(demo)}-0"
    try:
        wait_until(lambda: (pathlib.Path("/run/shunt-lab") / killed / "shuntd.log").exists(), ENDS_S,
                   "a daemon, which is on no leash")
        (pathlib.Path("/run/shunt-lab") / killed / "kept").touch()  # else the next run's sweep may come first
    finally:
        demo.kill()
        demo.communicate(timeout=ENDS_S)
        done = subprocess.run([DEMO, "--stop", killed], capture_output=True, text=True, timeout=ENDS_S,
                              check=False)
    assert done.returncode == 0 and f"{killed} is gone" in done.stdout, done
    assert_nothing_left(demo)


class InterruptedDemo:
    """One that a Ctrl-C ends amid its steps, or amid the last lines of --keep."""

    world = None
    at_step = False

    def __init__(self, *_):
        pass

    def run(self):
        if self.at_step:
            raise KeyboardInterrupt

    def commands(self):
        raise KeyboardInterrupt


@pytest.mark.parametrize("at_step", (True, False), ids=("amid its steps", "amid its last lines"))
def test_interrupted_demo_says_truly_what_is_left(at_step, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("demo", DEMO.with_suffix(".py"))
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    monkeypatch.setattr(program, "Demo", InterruptedDemo)
    monkeypatch.setattr(InterruptedDemo, "at_step", at_step)
    label = f"shunt-demo-{os.getpid()}"
    try:
        assert program.show(argparse.Namespace(check=False, keep=True)) == 130
        said = capsys.readouterr().err
        left = leftovers(label)
        assert len(left) == (0 if at_step else 1)
        assert ("everything it made is gone" in said) == at_step
        assert ([name for name in left if f"--stop {name}" in said]) == left
    finally:
        for name in leftovers(label):
            program.stop(name)


def test_kept_demo_stays_until_it_is_stopped():
    demo = start_demo("--keep")
    output, _ = demo.communicate(timeout=TAKES_S)
    assert demo.returncode == 0, output
    kept = f"{label_of(demo)}-0"
    try:
        sweep()
        assert f"{kept}-lb" in leftovers(kept)
        info = re.search(r"(\S*shuntctl --socket \S+) show", output)[1].split()
        subprocess.run([*info, "show", "info"], check=True, timeout=ENDS_S, stdout=subprocess.DEVNULL)
    finally:
        subprocess.run([DEMO, "--stop", kept], check=True, timeout=ENDS_S)
    assert_nothing_left(demo)
