# SPDX-License-Identifier: Apache-2.0
"""The peers of tools/compare: each with one worker, and the configuration that suits it best."""

import json
import pathlib

import envoy_proxy
import haproxy
import resources
from compare_bed import BACKEND, BACKEND_PORT, OnVeth, cores, first, prefixes, said
from testbed import PORT, VIP

ENVOY = sorted(pathlib.Path(__file__).resolve().parents[2].glob(
    ".venv/lib/python3*/site-packages/envoy/_bin/envoy"))
FILES = 16384  # descriptors


class HAProxy(OnVeth):
    name = "haproxy"

    @staticmethod
    def version():
        return said(["haproxy", "-v"], "version ")

    def start(self):
        config = self.lab.dir / "haproxy.cfg"
        table = self.lab.dir / "routes.map"  # its fastest way: a tree of prefixes
        table.write_text("".join(f"{p} back\n" for p in prefixes(self.n_routes)))
        uses = f"  use_backend %[path,map_beg({table})]\n" if self.n_routes > 1 else ""
        config.write_text(haproxy.configuration(VIP, PORT, (BACKEND, BACKEND_PORT), uses))
        return self.lab.start("lb", self.name, first("haproxy", "-db", "-f", config), cpu=cores()[0], files=FILES)


class Nghttpx(OnVeth):
    name = "nghttpx"

    @staticmethod
    def version():
        return said(["nghttpx", "--version"], "nghttpx ")

    def start(self):
        config = self.lab.dir / "nghttpx.conf"
        patterns = ":".join(["/", *prefixes(self.n_routes)])
        config.write_text(f"backend={BACKEND},{BACKEND_PORT};{patterns};proto=h2\n")
        return self.lab.start("lb", self.name, first(
            "nghttpx", f"-f{VIP},{PORT};no-tls", "-n1", "--frontend-http2-max-concurrent-streams=1000",
            f"--conf={config}"), cpu=cores()[0], files=FILES)


class Nginx(OnVeth):
    name = "nginx"

    @staticmethod
    def version():
        return said(["nginx", "-v"], "nginx/")

    def start(self):
        config = self.lab.dir / "nginx.conf"
        locations = "\n".join(f"    location {p} {{ grpc_pass grpc://back; }}"
                              for p in prefixes(self.n_routes))
        config.write_text(f"""\
daemon off;
worker_processes 1;
pid {self.lab.dir}/nginx.pid;
error_log {self.lab.dir}/nginx.err crit;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  http2_max_concurrent_streams 1000;
  upstream back {{ server {BACKEND}:{BACKEND_PORT}; keepalive 512; keepalive_requests 1000000000; }}
  server {{
    listen {VIP}:{PORT} http2;
    location / {{ grpc_pass grpc://back; }}
{locations}
  }}
}}
""")
        return self.lab.start("lb", self.name, first("nginx", "-c", config), cpu=cores()[0], files=FILES)


class Envoy(OnVeth):
    name = "envoy"

    @staticmethod
    def version():
        return said([ENVOY[-1], "--version"], "version: ").split("/")[1]

    def start(self):
        routes = resources.route_config("routes", resources.virtual_host(
            "all", ["*"], *(resources.route(p, "back") for p in prefixes(self.n_routes)),
            resources.route("/", "back")))
        config = envoy_proxy.configuration(routes, {"back": [(BACKEND, BACKEND_PORT)]}, [])
        config["static_resources"]["listeners"][0]["address"] = envoy_proxy.address_of(VIP, PORT)
        limits = {name: 1_000_000 for name in ("max_connections", "max_requests", "max_pending_requests")}
        config["static_resources"]["clusters"][0]["circuit_breakers"] = {"thresholds": [limits]}
        path = self.lab.dir / "envoy.json"
        path.write_text(json.dumps(config))
        return self.lab.start("lb", self.name, first(
            ENVOY[-1], "-c", path, "-l", "error", "--concurrency", "1", "--disable-hot-restart"),
            cpu=cores()[0], files=FILES)
