# SPDX-License-Identifier: Apache-2.0
"""A start without the management server: what served before serves again, from state_dir."""

import datetime
import fcntl
import os
import subprocess

import pytest

import resources
from lab import command, wait_until
from test_check_dump import check
from test_xds import wait_for_split
from testbed import URL
from world import ROUTES, split_of

WAIT_S = 30
FILE = "xds-state"


@pytest.fixture(name="folder")
def fixture_folder(lab):
    folder = lab.dir / "state"
    folder.mkdir()
    return folder


@pytest.fixture(name="kept_world")
def fixture_kept_world(make_world, folder):
    world = make_world()
    world.bed.settings = f"state_dir: {folder}\n"
    return world


def state_of(bed):
    return bed.show("xds")["state"]


def wait_written(bed, n=1):
    wait_until(lambda: state_of(bed)["written"] >= n, WAIT_S, "the file in state_dir")


def stop_daemon(bed):
    assert bed.daemon.stop(WAIT_S) == 0, bed.daemon.output()


def states(bed):
    return {(r["type"], r["name"]): r["state"] for r in bed.show("xds")["resources"]}


def metric(bed, name):
    """The values of a metric's samples."""
    lines = bed.shuntctl("show", "metrics").splitlines()
    return [float(line.split()[-1]) for line in lines if line.startswith(name)]


@pytest.mark.parametrize("protocol", ["sotw", "delta"])
def test_daemon_starts_without_its_server_and_believes_it_once_it_is_back(kept_world, folder, protocol):
    """OPS-90, OPS-94, OPS-96, OPS-98, OPS-139."""
    world, bed = kept_world, kept_world.bed
    bed.settings += f"xds: {{protocol: {protocol}}}\n"
    world.start()
    wait_written(bed)
    assert metric(bed, "shunt_xds_stale_resources") == [0]
    bed.xds.kill()
    stop_daemon(bed)
    done = check(folder)
    assert done.returncode == 0 and " faults=0 " in done.stdout, done
    bed.start_daemon()
    report = bed.run_h2load(requests=4000)
    assert report.perfect, report
    blue, green = split_of(report)
    assert blue > 0 and green > 0
    assert set(states(bed).values()) == {"STALE"}
    assert metric(bed, "shunt_xds_stale_resources") == [len(states(bed))]
    assert "from disk" in bed.daemon.output()
    assert state_of(bed)["read_age_s"] >= 0
    world.set_weights(0, 100)
    load = bed.start_h2load("load", requests=12_000, clients=8, streams=8, rate=600)
    bed.start_xds()
    wait_for_split(bed, 0, timeout=WAIT_S)
    report = bed.h2load_report(load)
    assert report.perfect, report
    wait_until(lambda: set(states(bed).values()) == {"ACKED"}, WAIT_S, "the server's own word")
    assert metric(bed, "shunt_xds_stale_resources") == [0]
    wait_written(bed)
    assert metric(bed, "shunt_xds_state_failing") == [0]


def test_what_the_server_changed_while_we_were_away_is_never_served_stale(kept_world):
    """OPS-94: a server that is there is asked alone."""
    world, bed = kept_world, kept_world.bed
    world.start()
    wait_written(bed)
    stop_daemon(bed)
    world.set_weights(0, 100)
    bed.start_daemon()
    blue, _ = split_of(bed.run_h2load(requests=1000))
    # A machine that is too slow for its two seconds says so; the unit test has them in virtual time.
    assert blue == 0 or "from disk" in bed.daemon.output()


def test_file_that_is_broken_is_set_aside_and_the_start_goes_on(kept_world, folder):
    """OPS-92."""
    bed = kept_world.bed
    (folder / FILE).write_bytes(b"SHUNTXDS, but no more")
    kept_world.start()
    assert bed.run_h2load(requests=500).perfect
    assert (folder / f"{FILE}.corrupt").exists()
    assert "xds state set aside" in bed.daemon.output()
    assert any("set aside" in line for line in bed.shuntctl("show", "events").splitlines())
    assert state_of(bed)["set_aside"] == 1
    wait_written(bed)
    why = state_of(bed)["read_error"]
    assert why and state_of(bed)["error"] == ""
    examined = subprocess.run(bed.shuntctl_argv("doctor"), check=False, capture_output=True, text=True, timeout=30)
    assert f"not used, and is set aside as xds-state.corrupt: {why}" in examined.stdout, examined  # OPS-242
    assert (folder / FILE).read_bytes().startswith(b"SHUNTXDS\x01")
    assert (folder / FILE).stat().st_mode & 0o777 == 0o600


def test_directory_of_another_process_is_refused_at_the_start(kept_world, folder):
    """OPS-91."""
    bed = kept_world.bed
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        daemon = bed.start_daemon(wait=False)
        wait_until(lambda: not daemon.alive(), WAIT_S, "the end of shuntd")
        assert f"state_dir: {folder}: another process" in daemon.output()
    finally:
        os.close(fd)
    kept_world.start()


def test_full_disk_is_said_and_harms_nothing_else(kept_world, folder):
    """OPS-93."""
    bed = kept_world.bed
    command(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(folder)])
    try:
        with pytest.raises(OSError), open(folder / "filler", "wb", buffering=0) as filler:
            while True:
                filler.write(bytes(1024))
        kept_world.start()
        wait_until(lambda: state_of(bed)["failed"] >= 1, WAIT_S, "the failure")
        assert "No space left" in state_of(bed)["error"]
        assert metric(bed, 'shunt_xds_state_writes_total{result="failed"}')[0] >= 1
        assert metric(bed, "shunt_xds_state_failing") == [1]
        assert bed.run_h2load(requests=2000).perfect
        assert not (folder / FILE).exists() and not (folder / f"{FILE}.new").exists()
        (folder / "filler").unlink()
        stop_daemon(bed)  # writes what is not written yet
        assert (folder / FILE).exists()
        bed.start_daemon()
    finally:
        command(["umount", "-l", str(folder)])


def test_routes_that_came_with_the_last_change_are_written_at_the_end(kept_world):
    """OPS-91."""
    world, bed = kept_world, kept_world.bed
    world.start()
    wait_written(bed)
    world.set_weights(100, 0)
    wait_for_split(bed, 100)
    bed.xds.kill()
    stop_daemon(bed)
    bed.start_daemon()
    assert {state for (_, name), state in states(bed).items() if name == ROUTES} == {"STALE"}
    _, green = split_of(bed.run_h2load(requests=1000))
    assert green == 0


def row_of(bed, name):
    """The rows of a cluster of this name: one or none."""
    return [r for r in bed.show("xds")["resources"] if (r["type"], r["name"]) == ("cluster", name)]


def answer_of(bed, path):
    """Status and text."""
    argv = ["curl", "-sS", "--max-time", "5", "--http2-prior-knowledge", "-w", " %{http_code}", URL + path]
    return bed.lab.exec("client", argv, timeout=30).stdout


def logged_at(bed, text):
    """When the daemon last logged a line with it."""
    line = next(line for line in reversed(bed.daemon.output().splitlines()) if text in line)
    return datetime.datetime.fromisoformat(line.split()[0].removeprefix("ts=").removesuffix("Z"))


def test_route_to_a_missing_cluster_costs_a_restart_no_time(kept_world):
    """OPS-280, OPS-281: the server is there, and silent of the one cluster that it does not have."""
    world, bed = kept_world, kept_world.bed
    world.start()
    world.extra_routes = (resources.route("/nosuch/", "nosuch"),)
    world.set_weights(100, 0)
    wait_for_split(bed, 100, timeout=2 * WAIT_S)  # 15 s until it counts as absent
    assert [(r["state"], r["stale"]) for r in row_of(bed, "nosuch")] == [("DOES_NOT_EXIST", False)]
    before = answer_of(bed, "/nosuch/x")
    stop_daemon(bed)
    bed.start_daemon()
    _, green = split_of(bed.run_h2load(requests=500))
    assert green == 0
    # By the daemon's own clock, since this process may be late: the rest of the 15 s would be 14.75.
    waited = (logged_at(bed, 'msg="ready"') - logged_at(bed, "was not on xDS server")).total_seconds()
    assert 0 <= waited < 10, waited
    assert "from disk" not in bed.daemon.output()
    after = answer_of(bed, "/nosuch/x")
    assert before == after and after.endswith(" 503"), (before, after)
    world.set_routes(resources.cluster("nosuch"), resources.endpoints("nosuch", *world.addresses("blue")),
                     world.routes(100, 0))
    wait_until(lambda: answer_of(bed, "/nosuch/x").endswith(" 404"), WAIT_S, "an answer of the cluster's backends")
    assert [(r["state"], r["stale"]) for r in row_of(bed, "nosuch")] == [("ACKED", False)]
