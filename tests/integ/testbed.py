# SPDX-License-Identifier: Apache-2.0
"""The balancer between a client and its backends, in three namespaces of a Lab.

    client 10.81.0.1 -- lb-c 10.81.0.10 (shuntd) lb-b 10.82.255.254 -- backends 10.82.x.y

The kernel of `lb` has no address on either link: whatever answers there is shuntd. With
bridges=True a namespace with a bridge stands in the middle of each link, where rules may drop
frames; those of faultlinks=("client",), say, have nothing between their two interfaces until a
wire with faults (Faultlink) is started there. With ip6=True all of it is there a second time: client
fd81::1, shuntd fd81::10 and fd82::fe, backends fd82::1 and what is added. tools/demo and the tests
share this module.
"""

import json
import os
import pathlib
import sys

import h2load
from lab import LabError, SUPPORT_CPU, command, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SHUNT_BUILD", ROOT / "build"))
HERE = pathlib.Path(__file__).resolve().parent
EXAMPLE = ROOT / "examples" / "demo"
VIP = "10.81.0.10"
PORT = 8080
URL = f"http://{VIP}:{PORT}"
VIP6 = "fd81::10"
URL6 = f"http://[{VIP6}]:{PORT}"
XDS_ADDRESS = "127.0.0.1:18000"
START_TIMEOUT_S = 45  # generous: other suites may keep the machine busy
EXIT_TIMEOUT_S = 60  # a whole drain (drain_s) and what follows: what takes longer does not end
# What a client needs to which GOAWAY may come: gRPC then sends what its transport had not begun to send once more, and
# nothing else. Without, such a call fails, before gRPC's own server as well.
SENDS_AGAIN = [["grpc.enable_retries", 1]]
# Any test may be run with more: SHUNT_WORKERS=0,1
WORKERS = tuple(int(core) for core in os.environ.get("SHUNT_WORKERS", "1").split(","))

# The two links of the balancer, by the namespace at the far end.
LINKS = {"client": ("c0", "lb-c"), "backends": ("b0", "lb-b")}
DEVICES = {
    "af_packet": "net_af_packet{n},iface={interface}",
    "af_xdp": "net_af_xdp{n},iface={interface}",
    "tap": "net_tap{n},iface=tap-{interface}",
    # No interface at all: the far ends are shunt-load's.
    "memif": "net_memif{n},role=server,socket={folder}/{interface}.sock,socket-abstract=no",
    # A virtual switch between memif and interface (memif_world.py).
    "memif_client": "net_memif{n},role=client,secret=known,socket={folder}/{interface}.sock,socket-abstract=no",
    "memif_stranger": "net_memif{n},role=client,secret=other,socket={folder}/{interface}.sock,socket-abstract=no",
}


class Testbed:
    """Builds the network at once; servers and the daemon start when asked to."""

    __test__ = False  # pytest: not a test for its name

    def __init__(self, lab, device="af_packet", bridges=False, workers=WORKERS, mtu=1500,
                 faultlinks=(), ip6=False):
        self.lab = lab
        self.ip6 = ip6
        self.mtu = mtu  # of the links
        self.workers = workers  # cores, as in shunt.yaml
        self.device = device
        self.build = BUILD  # whose shuntd is started
        self.stats_socket = lab.dir / "stats.sock"
        self.xds_folder = lab.dir / "xds"
        self.xds_folder.mkdir()
        self.idle = "backoff"  # what a worker without work does
        self.connect_s = 1  # in which a connection is made, or tried again
        self.settings = ""  # more of shunt.yaml
        self.frontend_settings = ""  # the same of the frontend: "tls: {...}"
        self.more_frontends = ()  # the same of others: "{name: ...}"
        self.listener = None  # the name of a socket Listener in place of the target
        self.port_settings = {}  # the same of a port, by its number: {0: ["vlan: 7"]}
        self.more_ports = ()  # the same of others: "{device: ...}"
        self.daemon = None
        self.xds = None
        if device == "memif":
            return
        for far, (far_if, near_if) in LINKS.items():
            self._connect(far, far_if, near_if, bridges, far in faultlinks)
        lab.address("client", "c0", "10.81.0.1/24")
        lab.address("backends", "b0", "10.82.0.1/16")
        if ip6:
            self._add_ip6("client", "c0", "fd81::1/64")
            self._add_ip6("backends", "b0", "fd82::1/64")

    def _add_ip6(self, ns, interface, address):
        self.lab.enable_ip6(ns, interface)
        self.lab.ip(ns, "addr", "add", address, "dev", interface, "nodad")

    def _connect(self, far, far_if, near_if, bridged, faulted):
        if not (bridged or faulted):
            self.lab.link((far, far_if), ("lb", near_if), mtu=self.mtu, queues=len(self.workers))
            return
        middle = self.middle_of(far)
        self.lab.link((far, far_if), (middle, "far"))
        self.lab.link((middle, "near"), ("lb", near_if), queues=len(self.workers))
        if not faulted:
            self.lab.bridge(middle, "bridge0", "far", "near")

    @staticmethod
    def middle_of(far):
        return f"mid-{far}"

    # -- backends

    def add_backend_address(self, ip):
        if ":" in ip:
            self._add_ip6("backends", "b0", f"{ip}/128")
        else:
            self.lab.address("backends", "b0", f"{ip}/32")

    def start_http_backend(self, name, ip, size, port=8080, files=4096):
        """nghttpd; its /mark is `size` bytes. files: connections and files that it may have open."""
        root = self.lab.dir / f"www-{name}"
        root.mkdir(exist_ok=True)
        (root / h2load.MARK.lstrip("/")).write_bytes(b"#" * size)
        return self.lab.start("backends", name, ["nghttpd", "--no-tls", "-a", ip, "-d", root,
                                                 "-m", "1000", str(port)], files=files)

    def start_grpc_backend(self, name, ip, port=9090, words=(), env=None):
        address = f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
        argv = [sys.executable, HERE / "grpc_server.py", name, address, *words]
        return self.lab.start("backends", name, argv, env=env)

    # -- the control plane

    def start_xds(self, argv=None, ns="lb", cpu=SUPPORT_CPU):
        """shunt-xds on the served folder, or another server's command line."""
        argv = argv or [BUILD / "tools" / "shunt-xds" / "shunt-xds", "--listen", XDS_ADDRESS,
                        self.xds_folder]
        self.xds = self.lab.start(ns, f"xds-{ns}", argv, cpu=cpu)
        host, port = XDS_ADDRESS.split(":")
        self.wait_connect(ns, host, int(port), self.xds)
        return self.xds

    # -- the balancer

    def config_text(self):
        """examples/demo/shunt.yaml with this run's socket and devices."""
        text = (EXAMPLE / "shunt.yaml").read_text()
        text = text.replace("/run/shunt/stats.sock", str(self.stats_socket))
        text = text.replace("workers: [1]", f"workers: {list(self.workers)}")
        text = text.replace("idle: backoff", f"idle: {self.idle}")
        if self.listener:
            text = text.replace("target: web", f"listener: {self.listener}")
        if self.ip6:
            text = text.replace(f"[{VIP}/24]", f"[{VIP}/24, '{VIP6}/64']")
            text = text.replace("[10.82.255.254/16]", "[10.82.255.254/16, 'fd82::fe/64']")
            text = text.replace("frontends:", f"frontends:\n  - {{name: web6, address: '{VIP6}', "
                                f"port: {PORT}, target: web}}")
        for number, (_, near_if) in enumerate(LINKS.values()):
            example = DEVICES["af_packet"].format(n=number, interface=near_if)
            text = text.replace(example, "\n    ".join(
                [self._device(number, near_if), f"mtu: {self.mtu}", *self.port_settings.get(number, [])]))
        ports = "".join(f"  - {entry}\n" for entry in self.more_ports)
        text = text.replace("frontends:", f"{ports}frontends:", 1)
        if self.frontend_settings:
            text = text.replace("target: web}", f"target: web, {self.frontend_settings}}}")
        entries = "".join(f"  - {entry}\n" for entry in self.more_frontends)
        return text.replace("stats: {", entries + "stats: {") + self.settings

    def _device(self, number, interface):
        return DEVICES[self.device].format(n=number, interface=interface, folder=self.lab.dir)

    def start_daemon(self, wait=True, env=None, words=(), name="shuntd"):
        """shuntd; wait: until it says that every frontend serves. words: more of its command line."""
        config = self.lab.dir / "shunt.yaml"
        config.write_text(self.config_text())
        env = {"GRPC_XDS_BOOTSTRAP": str(EXAMPLE / "bootstrap.json"), **(env or {})}
        self.daemon = self.lab.start("lb", name, [self.build / "ctrl" / "shuntd", "-c", config, *words],
                                     env=env, cpu=None)
        if wait:
            self.wait_for_daemon()
        return self.daemon

    def wait_for_daemon(self):
        wait_until(self._stats_answer, START_TIMEOUT_S, "the stats socket of shuntd")
        if self.device == "tap":
            self._bridge_taps()
        wait_until(lambda: self.show("info")["state"] == "ready", START_TIMEOUT_S, "shuntd ready")
        if self.device != "memif":
            self.wait_connect("client", VIP, PORT, self.daemon)

    def _stats_answer(self):
        if not self.daemon.alive():
            raise LabError(f"shuntd ended: {self.daemon.output()}")
        return command(self._shuntctl("help"), check=False).returncode == 0

    def _bridge_taps(self):
        # The device's kernel side appears in `lb` beside the veth: a bridge joins the two. It has
        # shuntd's own MAC address, which a bridge would take for itself, and gets another one.
        for number, (_, near_if) in enumerate(LINKS.values()):
            tap = f"tap-{near_if}"
            self.lab.ip("lb", "link", "set", tap, "address", f"02:00:00:00:ff:0{number}", "up")
            self.lab.bridge("lb", f"br-{near_if}", near_if, tap)

    def show(self, what):
        """The data of the JSON answer to `show WHAT`."""
        return json.loads(self.shuntctl("--json", "show", what))["data"]

    def show_workers(self):
        """Each worker's part of `show workers`."""
        return list(self.show("workers").values())

    def mean_sent(self, port):
        """Bytes of a frame that all workers sent on "port0", say."""
        counters = [worker[port] for worker in self.show_workers()]
        return sum(c["tx_bytes"] for c in counters) / sum(c["tx_frames"] for c in counters)

    def shuntctl(self, *words):
        return command(self._shuntctl(*words)).stdout

    def shuntctl_argv(self, *words):
        return self._shuntctl(*words)

    def _shuntctl(self, *words):
        return [BUILD / "tools" / "shuntctl", "--socket", self.stats_socket, *words]

    # -- the client

    def run_h2load(self, timeout=120, path=h2load.MARK, url=URL, **amount):
        """Runs h2load in the client's namespace and returns its report."""
        argv = h2load.arguments(url + path, **amount)
        done = self.lab.exec("client", ["taskset", "-c", str(SUPPORT_CPU), *argv],
                             timeout=timeout)
        return h2load.parse(done.stdout)

    def start_h2load(self, name, path=h2load.MARK, url=URL, **amount):
        """h2load in the background; give its process to h2load_report() at the end."""
        return self.lab.start("client", name, h2load.arguments(url + path, **amount))

    @staticmethod
    def h2load_report(process, timeout=120):
        process.wait(timeout)
        return h2load.parse(process.output())

    def start_calls(self, name, scenario, ns="client", target=f"{VIP}:{PORT}", env=None,
                    **arguments):
        """A scenario of grpc_calls.py, in the background."""
        argv = [sys.executable, HERE / "grpc_calls.py", target, scenario, json.dumps(arguments)]
        return self.lab.start(ns, name, argv, env=env)

    @staticmethod
    def calls_result(process, timeout=60):
        """What a scenario printed last; LabError with its output when it failed."""
        if process.wait(timeout) != 0:
            raise LabError(f"{process.name} failed: {process.output()}")
        return json.loads(process.output().splitlines()[-1])

    def run_calls(self, scenario, timeout=60, **arguments):
        process = self.start_calls(f"calls-{scenario}-{len(self.lab.processes)}", scenario,
                                   **arguments)
        return self.calls_result(process, timeout)

    def wait_connect(self, ns, ip, port, process=None):
        """Until something accepts on ip:port; LabError with its log if the process ends."""
        def accepts():
            if process and not process.alive():
                raise LabError(f"{process.name} ended: {process.output()}")
            return self.lab.accepts(ns, ip, port, self.connect_s)
        wait_until(accepts, START_TIMEOUT_S, f"a listener on {ip}:{port}")


def free_of_addresses(lab, interface):
    """True when the kernel of `lb` owns no address on an interface."""
    return "inet" not in lab.ip("lb", "addr", "show", "dev", interface).stdout
