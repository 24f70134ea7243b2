# SPDX-License-Identifier: Apache-2.0
"""An unmodified istiod, with a folder as the source of its configuration and a Kubernetes that has nothing in it
(kube_stub.py), and two proxyless clients of it: shuntd, and gRPC's own xDS client (C-core) with a direct way to the
backends.

    client -- lb (shuntd) -- backends 10.82.1.N:9090
                 |                   |   |
        istiod 10.84.0.1             |   |
        istiod 10.85.0.1 -- oracle --+   |    (C-core)
        istiod 10.86.0.1 ----------------+

istiod has a CA that the test made. With mutual=True clients and backends have certificates of it as Istio's agents get
them, and the backends' listeners come from istiod, too.
"""

import collections
import contextlib
import dataclasses
import json
import os
import shutil
import sys
import time

from agent import Agent
from balance_case import shown, unlike
from differential import add_oracle
from pki import Pki
from testbed import HERE, PORT, VIP, Testbed

HOST = "echo.default.svc.cluster.local"
SERVICE_PORT = 7070
AUTHORITY = f"{HOST}:{SERVICE_PORT}"
BACKEND_PORT = 9090
XDS_PORT, CA_PORT = 15010, 15012
KUBE_PORT = 16443
KUBECONFIG = {
    "apiVersion": "v1", "kind": "Config", "current-context": "stub",
    "clusters": [{"name": "stub", "cluster": {"server": f"http://127.0.0.1:{KUBE_PORT}"}}],
    "users": [{"name": "stub", "user": {}}],
    "contexts": [{"name": "stub", "context": {"cluster": "stub", "user": "stub"}}]}
CSDS = "127.0.0.1:18001"
PATH = "/shunt.test.Some/Method"  # any but Echo's is answered with the backend's name
LINKS = {"lb": "10.84.0", "oracle": "10.85.0", "backends": "10.86.0"}  # between istiod, .1, and its clients, .2
SETTLE_S = 30
PAUSE_S = 0.3
NETWORKING, SECURITY = "networking.istio.io/v1", "security.istio.io/v1"
LOCALITY = {"region": "region1", "zone": "zone1"}  # of both clients


def config(kind, spec, name="echo", group=NETWORKING):
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def service(endpoints, **more):
    """The service with these endpoints; more of its entry."""
    return config("ServiceEntry", {
        "hosts": [HOST], "location": "MESH_INTERNAL", "resolution": "STATIC",
        "ports": [{"number": SERVICE_PORT, "name": "grpc", "protocol": "GRPC", "targetPort": BACKEND_PORT}],
        **({"endpoints": endpoints} if endpoints else {}), **more})


def peer_authentication(mode):
    return config("PeerAuthentication", {"mtls": {"mode": mode}}, name="default", group=SECURITY)


def routes(*http):
    return config("VirtualService", {"hosts": [HOST], "http": list(http)})


def rule(subsets=(), tls="DISABLE", **policy):
    """A DestinationRule; subsets are values of the label `version`."""
    return config("DestinationRule", {
        "host": HOST, "trafficPolicy": {"tls": {"mode": tls}, **policy},
        "subsets": [{"name": name, "labels": {"version": name}} for name in subsets]})


def to(subset=None, weight=None):
    destination = {"host": HOST, **({"subset": subset} if subset else {})}
    return {"destination": destination, **({} if weight is None else {"weight": weight})}


@dataclasses.dataclass
class Ask:
    """Calls with this metadata, and who answers them in which proportion; a status counts as somebody."""

    label: str
    shares: dict
    metadata: tuple = ()
    count: int = 60
    at_least_s: float = 0.0
    timeout: float = 8
    parallel: int = 16

    def wrong(self, answers):
        total = sum(self.shares.values())
        counts = collections.Counter(map(shown, answers))
        early = [a["seconds"] for a in answers if a["seconds"] < self.at_least_s]
        why = unlike(counts, {name: share / total for name, share in self.shares.items()}, len(answers))
        return why and f"{self.label}: {why}: {dict(counts)}" or (f"{self.label}: too early: {early}" if early else "")


class Bed(Testbed):
    """The frontend's target is the service, and so is its authority."""

    def config_text(self):
        text = super().config_text()
        assert "target: web}" in text
        return text.replace("target: web}", f'target: "{AUTHORITY}", authority: "{AUTHORITY}"}}')


class Side:
    """One of the two clients."""

    def __init__(self, name, agent, target, tls=False):
        self.name = name
        self.agent = agent
        self.target = target
        self.tls = tls

    def complaint(self, asks):
        for ask in asks:
            call = {"authority": AUTHORITY, "path": PATH, "timeout": ask.timeout,
                    "metadata": [list(pair) for pair in ask.metadata]}
            why = ask.wrong(self.agent.ask(target=self.target, calls=[call] * ask.count, parallel=ask.parallel,
                                           xds_credentials=self.tls))
            if why:
                return f"{self.name}: {why}"
        return ""

    def settle(self, *asks, limit_s=SETTLE_S):
        """Asks until everything is as wanted."""
        deadline = time.monotonic() + limit_s
        while why := self.complaint(asks):
            assert time.monotonic() < deadline, why
            time.sleep(PAUSE_S)


class IstioWorld:
    """Namespaces, backends (numbers from 1) and an empty configuration; start() starts the programs."""

    def __init__(self, lab, program, n_backends=4, mutual=False):
        self.lab = lab
        self.program = program
        self.bed = Bed(lab)
        self.bed.settings = f"csds: {{listen: {CSDS}}}\n"
        add_oracle(self.bed)
        for ns, net in LINKS.items():
            lab.link(("istiod", f"to-{ns}"), (ns, "xds0"))
            lab.address("istiod", f"to-{ns}", f"{net}.1/24")
            lab.address(ns, "xds0", f"{net}.2/24")
        self.folder = lab.dir / "istio"
        self.folder.mkdir()
        self.pki = Pki(lab.dir / "pki")
        self.mutual = mutual
        self.backends = dict.fromkeys(range(1, n_backends + 1))
        for number in self.backends:
            self.bed.add_backend_address(self.address(number))
        self.istiod = None
        self.starts = 0
        self.ours = self.oracle = self.status = None

    @staticmethod
    def address(number):
        return f"10.82.1.{number}"

    def start_backend(self, number):
        name, address = str(number), self.address(number)
        words, env = (), None
        if self.mutual:
            words, env = ("xds",), self.bootstrap("backends", f"echo-{number}", address, "echo")
        self.backends[number] = self.bed.start_grpc_backend(name, address, BACKEND_PORT, words, env)
        self.bed.wait_connect("backends", address, BACKEND_PORT, self.backends[number])

    def endpoint(self, number, version=None, **more):
        labels = {"labels": {"version": version}} if version else {}
        return {"address": self.address(number), **labels, **more}

    def configure(self, *configs):
        """Replaces the whole configuration, at once."""
        path = self.folder / "config.yaml"
        new = path.with_suffix(".new")
        new.write_text("\n---\n".join(json.dumps(one, indent=1) for one in configs) + "\n")
        os.replace(new, path)

    # -- the programs

    def start_istiod(self):
        self.starts += 1
        run = self.lab.dir / "istiod-run"  # it writes beside where it stands
        if not run.exists():
            run.mkdir()
            (run / "kubeconfig").write_text(json.dumps(KUBECONFIG))
            (run / "mesh").write_text("ingressControllerMode: \"OFF\"\n")
            stub = self.lab.start("istiod", "kube", [sys.executable, HERE / "kube_stub.py", KUBE_PORT])
            self.bed.wait_connect("istiod", "127.0.0.1", KUBE_PORT, stub)
        env = {"POD_NAME": "istiod", "POD_NAMESPACE": "istio-system", "ROOT_CA_DIR": str(self._authority()),
               "KUBE_FEATURE_WatchListClient": "false"}
        argv = ["env", "-C", run, self.program, "discovery", "--kubeconfig", "kubeconfig", "--meshConfig", "mesh",
                "--configDir", self.folder, "--grpcAddr", f":{XDS_PORT}", "--secureGRPCAddr", f":{CA_PORT}"]
        self.istiod = self.lab.start("istiod", f"istiod-{self.starts}", argv, cpu=None, nice=5, env=env)
        for ns, net in LINKS.items():
            self.bed.wait_connect(ns, f"{net}.1", XDS_PORT, self.istiod)

    def _authority(self):
        """The folder of an authority for istiod."""
        folder = self.pki.folder / "cacerts"
        if not folder.exists():
            folder.mkdir()
            self.pki.authority("root")
            for name in ("root-cert.pem", "ca-cert.pem", "cert-chain.pem"):
                shutil.copy(self.pki.folder / "root.pem", folder / name)
            shutil.copy(self.pki.folder / "root.key", folder / "ca-key.pem")
        return folder

    def _certificate(self, ns, name, account):
        """The folder of a workload's certificate, which istiod's CA has signed for a service account."""
        folder = self.pki.folder / name
        folder.mkdir()
        shutil.copy(self.pki.folder / "root.pem", folder / "root-cert.pem")
        self.pki.leaf(f"first-{name}", "root", f"URI:spiffe://cluster.local/ns/default/sa/{account}")
        for ending in ("pem", "key"):
            shutil.copy(self.pki.folder / f"first-{name}.{ending}", folder / f"first.{ending}")
        self.pki.run("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}/key.pem",
                     "-out", f"{name}/request.csr")
        self.lab.exec(ns, [sys.executable, HERE / "istio_csr.py", f"{LINKS[ns]}.1:{CA_PORT}", folder])
        return folder

    def bootstrap(self, ns, name, ip, account):
        """The environment with a bootstrap as Istio's agents write it."""
        made = {
            "xds_servers": [{"server_uri": f"{LINKS[ns]}.1:{XDS_PORT}", "channel_creds": [{"type": "insecure"}],
                             "server_features": ["xds_v3"]}],
            "node": {"id": f"sidecar~{ip}~{name}.default~default.svc.cluster.local", "locality": LOCALITY,
                     "metadata": {"GENERATOR": "grpc", "NAMESPACE": "default", "CLUSTER_ID": "Kubernetes",
                                  "NAME": name, "INSTANCE_IPS": ip, "LABELS": {"app": name}}},
            "server_listener_resource_name_template": "xds.istio.io/grpc/lds/inbound/%s"}
        if self.mutual:
            folder = self._certificate(ns, name, account)
            files = {"certificate_file": "cert-chain.pem", "private_key_file": "key.pem",
                     "ca_certificate_file": "root-cert.pem"}
            made["certificate_providers"] = {"default": {"plugin_name": "file_watcher", "config": {
                **{key: str(folder / file) for key, file in files.items()}, "refresh_interval": "900s"}}}
        path = self.lab.dir / f"bootstrap-{name}.json"
        path.write_text(json.dumps(made))
        return {"GRPC_XDS_BOOTSTRAP": str(path)}

    def start(self):
        self.start_istiod()
        for number in self.backends:
            self.start_backend(number)
        self.bed.start_daemon(env=self.bootstrap("lb", "shunt", VIP, "shunt"))
        self.ours = Side("shuntd", Agent(self.lab, "client", "ours", "grpc_agent.py"), f"{VIP}:{PORT}")
        env = self.bootstrap("oracle", "core", "10.83.0.1", "core")
        self.oracle = Side("C-core", Agent(self.lab, "oracle", "core", "grpc_agent.py", cpu=None, env=env), "xds:///{}",
                           tls=self.mutual)
        self.status = Agent(self.lab, "lb", "status", "status_agent.py", CSDS)
        return self

    def stop_clients(self):
        """Those that keep connections to shuntd."""
        self.ours.agent.process.kill()

    def settle(self, *asks, limit_s=SETTLE_S):
        """Both clients do as wanted, C-core first: what it does not do is not shuntd's to do."""
        self.oracle.settle(*asks, limit_s=limit_s)
        self.ours.settle(*asks, limit_s=limit_s)

    def cluster(self, subset=""):
        """The resource that istiod sent, as CSDS shows it; None if there is none."""
        return self.shown("Cluster", f"outbound|{SERVICE_PORT}|{subset}|{HOST}")

    def shown(self, kind, name):
        entries = self.status.ask(op="fetch")["config"][0]["generic_xds_configs"]
        return next((e["xds_config"] for e in entries
                     if e["name"] == name and e["type_url"].endswith(f".{kind}") and "xds_config" in e), None)

    @contextlib.contextmanager
    def load(self):
        """Calls through shuntd without a pause, none of which may fail; it must have been some."""
        stop = self.lab.dir / f"stop-{len(self.lab.processes)}"
        calls = self.bed.start_calls(f"load-{stop.name}", "steady", stop_file=str(stop), path=PATH)
        try:
            yield calls
        finally:
            stop.touch()
        assert self.bed.calls_result(calls)["calls"] > 100
