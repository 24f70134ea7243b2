# SPDX-License-Identifier: Apache-2.0
"""shunt-load: the words for its ends of a Testbed, and its report.

On the device memif both ends are in one process, in the namespace of shuntd. On the others the client
has 10.81.0.2 and the backend 10.82.9.1, beside the kernel's own addresses on the same interfaces.
"""

import json

import resources
from testbed import BUILD, DEVICES, LINKS, PORT, SUPPORT_CPU, VIP

PROGRAM = BUILD / "tools" / "shunt-load" / "shunt-load"
CLIENT = "10.81.0.2/24"
BACKEND = "10.82.9.1"
BACKEND_PORT = 8080
MEMORY = ("--eal", "--no-huge", "--eal", "--in-memory", "--eal", "-m", "--eal", "256")


def serve_echo(bed, backend=(BACKEND, BACKEND_PORT), routes=(), without_routes=(), others=(), env=None, **fields):
    """Everything goes to this backend; the routes are looked at first, but of these authorities. others: [(authority,
    its backend, more of its cluster)], whose requests go there; env: the daemon's; fields: more of the cluster."""
    hosts = [resources.virtual_host("all", ["*"], *routes, resources.route("/", "echo"))]
    if without_routes:
        hosts.append(resources.virtual_host("without", without_routes, resources.route("/", "echo")))
    hosts += [resources.virtual_host(name, [name], resources.route("/", name)) for name, _, _ in others]
    backends = [one for name, to, more in [("echo", backend, fields), *others] for one in _backend(name, to, more)]
    resources.Folder(bed.xds_folder).set(
        *backends, resources.route_config("routes", *hosts), resources.listener("web", "routes"))
    bed.start_xds()
    bed.start_daemon(env=env)


def _backend(name, address, fields):
    """A cluster without a limit that a load could meet, and its endpoint."""
    limits = {"thresholds": [{"max_requests": 100_000}]}
    return {**resources.cluster(name), **fields, "circuit_breakers": limits}, resources.endpoints(name, address)


def far_end(lab, number, far):
    """The device of shunt-load's end of a memif."""
    near_if = LINKS[far][1]
    device = DEVICES["memif"].format(n=number, interface=near_if, folder=lab.dir)
    return device.replace("role=server", "role=client")


def memif_client_words(lab):
    return ["-d", far_end(lab, 0, "client"), "-a", CLIENT, "-t", f"{VIP}:{PORT}"]


def memif_echo_words(lab):
    return ["-d", far_end(lab, 1, "backends"), "-a", f"{BACKEND}/16", "--listen", str(BACKEND_PORT)]


def memif_words(lab):
    """Both ends of a balancer on memifs. There is no backend before they come, so that the daemon may be waiting to
    try it again."""
    return [*memif_client_words(lab), "--echo-device", far_end(lab, 1, "backends"), "--echo-address", f"{BACKEND}/16",
            "--listen", str(BACKEND_PORT), "--probe"]


def client_words(interface="c0", target=f"{VIP}:{PORT}"):
    return ["-d", DEVICES["af_packet"].format(n=0, interface=interface), "-a", CLIENT, "-t", target]


def echo_words(interface="b0"):
    return ["-d", DEVICES["af_packet"].format(n=0, interface=interface), "-a", f"{BACKEND}/16",
            "--listen", str(BACKEND_PORT)]


def argv(command, *words, core=SUPPORT_CPU):
    return [PROGRAM, command, *words, "--core", str(core), "--json", *MEMORY]


class Run:
    """A run that came to its end."""

    def __init__(self, status, text):
        self.status = status
        self.report = json.loads(text.splitlines()[-1])

    def outcomes(self):
        """{outcome: number}, without the zeros."""
        return {name: n for name, n in self.report["outcomes"].items() if n}


def run(lab, ns, *words, timeout=120, nap=True):
    """shunt-load run, in a namespace."""
    done = lab.exec(ns, argv("run", *words, *(["--nap"] if nap else [])), timeout=timeout, check=False)
    if not done.stdout.strip():
        raise ValueError(f"shunt-load ended with {done.returncode}: {done.stderr}")
    return Run(done.returncode, done.stdout)


def start_echo(lab, ns, *words):
    return lab.start(ns, "echo", argv("echo", *words, "--nap"))
