# SPDX-License-Identifier: Apache-2.0
"""contrib/fleet/shunt-announce, with files in place of a speaker's routes. With speakers it is in test_fleet.py."""

import signal
import sys
import time

import pytest

from fleet_world import RECIPES
from lab import wait_until

NAMES = "vip", "vip6"
PORT = 9464
START_S = 10
SOON_S = 3  # less than until all is told again anyway
SLOW_S = 1
AGAIN_S = 15  # more than that


class Announcer:
    """The program with a command of each name and way, which fails while there is a file broken-NAME, and takes its
    time while there is one slow-NAME, or for ever with one hung-NAME. by_file: it asks no server."""

    def __init__(self, lab, by_file=False):
        self.folder = lab.dir / "announced"
        self.folder.mkdir()
        self.ready = self.folder / "ready"
        server = [sys.executable, "-m", "http.server", str(PORT), "--bind", "127.0.0.1", "--directory", self.folder]
        self.server = lab.start("host", "metrics", server)
        told = [f"test ! -e {self.broken(name)} || exit 1; test ! -e {self.slow(name)} || sleep {SLOW_S}; "
                f"test ! -e {self.hung(name)} || sleep infinity; {what} {self.folder}/{name}"
                for name in NAMES for what in ("touch", "rm -f")]
        wait_until(lambda: lab.exec("host", ["curl", "-s", self.url("")], check=False).returncode == 0, START_S,
                   "the server")
        url = f"file://{self.ready}" if by_file else self.url("ready")
        self.process = lab.start("host", "announce", [RECIPES / "shunt-announce", url, *told])

    @staticmethod
    def url(path):
        return f"http://127.0.0.1:{PORT}/{path}"

    def broken(self, name):
        return self.folder / f"broken-{name}"

    def slow(self, name):
        return self.folder / f"slow-{name}"

    def hung(self, name):
        return self.folder / f"hung-{name}"

    def announced(self):
        return {name for name in NAMES if (self.folder / name).exists()}

    def wait_for(self, *names, timeout=SOON_S):
        wait_until(lambda: self.announced() == set(names), timeout, f"just {names} announced")


@pytest.fixture(name="announcer")
def fixture_announcer(lab):
    return Announcer(lab)


def test_fl_201_a_ready_file_says_it_as_well(lab):
    announcer = Announcer(lab, by_file=True)
    wait_until(lambda: "down" in announcer.process.output(), START_S, "a first withdrawal")
    announcer.ready.touch()
    announcer.wait_for(*NAMES)
    announcer.ready.unlink()
    announcer.wait_for()


@pytest.mark.parametrize("broken, other", [NAMES, NAMES[::-1]])
def test_fl_159_an_address_is_announced_and_withdrawn_though_anothers_command_fails(announcer, broken, other):
    announcer.broken(broken).touch()
    announcer.ready.touch()
    announcer.wait_for(other)
    announcer.broken(broken).unlink()
    announcer.wait_for(*NAMES)
    announcer.broken(broken).touch()
    announcer.ready.unlink()
    announcer.wait_for(broken)
    announcer.broken(broken).unlink()
    announcer.wait_for()


def test_fl_159_what_was_announced_in_part_is_withdrawn(announcer):
    """At once, also where all are withdrawn already as far as was told before."""
    wait_until(lambda: "down" in announcer.process.output(), START_S, "a first withdrawal")
    announcer.broken("vip6").touch()
    announcer.ready.touch()
    announcer.wait_for("vip")
    announcer.broken("vip6").unlink()
    announcer.ready.unlink()
    announcer.wait_for()


@pytest.mark.parametrize("broken", NAMES)
def test_fl_159_sigterm_withdraws_what_can_be(announcer, broken):
    announcer.ready.touch()
    announcer.wait_for(*NAMES)
    announcer.broken(broken).touch()
    announcer.process.signal(signal.SIGTERM)
    assert announcer.process.wait(START_S) == 1
    assert announcer.announced() == {broken}


@pytest.mark.parametrize("slow, other", [NAMES, NAMES[::-1]])
def test_fl_159_a_slow_command_holds_up_no_other(announcer, slow, other):
    announcer.slow(slow).touch()
    announcer.ready.touch()
    announcer.wait_for(other)
    announcer.wait_for(*NAMES)
    announcer.ready.unlink()
    announcer.wait_for(slow)
    announcer.wait_for()


@pytest.mark.parametrize("hung", NAMES)
def test_fl_159_a_command_that_hangs_is_given_up_and_tried_again(announcer, hung):
    announcer.ready.touch()
    announcer.wait_for(*NAMES)
    announcer.hung(hung).touch()
    announcer.ready.unlink()
    announcer.wait_for(hung, timeout=AGAIN_S)  # what is repeated may hang before
    announcer.hung(hung).unlink()
    announcer.wait_for(timeout=AGAIN_S)
    announcer.ready.touch()
    announcer.wait_for(*NAMES)


def test_fl_159_sigterm_tries_again_where_a_command_hangs(announcer):
    announcer.ready.touch()
    announcer.wait_for(*NAMES)
    announcer.hung("vip").touch()
    announcer.process.signal(signal.SIGTERM)
    announcer.wait_for("vip", timeout=AGAIN_S)
    announcer.hung("vip").unlink()
    assert announcer.process.wait(AGAIN_S) == 0
    assert not announcer.announced()


def test_fl_159_sigterm_withdraws_what_is_just_being_announced(announcer):
    announcer.slow("vip").touch()
    announcer.ready.touch()
    announcer.wait_for("vip6")
    announcer.slow("vip").unlink()  # which no longer holds for what comes after
    announcer.process.signal(signal.SIGTERM)
    assert announcer.process.wait(START_S) == 0
    time.sleep(2 * SLOW_S)
    assert not announcer.announced()


def test_fl_159_a_speaker_that_has_forgotten_is_told_again(announcer):
    announcer.ready.touch()
    announcer.wait_for(*NAMES)
    for name in NAMES:
        (announcer.folder / name).unlink()
    announcer.wait_for(*NAMES, timeout=AGAIN_S)
    assert announcer.process.output().split("\n").count("shunt-announce: up") == 1


@pytest.mark.parametrize("words", [(), ("true",), ("true", "true", "true")])
def test_fl_159_half_a_pair_is_refused(lab, words):
    refused = lab.exec("host", [RECIPES / "shunt-announce", Announcer.url("ready"), *words], check=False)
    assert refused.returncode == 2 and "usage" in refused.stderr
