# SPDX-License-Identifier: Apache-2.0
"""tools/demo's world: the standard one, but serving a copy of examples/demo/xds, so that the examples
are what runs; and a meter that counts answers at the client by what they say, not by what the balancer
says."""

import collections
import dataclasses
import json
import os
import shutil
import time

from lab import SUPPORT_CPU, command
from pki import Pki, replace
from testbed import EXAMPLE, URL, VIP
from world import WEB_BACKENDS, World

WHO = "/who"  # each web backend answers it with its own name
REQUEST_TIMEOUT = "20s"
TLS_PORT = 8443
TLS_URL = f"https://{VIP}:{TLS_PORT}"


class DemoWorld(World):
    """Weights are changed in the served copy of routes-web.json, as an operator would do it."""

    def __init__(self, lab):
        self.routes_file = lab.dir / "xds" / "routes-web.json"
        super().__init__(lab)
        for name in WEB_BACKENDS:
            (lab.dir / f"www-{name}" / WHO.lstrip("/")).write_text(name + "\n")

    def set_weights(self, blue, green):
        if not self.routes_file.exists():
            shutil.copytree(EXAMPLE / "xds", self.bed.xds_folder, dirs_exist_ok=True)
        config = json.loads(self.routes_file.read_text())
        weights = {"blue": blue, "green": green}
        for route in config["virtualHosts"][0]["routes"]:
            for entry in route["route"].get("weightedClusters", {}).get("clusters", ()):
                entry["weight"] = weights[entry["name"]]
        new = self.routes_file.with_name(".routes-web.new")
        new.write_text(json.dumps(config, indent=2) + "\n")
        os.replace(new, self.routes_file)

    # -- the frontend with TLS

    def start_daemon(self):
        """shuntd, with a second frontend whose certificate is in files."""
        self.pki = Pki(self.bed.lab.dir / "tls")
        self.pki.authority("ca")
        for name in ("first", "second"):
            self.pki.leaf(name, "ca", f"IP:{VIP}")
        self.install("first")
        made = json.loads((EXAMPLE / "bootstrap.json").read_text())
        made["certificate_providers"] = {"web": {"plugin_name": "file_watcher", "config": {
            "certificate_file": str(self.pki.folder / "tls.crt"),
            "private_key_file": str(self.pki.folder / "tls.key")}}}
        path = self.bed.lab.dir / "bootstrap.json"
        path.write_text(json.dumps(made, indent=2) + "\n")
        self.bed.more_frontends = [
            f"{{name: web-tls, address: {VIP}, port: {TLS_PORT}, target: web, tls: {{certificate: web}}}}"]
        self.bed.start_daemon(env={"GRPC_XDS_BOOTSTRAP": str(path)})

    def install(self, name):
        """Puts this certificate where the daemon looks: two files, one after the other."""
        replace(self.pki.folder / "tls.key", self.pki.key(name))
        replace(self.pki.folder / "tls.crt", self.pki.pem(name))

    def shake_hands(self):
        """The name in the certificate that a new client sees; None = it has no connection, or does not trust it."""
        done = self.bed.lab.exec("client", [
            "timeout", "5", "openssl", "s_client", "-connect", f"{VIP}:{TLS_PORT}", "-alpn", "h2",
            "-verify_return_error", "-CAfile", self.pki.folder / "ca.pem"], check=False)
        if done.returncode != 0:
            return None
        seen = command(["openssl", "x509", "-noout", "-subject", "-nameopt", "multiline"], stdin=done.stdout)
        return seen.stdout.split("=")[-1].strip()


@dataclasses.dataclass
class Count:
    """Requests sent, and the answers with status 200 by the backend they name."""

    sent: int = 0
    by: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    started: float = 0.0
    ended: float = 0.0

    @property
    def answered(self):
        return self.by.total()

    @property
    def failed(self):
        return self.sent - self.answered

    def of(self, cluster):
        return sum(n for name, n in self.by.items() if WEB_BACKENDS[name][0] == cluster)

    def percent(self, n):
        return 100 * n / max(1, self.answered)

    def __add__(self, other):
        return Count(self.sent + other.sent, self.by + other.by)


class Meter:
    """Sends requests from the client's namespace, one short connection a time, and keeps the sum."""

    def __init__(self, lab):
        self.lab = lab
        self.total = Count()

    def ask(self, n):
        started = time.monotonic()
        done = self.lab.exec("client", ["taskset", "-c", str(SUPPORT_CPU), "nghttp", "-s", "-m",
                                        str(n), "-t", REQUEST_TIMEOUT, URL + WHO], check=False)
        lines = done.stdout.splitlines()
        by = collections.Counter(line for line in lines if line in WEB_BACKENDS)
        good = sum(line.endswith(" " + WHO) and line.split()[4] == "200" for line in lines)
        if good < by.total():
            raise ValueError(f"{by.total()} bodies, but {good} answers with status 200")
        count = Count(n, by, started, time.monotonic())
        self.total += count
        return count
