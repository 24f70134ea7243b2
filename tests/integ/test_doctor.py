# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a host and a daemon (docs/doctor.md): faults that are planted for real, one at a time, into a
set-up that is well; and that nothing is said of the latter."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import sys
import tempfile

import pytest

import resources
from lab import LabError, command, wait_until
from testbed import BUILD, EXAMPLE, HERE, Testbed, VIP, XDS_ADDRESS
from world import ROUTES, SIZES, WEB_PORT

SHUNTD = BUILD / "ctrl" / "shuntd"
BOOTSTRAP = EXAMPLE / "bootstrap.json"
TIMEOUT_S = 60
DOCTOR_S = 60
# What any machine may lack on which the tests run, whoever set up the lab.
# Warnings of workers and losses are among it: a worker that others take the core from has long turns and full rings.
OF_THE_MACHINE = {"clock-source", "clock-synchronised", "core-control", "cpu-quota", "memory", "memory-limit",
                  "worker", "loss"}
FAR_GATEWAY = "10.82.0.99"
NOBODY = 65534


def told(done):
    """(exit status, findings) of an examination in JSON."""
    said = json.loads(done.stdout)
    said = said.get("data", said)
    assert said["status"] == done.returncode, (done.stdout, done.stderr)
    return done.returncode, said["findings"]


def examine(bed, edits=(), env=None, prefix=()):
    """shuntd --check --device in the balancer's namespace, with the bed's shunt.yaml after these edits."""
    text = bed.config_text()
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    path = bed.lab.dir / "examined.yaml"
    path.write_text(text)
    env = {"GRPC_XDS_BOOTSTRAP": BOOTSTRAP, **(env or {})}
    words = ["env", *(f"{name}={value}" for name, value in env.items()), *prefix, SHUNTD, "-c", path]
    return told(bed.lab.exec("lb", [*map(str, words), "--check", "--device", "--json"], timeout=TIMEOUT_S,
                             check=False))


def doctor(bed):
    return told(command(bed.shuntctl_argv("--json", "doctor"), timeout=TIMEOUT_S, check=False))


def of_check(findings, check):
    return [f for f in findings if f["check"] == check]


def faults(findings):
    """Those that are the set-up's own."""
    return [f for f in findings if f["severity"] == "error"
            or f["severity"] == "warning" and f["check"] not in OF_THE_MACHINE]


# Each yields what else the examination is to get.

@contextlib.contextmanager
def merging_is_on(bed):
    bed.lab.set_offloads("lb", "lb-c", "on", ("gro",))
    try:
        yield {}
    finally:
        bed.lab.set_offloads("lb", "lb-c", "off", ("gro",))


@contextlib.contextmanager
def veth_here(bed):
    """Both ends in the balancer's namespace, as the kernel makes them."""
    bed.lab.ip("lb", "link", "add", "near0", "type", "veth", "peer", "name", "far0")
    for name in ("near0", "far0"):
        bed.lab.ip("lb", "link", "set", name, "up")
    try:
        yield {"edits": [("net_af_packet0,iface=lb-c", "net_af_packet0,iface=near0")]}
    finally:
        bed.lab.ip("lb", "link", "del", "near0")


@contextlib.contextmanager
def checksums_are_left_to_hardware(bed):
    with veth_here(bed):
        yield {"edits": [("net_af_packet0,iface=lb-c", "net_af_xdp0,iface=near0")]}


@contextlib.contextmanager
def mtu_is_short(bed):
    bed.lab.ip("lb", "link", "set", "lb-c", "mtu", "1400")
    try:
        yield {}
    finally:
        bed.lab.ip("lb", "link", "set", "lb-c", "mtu", "1500")


@contextlib.contextmanager
def interface_is_down(bed):
    bed.lab.ip("lb", "link", "set", "lb-c", "down")
    try:
        yield {}
    finally:
        bed.lab.ip("lb", "link", "set", "lb-c", "up")


@contextlib.contextmanager
def other_end_is_down(bed):
    bed.lab.ip("client", "link", "set", "c0", "down")
    try:
        yield {}
    finally:
        bed.lab.ip("client", "link", "set", "c0", "up")


@contextlib.contextmanager
def kernel_has_the_address(bed):
    bed.lab.address("lb", "lb-b", f"{VIP}/32")
    try:
        yield {}
    finally:
        bed.lab.ip("lb", "addr", "del", f"{VIP}/32", "dev", "lb-b")


@contextlib.contextmanager
def socket_is_left_over(bed):
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(bed.stats_socket))
    left.close()
    try:
        yield {}
    finally:
        bed.stats_socket.unlink()


@contextlib.contextmanager
def socket_is_a_file(bed):
    bed.stats_socket.write_text("")
    try:
        yield {}
    finally:
        bed.stats_socket.unlink()


@contextlib.contextmanager
def server_says_nothing(bed):
    """Nobody at the veth's other end has its address."""
    with veth_here(bed):
        bed.lab.address("lb", "near0", "192.0.2.2/24")
        yield {"env": {"GRPC_XDS_BOOTSTRAP": bootstrap_for(bed, "192.0.2.1:18000")}}


@contextlib.contextmanager
def server_is_away(bed):
    yield {"env": {"GRPC_XDS_BOOTSTRAP": bootstrap_for(bed, "127.0.0.1:18001")}}


def bootstrap_for(bed, uri):
    path = bed.lab.dir / "bootstrap.json"
    path.write_text(BOOTSTRAP.read_text().replace(XDS_ADDRESS, uri))
    return path


@contextlib.contextmanager
def certificate_has_expired(bed):
    folder = bed.lab.dir
    command(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-subj", "/CN=old.example", "-days", "1", "-keyout", folder / "key.pem", "-out", folder / "cert.pem"])
    bootstrap = json.loads(BOOTSTRAP.read_text())
    bootstrap["certificate_providers"] = {"old": {"plugin_name": "file_watcher", "config": {
        "certificate_file": str(folder / "cert.pem"), "private_key_file": str(folder / "key.pem")}}}
    path = folder / "bootstrap.json"
    path.write_text(json.dumps(bootstrap))
    yield {"env": {"GRPC_XDS_BOOTSTRAP": path}}


@contextlib.contextmanager
def log_is_a_folder(bed):
    folder = bed.lab.dir / "access.log"
    folder.mkdir()
    try:
        yield {"edits": [("log:", f"access_log: {{path: {folder}}}\nlog:")]}
    finally:
        folder.rmdir()


@contextlib.contextmanager
def log_is_anothers(bed):
    path = bed.lab.dir / "access.log"
    path.write_text("")
    os.chown(path, NOBODY, NOBODY)
    path.chmod(0o600)
    try:
        yield {"edits": [("log:", f"access_log: {{path: {path}}}\nlog:")], "prefix": without("dac_override")}
    finally:
        path.unlink()


# What stands at these places is the kernel's; for the examination alone something else does, in a mount namespace of
# its own.
CARD = "0000:03:00.0"
CARDS = "/sys/bus/pci/devices"
ISOLATED = "/sys/devices/system/cpu/isolated"
CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
IRQS = {"30/smp_affinity_list": "1\n", "30/eth1/": ""}
# adjtimex() of a clock that nobody sets right: time has no namespace.
ADRIFT = """#include <sys/timex.h>
int adjtimex(struct timex *t)
{
	*t = (struct timex){.status = STA_UNSYNC};
	return TIME_ERROR;
}
"""


def fake_tree(root, files):
    """Of "folder/", "file", and "link" for a text "-> TARGET"."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir()
        elif text.startswith("-> "):
            path.symlink_to(text.removeprefix("-> "))
        else:
            path.write_text(text)


def mounted(places, device=None):
    """places: what is at which path of the kernel's: a tree, or a file's text. device: in place of the bed's."""
    @contextlib.contextmanager
    def plant(bed):
        with tempfile.TemporaryDirectory(dir=bed.lab.dir) as folder:
            mounts = []
            for number, (place, what) in enumerate(places.items()):
                source = pathlib.Path(folder, str(number))
                if isinstance(what, str):
                    source.write_text(what)
                else:
                    source.mkdir()
                    fake_tree(source, what)
                mounts.append(f"mount --bind {source} {place}")
            yield {"prefix": ("unshare", "-m", "sh", "-c", " && ".join([*mounts, 'exec "$0" "$@"'])),
                   "edits": [("net_af_packet0,iface=lb-c", device)] if device else []}
    return plant


def card(**files):
    """It, alone on the bus."""
    return mounted({CARDS: {f"{CARD}/{name}": text for name, text in {"vendor": "0x8086\n", **files}.items()}}, CARD)


@contextlib.contextmanager
def clock_drifts(bed):
    source, library = bed.lab.dir / "adrift.c", bed.lab.dir / "adrift.so"
    source.write_text(ADRIFT)
    command(["cc", "-shared", "-fPIC", "-o", library, source])
    yield {"env": {"LD_PRELOAD": library}}


def without(capability):
    """root, which lacks that one."""
    return ("setpriv", "--bounding-set", f"-{capability}")


def settings(**given):
    """Of what the configuration or the process alone are to be."""
    @contextlib.contextmanager
    def plant(_):
        yield given
    return plant


def edited(old, new):
    return settings(edits=[(old, new)])


EAL = 'eal: [--in-memory, --no-huge, -m, "512"]'
# (check, severity, words of what and fix, how it is planted)
PLANTED = (
    ("config", "error", ("examined.yaml", "workers[0]", "999"), edited("workers: [1]", "workers: [999]")),
    ("config", "error", ("eal[0]: --lcores=1",), edited("--in-memory", "--lcores=1")),
    ("config", "error", ("metrics.listen: 127.0.0.1:9464 is taken by csds.listen (0.0.0.0:9464)",),
     edited("log:", "metrics: {listen: '127.0.0.1:9464'}\n"
                    "csds: {listen: '0.0.0.0:9464', allow_remote: true}\nlog:")),
    ("config", "error", ("access_log.path: is what stats.socket has already",),
     lambda bed: edited("log:", f"access_log: {{path: {bed.stats_socket}}}\nlog:")(bed)),
    ("capabilities", "error", ("ports[0].device", "lacks CAP_NET_RAW", "AmbientCapabilities=CAP_NET_RAW"),
     settings(prefix=without("net_raw"))),
    ("capabilities", "error", ("net_tap0", "lacks CAP_NET_ADMIN", "AmbientCapabilities=CAP_NET_ADMIN"),
     settings(edits=[("net_af_packet0,iface=lb-c", "net_tap0")], prefix=without("net_admin"))),
    ("capabilities", "error", ("ports[0].kernel", "lacks CAP_NET_ADMIN"),
     settings(edits=[("mtu: 1500", "mtu: 1500\n    kernel: {interface: host0}")], prefix=without("net_admin"))),
    ("log-file", "error", ("access.log is a directory", "a file's"), log_is_a_folder),
    ("log-file", "error", ("may not write to", "access.log", "chown USER"), log_is_anothers),
    ("core-usable", "error", ("may not run on core 1", "AllowedCPUs="), settings(prefix=("taskset", "-c", "0"))),
    ("hugepages", "error", ("hugepages are asked for", "vm.nr_hugepages"),
     edited(EAL, "eal: [--in-memory]")),
    ("dpdk-memory", "error", ("DPDK gets 20 MiB", "-m"), edited('"512"', '"20"')),
    ("device", "error", ("no interface nosuch0", "ip -br link"), edited("iface=lb-c", "iface=nosuch0")),
    ("device", "error", ("0000:ff:1f.7", "no such device"), edited("net_af_packet0,iface=lb-c", "0000:ff:1f.7")),
    ("device", "error", (CARD, "the kernel's driver ixgbe has it", f"dpdk-devbind.py -b vfio-pci {CARD}"),
     card(driver="-> ../../../../bus/pci/drivers/ixgbe")),
    ("device", "error", (CARD, "no driver has it", "bind it to vfio-pci"), card()),
    ("device", "error", (CARD, "vfio-pci has it, but there is no IOMMU", "intel_iommu=on"),
     card(driver="-> ../../../../bus/pci/drivers/vfio-pci")),
    ("core-numa", "warning", ("core 1 is not of NUMA node 9, where lb-c is", "node9/cpulist"),
     mounted({"/sys/class/net": {"lb-c/device/numa_node": "9\n"}})),
    ("core-irq", "warning", ("1 interrupts (30) arrive on the isolated cores 1 alone", "> /proc/irq/30/"),
     mounted({"/proc/irq": IRQS, ISOLATED: "1\n"})),
    ("core-irq", "note", ("1 interrupts (30) arrive on the workers' cores 1 alone", "managed_irq"),
     mounted({"/proc/irq": IRQS, ISOLATED: "\n"})),
    ("core-isolated", "note", ("cores 1 are not isolated", "isolcpus=1"), mounted({ISOLATED: "\n"})),
    ("clock-source", "warning", ("clock is hpet", "tsc"), mounted({CLOCK: "hpet\n"})),
    ("clock-synchronised", "warning", ("the clock is not synchronised", "timedatectl"), clock_drifts),
    ("link", "error", ("lb-c is down", "ip link set lb-c up"), interface_is_down),
    ("link", "error", ("lb-c has no carrier", "veth's other end"), other_end_is_down),
    ("mtu", "error", ("1500, and that of lb-c is 1400", "ip link set lb-c mtu 1500"), mtu_is_short),
    ("offloads", "note", ("lb-c merges", "ethtool -K lb-c gro off"), merging_is_on),
    ("offloads", "note", ("far0", "ethtool -K far0 tso off"), veth_here),
    ("offloads", "error", ("far0", "ethtool -K far0 tx off"), checksums_are_left_to_hardware),
    ("kernel-address", "error", (f"the kernel has {VIP}/24, too, on lb-b", "dev lb-b"), kernel_has_the_address),
    ("files", "warning", ("256 files may be open", "ulimit -n"), settings(prefix=("prlimit", "--nofile=256"))),
    ("socket", "note", ("nobody listens", "rm "), socket_is_left_over),
    ("socket", "error", ("no socket", "rm "), socket_is_a_file),
    ("socket", "error", ("no directory /no/such", "mkdir -p /no/such"),
     lambda bed: edited(str(bed.stats_socket), "/no/such/stats.sock")(bed)),
    ("socket-mode", "warning", ('"0666"', "0660"), edited('mode: "0660"', 'mode: "0666"')),
    ("listen", "error", ("metrics.listen", "Address already in use", "18000"),
     edited("log:", f"metrics: {{listen: '{XDS_ADDRESS}'}}\nlog:")),
    ("log-directory", "error", ("access_log.path", "mkdir -p /no/such"),
     edited("log:", "access_log: {path: /no/such/access.log}\nlog:")),
    ("socket", "error", ("stats.haproxy_socket", "mkdir -p /no/such"),
     edited('mode: "0660"', 'mode: "0660", haproxy_socket: /no/such/haproxy.sock')),
    ("directory", "error", ("state_dir", "mkdir -p /no/such"), edited("log:", "state_dir: /no/such\nlog:")),
    ("directory", "error", ("capture.directory", "mkdir -p /no/such"),
     edited("log:", "capture: {directory: /no/such}\nlog:")),
    ("bootstrap", "error", ("/no/such.json",), settings(env={"GRPC_XDS_BOOTSTRAP": "/no/such.json"})),
    ("xds-server", "error", ("127.0.0.1:18001", "Connection refused"), server_is_away),
    ("xds-server", "error", ("192.0.2.1:18000", "no answer within 2 s"), server_says_nothing),
    ("certificate-dates", "warning", ("old.example", "expires in", "cert.pem"), certificate_has_expired),
)


@pytest.fixture(name="bed", scope="module")
def fixture_bed(module_lab):
    """The lab's links and an xDS server, without a daemon."""
    bed = Testbed(module_lab, workers=(1,))
    bed.start_xds()
    return bed


def test_ops_132_of_a_lab_that_is_well_set_up_nothing_is_said(bed):
    status, findings = examine(bed)
    assert not faults(findings), findings
    assert status < 2, findings


@pytest.mark.parametrize("check, severity, words, plant", PLANTED, ids=[f"{p[0]}-{n}" for n, p in enumerate(PLANTED)])
def test_ops_131_a_planted_fault_is_named_with_its_fix(bed, check, severity, words, plant):
    if check == "hugepages" and hugepages_are_free():
        pytest.skip("this machine has hugepages")
    with plant(bed) as more:
        status, findings = examine(bed, **more)
    named = of_check(findings, check)
    assert any(f["severity"] == severity and all(w in f["what"] + f["fix"] for w in words) for f in named), findings
    assert status == {"error": 2, "warning": 1}.get(severity, status), findings
    # Nothing else is accused.
    assert all(f["check"] == check for f in faults(findings)), findings


def hugepages_are_free():
    with open("/proc/meminfo", encoding="ascii") as lines:
        return any(line.startswith("HugePages_Free:") and int(line.split()[1]) for line in lines)


def test_ops_130_text_is_a_line_a_finding_and_a_count(bed):
    with interface_is_down(bed):
        path = bed.lab.dir / "examined.yaml"
        path.write_text(bed.config_text())
        done = bed.lab.exec("lb", ["env", f"GRPC_XDS_BOOTSTRAP={BOOTSTRAP}", SHUNTD, "-c", path, "--check", "--device"],
                            check=False)
    *lines, last = done.stdout.splitlines()
    assert done.returncode == 2 and last.startswith("1 error, "), done
    assert lines[0].startswith("error    ports[0].device: lb-c is down; ") and "; fix: ip link set" in lines[0], done


def test_without_a_daemon_the_other_command_is_named(bed):
    done = command(bed.shuntctl_argv("doctor"), check=False)
    assert done.returncode == 2 and "--check --device" in done.stderr, done


# -- the daemon

def wait_for(bed, check, *words):
    """Until an examination names that with these words; returns the finding."""
    def named():
        _, findings = doctor(bed)
        return next((f for f in of_check(findings, check)
                     if all(w in f["what"] + f["fix"] for w in words)), None)
    return wait_until(named, DOCTOR_S, f"{check}: {words}")


def test_ops_132_of_a_daemon_that_is_well_nothing_is_said(world):
    bed = world.bed
    status, findings = doctor(bed)
    assert not faults(findings) and status < 2, findings
    # Nor by the other command, beside it: what it has taken is no fault.
    status, findings = examine(bed)
    assert not faults(findings) and status < 2, findings
    # And requests go on while it is examined.
    load = bed.start_h2load("load", requests=2_000, clients=2, streams=4, rate=500)
    _, findings = doctor(bed)
    assert not faults(findings), findings
    report = bed.h2load_report(load)
    assert report.perfect, report


def test_ops_135_what_happens_to_a_running_daemon_is_named(world):
    bed = world.bed
    bad = world.routes(75, 25)
    bad["virtual_hosts"][0]["routes"].append({"route": {"cluster": "blue"}})  # no match
    world.folder.put(bad)
    found = wait_for(bed, "xds-resource", ROUTES, "NACKED", "its last good version serves")
    assert found["severity"] == "warning"
    world.set_weights(0, 100)
    bed.lab.ip("client", "link", "set", "c0", "down")
    assert wait_for(bed, "port", "has no link")["severity"] == "error"
    assert of_check(doctor(bed)[1], "link"), "the host's half says so, too"
    bed.lab.ip("client", "link", "set", "c0", "up")
    bed.xds.kill()
    assert wait_for(bed, "xds-stream", XDS_ADDRESS)["severity"] == "error"
    bed.start_xds()
    wait_until(lambda: not faults(doctor(bed)[1]), DOCTOR_S, "all is well again")


def test_a_listener_that_leaves_to_clients_whom_a_request_comes_from_is_named(world):
    """TLS-259"""
    bed = world.bed
    found = wait_for(bed, "forwarded", "frontend web: x-forwarded-for and x-forwarded-client-cert pass",
                     "use_remote_address")
    assert found["severity"] == "note"
    said = resources.listener("web", ROUTES)
    said["api_listener"]["api_listener"]["use_remote_address"] = False  # which says something, too
    world.folder.put(said)
    wait_until(lambda: not of_check(doctor(bed)[1], "forwarded"), DOCTOR_S, "the new listener")


def test_ops_137_a_gateway_that_does_not_answer_is_named(make_world):
    far = [resources.cluster("far"), resources.endpoints("far", ("10.99.0.1", 80))]
    world = make_world(extra=far, extra_routes=[resources.route("/far", "far")])
    world.bed.port_settings[1] = [f"gateway: {FAR_GATEWAY}"]
    bed = world.start().bed
    found = wait_for(bed, "gateway", FAR_GATEWAY, "does not answer ARP")
    assert found["severity"] == "error"
    bed.lab.address("backends", "b0", f"{FAR_GATEWAY}/32")
    wait_until(lambda: not of_check(doctor(bed)[1], "gateway"), DOCTOR_S, "its answer")


SICK = "sick"  # a cluster whose only endpoint is connected, and fails its health check
METRICS = "127.0.0.1:9464"
FETCH = """
import http.client, sys
c = http.client.HTTPConnection(sys.argv[1], timeout=10)
c.request("GET", sys.argv[2])
r = c.getresponse()
print(r.status, r.read().decode())
"""


def fetch(bed, path):
    return bed.lab.exec("lb", ["/usr/bin/python3", "-c", FETCH, METRICS, path], timeout=TIMEOUT_S).stdout


@pytest.fixture(name="mortal")
def fixture_mortal(make_world):
    check = {"timeout": "1s", "interval": "0.5s", "no_traffic_interval": "0.5s", "unhealthy_threshold": 1,
             "healthy_threshold": 1, "http_health_check": {"path": "/absent", "codec_client_type": "HTTP2"}}
    world = make_world(extra=[{**resources.cluster(SICK), "health_checks": [check]},
                              resources.endpoints(SICK, ("10.82.1.2", WEB_PORT))],
                       extra_routes=[resources.route("/sick", SICK)])
    world.bed.settings += f"metrics: {{listen: '{METRICS}'}}\n"
    return world.start()


def test_ops_272_clusters_that_fail_and_endpoints_that_are_done_without_are_named(mortal):
    bed = mortal.bed
    sick = wait_for(bed, "cluster", "cluster sick fails",
                    "1 of 1 endpoints reachable; last: failed active health check")
    assert sick["severity"] == "error"
    for name in ("blue-1", "green-1", "green-2"):
        mortal.backends[name].kill()
    dead = wait_for(bed, "cluster", "cluster green fails: requests to it fail at once; 0 of 2 endpoints reachable",
                    "last: 10.82.1.3:8080: ")
    assert dead["severity"] == "error" and dead["fix"] == "shuntctl show endpoints cluster=green"
    rows = json.loads(command(bed.shuntctl_argv("--json", *dead["fix"].split()[1:])).stdout)["data"]
    assert [row["cluster"] for row in rows] == ["green"] * 2, rows
    spared = wait_for(bed, "endpoint", "cluster blue: 1 of 2 endpoints get no requests: 1 cannot be connected to, "
                      "0 ejected, 0 unhealthy (10.82.1.1:8080)")
    assert spared["severity"] == "warning"
    status, findings = doctor(bed)
    assert status == 2 and len(of_check(findings, "cluster")) == 2, findings
    assert len(of_check(findings, "endpoint")) == 1, findings
    # The page's headline follows; readiness does not.
    page = fetch(bed, "/")
    assert "serving, with 2 errors and " in page and "cluster green fails: " in page, page
    assert fetch(bed, "/ready").startswith("200 ready")
    for name in ("blue-1", "green-1", "green-2"):
        cluster, ip = mortal.web_backends[name]
        mortal.backends[name] = bed.start_http_backend(name, ip, SIZES[cluster], WEB_PORT)
    mortal.set_weights(75, 25)
    wait_until(lambda: [f["what"].split()[1] for c in ("cluster", "endpoint") for f in of_check(doctor(bed)[1], c)]
               == [SICK], DOCTOR_S, "those that are back are accused no more")


def load_of(bed, cluster):
    return next(row for row in bed.show("load") if (row["kind"], row["name"]) == ("cluster", cluster))


def test_ops_279_a_backend_that_answers_5xx_to_everything_is_seen(make_world, lab):
    """OPS-277, OPS-278: in `show load`, on the status page, and by the doctor, until it is well again."""
    says = lab.dir / "says"
    says.write_text("500")
    address = "10.82.1.9"
    world = make_world(extra=[resources.cluster(SICK), resources.endpoints(SICK, (address, WEB_PORT))],
                       extra_routes=[resources.route("/healthz", SICK)])
    bed = world.bed
    bed.settings += f"metrics: {{listen: '{METRICS}'}}\n"
    bed.add_backend_address(address)
    argv = [sys.executable, HERE / "health_backend.py", "http", f"{address}:{WEB_PORT}", says]
    bed.wait_connect("backends", address, WEB_PORT, lab.start("backends", "sick", argv))
    world.start()
    load = bed.start_h2load("load", path="/healthz", seconds=4 * DOCTOR_S, clients=1, streams=4, rate=100)
    other = bed.start_h2load("other", seconds=4 * DOCTOR_S, clients=1, streams=4, rate=100)
    found = wait_for(bed, "answers", f"cluster {SICK}: ", "answers of its backends within")
    assert found["severity"] == "warning" and found["fix"].endswith(f"cause=answered cluster={SICK}"), found
    rows = json.loads(command(bed.shuntctl_argv("--json", *found["fix"].split()[1:])).stdout)["data"]
    assert {(row["cause"], row["text"]) for row in rows} == {("answered", "HTTP status 500")}, rows
    row = load_of(bed, SICK)
    assert row["state"] == "READY" and row["failed"] == 0 and row["bad"] >= 20, row
    assert abs(row["ok"] - row["bad"]) <= 4, f"the two are not read, nor counted, in one moment: {row}"
    assert load_of(bed, "blue")["bad"] == 0
    wait_until(lambda: f"cluster {SICK}: " in fetch(bed, "/"), DOCTOR_S, "the page's second look")
    says.write_text("200")
    wait_until(lambda: not of_check(doctor(bed)[1], "answers"), DOCTOR_S, "it is accused no more")
    row = load_of(bed, SICK)
    wait_until(lambda: load_of(bed, SICK)["ok"] > row["ok"] + 20, DOCTOR_S, "it answers on")
    assert load_of(bed, SICK)["bad"] == row["bad"], "what is answered well is not bad"
    load.stop()
    other.stop()


def test_ops_135_a_server_that_refuses_the_node_is_named(make_world):
    world = make_world()
    bed = world.start([sys.executable, HERE / "refusing_xds.py", XDS_ADDRESS], wait=False).bed

    def answers():
        with contextlib.suppress(LabError):
            return bed.show("info")
        return None
    wait_until(answers, DOCTOR_S, "the stats socket")
    found = wait_for(bed, "xds-node", "PERMISSION_DENIED", "no such node here", "node (id")
    assert found["severity"] == "error"


def test_two_examinations_at_once_are_not_made(world):
    bed = world.bed
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2)]
        bed.daemon.signal(signal.SIGSTOP)  # it is to find both
        for client in clients:
            client.settimeout(DOCTOR_S)
            client.connect(str(bed.stats_socket))
            client.sendall(b"doctor\n")
        bed.daemon.signal(signal.SIGCONT)
        answers = [client.makefile().readline() for client in clients]
    assert sum("another examination is under way" in a for a in answers) == 1, answers
    # Nothing is left of the process.
    wait_until(lambda: not children(bed.daemon.pid), DOCTOR_S, "its end")


def children(pid):
    """Whichever thread's they are, and whether or not they run."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as pids:
                found += pids.read().split()
    return found
