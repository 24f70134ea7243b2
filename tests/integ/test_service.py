# SPDX-License-Identifier: Apache-2.0
"""The Debian package under systemd, from its installation to its purge, in a Debian that a virtual machine booted.

`tools/test package service` runs these. The tests share a guest and go by the order of the file; each of them can also
run alone.
"""

import json

import pytest

import service_world
import vm
from lab import wait_until
from lab_fixtures import module_lab_of
from operating_page import UPGRADE, commands, typed
from service_world import (CONFIG, FILE, HUGEPAGES, LOG_FILE, LONG_S, N_HUGEPAGES, PACKET, PHYSICAL, SOON_S, XDP,
                           ServiceWorld)

MISSING = vm.missing() or service_world.missing()
MOST_EXPOSED = 28  # of systemd-analyze's 100, tenths of what it prints

pytestmark = [pytest.mark.timeout(600), pytest.mark.skipif(bool(MISSING), reason=MISSING or "-")]


@pytest.fixture(name="service", scope="module")
def fixture_service(request):
    with module_lab_of(request) as lab:
        yield ServiceWorld(lab)


def assert_serves(service, requests=200):
    report = service.load(requests=requests)
    assert report.perfect, report


def test_an_installation_starts_nothing_and_a_first_start_says_what_it_lacks(service):
    """OPS-214."""
    service.install("shunt", "shunt-doc")
    assert service.get("UnitFileState") == "disabled" and service.get("ActiveState") == "inactive"
    assert service.guest.run("shuntd -c /etc/shunt/shunt.yaml --check").startswith(f"{FILE}: configuration OK")
    status, said = service.guest.try_run("systemctl start shunt", SOON_S)
    assert status == 1 and "journalctl" in said, said
    assert "ports[0].device: net_af_packet0: there is no interface eth1 in this network namespace" in service.journal()
    service.guest.run("systemctl stop shunt")


def test_a_start_waits_for_a_configuration_and_says_so(service):
    """OPS-210."""
    service.serve()
    service.guest.run("systemctl stop shunt xds; rm -rf /var/lib/shunt/*", SOON_S)
    service.guest.run("systemctl start --no-block shunt")
    wait_until(lambda: "waiting for" in service.get("StatusText"), SOON_S, "a status", 0.5)
    assert service.get("ActiveState") == "activating"
    service.start_xds()
    service.wait_for("ActiveState", "active")
    service.wait_for("StatusText", "serving")


def test_a_start_waits_for_a_link_and_says_so(service):
    """OPS-210."""
    service.serve()
    service.guest.run("systemctl stop shunt", LONG_S)
    service.set_link(False)
    try:
        service.guest.run("systemctl start --no-block shunt")
        service.wait_for("StatusText", "no port has a link")
        assert service.get("ActiveState") == "activating"
    finally:
        service.set_link(True)
    service.wait_for("ActiveState", "active")
    assert_serves(service)


def test_it_serves_as_its_user_and_nobody_else_may_ask(service):
    """OPS-263."""
    pid = service.serve()
    assert_serves(service)
    user = service.guest.run(f"stat -c '%U %G' /proc/{pid}").split()
    assert user == ["shunt", "shunt"]
    modes = service.guest.run("stat -c '%a %U %n' /run/shunt /run/shunt/stats.sock /var/lib/shunt "
                              "/var/lib/shunt/capture /var/log/shunt")
    assert modes.split("\n")[:5] == ["750 shunt /run/shunt", "660 shunt /run/shunt/stats.sock",
                                     "750 shunt /var/lib/shunt", "750 shunt /var/lib/shunt/capture",
                                     "755 shunt /var/log/shunt"], modes
    status, said = service.guest.try_run("setpriv --reuid=nobody --regid=nogroup --clear-groups shuntctl show info")
    assert status == 2 and "Permission denied" in said, said
    service.guest.run("setpriv --reuid=nobody --regid=nogroup --groups=shunt shuntctl show info")


def test_the_journal_has_what_the_daemon_logs(service):
    service.serve()
    since = service.cursor()
    service.guest.run("systemctl restart shunt", LONG_S)
    entries = [json.loads(line) for line in service.guest.run(
        f"journalctl -q --no-pager -o json --after-cursor='{since}' -u shunt _COMM=shuntd").splitlines()]
    (ready,) = [entry for entry in entries if 'msg="ready"' in entry["MESSAGE"]]
    assert ready["_PID"] == str(service.pid()) and ready["_SYSTEMD_UNIT"] == "shunt.service", ready
    assert any('msg="stopped" requests_cut=0' in entry["MESSAGE"] for entry in entries)


def test_it_serves_by_af_xdp(service):
    """OPS-212."""
    with service.started_on("net_af_xdp0,iface=eth0", drop_in=XDP):
        assert_serves(service)


def test_it_serves_beside_an_interface_of_the_kernel(service):
    """OPS-212."""
    with service.started_on("net_af_packet0,iface=eth0\n    kernel: {interface: shunt0}"):
        service.guest.run("ip link show shunt0 | grep -q UP")
        assert_serves(service)


@pytest.mark.parametrize(("driver", "drop_in"), [(vm.VFIO, ""), (vm.UIO, PHYSICAL)], ids=[vm.VFIO, vm.UIO])
def test_it_serves_on_a_card_in_hugepages(service, driver, drop_in):
    """OPS-212."""
    with service.card(driver) as device, service.started_on(device, HUGEPAGES, drop_in):
        assert_serves(service)
        free = service.guest.run("sed -n 's/^HugePages_Free: *//p' /proc/meminfo")
        assert int(free) < N_HUGEPAGES


def test_it_is_exposed_no_more_than_it_must_be(service):
    """OPS-212."""
    service.serve()
    said = service.guest.run(f"systemd-analyze security --no-pager --threshold={MOST_EXPOSED} shunt")
    print(said.splitlines()[-1])
    assert not service.guest.try_run("journalctl -q --no-pager -k | grep -E 'audit.*SECCOMP'")[1]


def test_a_reload_with_a_wrong_file_fails_and_changes_nothing(service):
    """OPS-213."""
    pid = service.serve()
    service.write(FILE, CONFIG.replace("workers: [1]", "workers: [one]"))
    status, said = service.guest.try_run("systemctl reload shunt", SOON_S)
    assert status == 1, said
    assert f"{FILE}" in service.journal() and "workers[0]" in service.journal()
    assert service.get("ActiveState") == "active" and service.pid() == pid
    since = service.cursor()
    service.configure("log: {level: debug}\n")
    service.guest.run("systemctl reload shunt", SOON_S)
    wait_until(lambda: 'msg="reload' in service.journal(since), SOON_S, "a reload", 0.5)
    assert service.pid() == pid
    assert_serves(service)
    service.configure()
    service.guest.run("systemctl reload shunt", SOON_S)


@pytest.mark.parametrize("what", ["process", "worker"])
def test_a_daemon_that_hangs_is_started_anew_by_the_watchdog(service, what):
    """OPS-211: as a whole, or a worker's thread of it."""
    pid = service.serve()
    since = service.cursor()
    restarts = int(service.get("NRestarts"))
    if what == "process":
        service.guest.run(f"kill -STOP {pid}")
    else:
        service.hold_worker()
    wait_until(lambda: service.pid() not in (0, pid), SOON_S, "another process", 0.5)
    service.wait_for("ActiveState", "active")
    assert int(service.get("NRestarts")) == restarts + 1
    said = service.journal(since)
    assert "Watchdog timeout" in said
    assert ('msg="worker stalled" worker=0' in said) == (what == "worker"), said
    assert_serves(service)


def test_a_daemon_that_dies_again_and_again_is_started_each_time(service):
    """OPS-211."""
    service.serve()
    for _ in range(7):
        pid = service.pid()
        service.guest.run("systemctl kill --kill-whom=main --signal=KILL shunt")
        wait_until(lambda pid=pid: service.pid() not in (0, pid), SOON_S, "another process", 0.2)
    service.wait_for("ActiveState", "active")
    assert_serves(service)


def test_an_upgrade_leaves_what_serves_and_a_takeover_ends_the_old_one_unseen(service):
    """FL-01, FL-13, OPS-214."""
    pid = service.serve()
    service.guest.run(f"echo '# edited' >>{FILE}")
    service.start_calls()
    service.install("later")
    assert "later" in service.guest.run("dpkg-query -W -f '${Version}' shunt")
    assert service.pid() == pid and service.get("ActiveState") == "active"
    assert service.guest.run(f"tail -n 1 {FILE}") == "# edited\n"
    assert service.guest.run(f"readlink /proc/{pid}/exe").strip() == "/usr/sbin/shuntd (deleted)"
    service.guest.run("systemctl kill --kill-whom=main --signal=SIGUSR2 shunt")
    wait_until(lambda: service.pid() not in (0, pid), SOON_S, "another main process", 0.5)
    wait_until(lambda: service.guest.try_run(f"kill -0 {pid}")[0] != 0, SOON_S, "the end of the old one", 0.5)
    assert service.finish_calls() > 0
    assert service.get("ActiveState") == "active"
    assert service.guest.run(f"readlink /proc/{service.pid()}/exe").strip() == "/usr/sbin/shuntd"
    assert_serves(service)


def test_the_operators_page_upgrades_it(service):
    """docs/operating.md, as an operator types it, who answers what dpkg asks of an edited file by the default."""
    service.serve()
    words = {"./shunt_0.1.0_amd64.deb": f"{service.lab.dir}/later.deb"}
    service.guest.run(f"dpkg -i --force-confold {service.lab.dir}/shunt.deb", LONG_S)  # whatever was before
    for command in commands()[UPGRADE]:
        pid = service.pid()
        service.guest.run(f"yes '' | {typed(command, words)}", LONG_S)
        if "deb" in command:
            assert "later" in service.guest.run("dpkg-query -W -f '${Version}' shunt")
        wait_until(lambda pid=pid, stays="systemctl" not in command: (service.pid() == pid) == stays and service.pid(),
                   SOON_S, f"the process behind: {command}", 0.5)
    service.wait_for("ActiveState", "active")
    assert_serves(service)


def test_logs_are_rotated_and_written_on(service):
    with service.started_on(PACKET, drop_in=LOG_FILE):
        assert_serves(service)
        service.guest.run("logrotate -f /etc/logrotate.d/shunt")
        logs = "/var/log/shunt/shuntd.log", "/var/log/shunt/access.log"
        wait_until(lambda: "reopened" in service.guest.run(f"cat {logs[0]}"), SOON_S, "a log opened again", 0.5)
        assert_serves(service)
        wait_until(lambda: int(service.guest.run(f"wc -l <{logs[1]}")) == 200, SOON_S, "lines in the new file", 0.5)
        assert int(service.guest.run(f"wc -l <{logs[1]}.1")) >= 200
        service.guest.run("logrotate -f /etc/logrotate.d/shunt")  # compresses the ones before
        service.guest.run(f"zcat {logs[0]}.2.gz | grep -q 'msg=\"ready\"'")


def test_a_stop_drains_and_a_disabled_service_stays_away(service):
    """OPS-213."""
    service.serve()
    service.start_calls()
    wait_until(lambda: service.guest.run("shuntctl --json show info").find('"client_connections":0') < 0, SOON_S,
               "a client", 0.5)
    since = service.cursor()
    service.guest.run("systemctl disable --now shunt", LONG_S)
    assert service.get("Result") == "success" and service.get("ExecMainStatus") == "0"
    said = service.journal(since)
    assert 'msg="stopped" requests_cut=0' in said and "Deactivated successfully" in said, said


def test_a_purge_ends_it_and_leaves_nothing_but_the_user(service):
    """OPS-214."""
    service.serve()
    since = service.cursor()
    said = service.guest.run("DEBIAN_FRONTEND=noninteractive apt-get purge -q -y shunt shunt-doc", LONG_S)
    assert "not empty" not in said and "warning" not in said.lower(), said
    assert service.guest.try_run("pgrep shuntd")[0] != 0
    journal = service.journal(since)
    assert 'msg="stopped" requests_cut=0' in journal and "Deactivated successfully" in journal, journal
    left = service.guest.run("find / -xdev -name '*shunt*'; find /run /sys/fs/cgroup -name '*shunt*' "
                             "-not -path '/run/shunt-lab*'; systemctl --all --no-legend list-units 'shunt*'")
    assert not left, left
    service.guest.run("getent passwd shunt")
