# SPDX-License-Identifier: Apache-2.0
"""The peers of tools/compare: each with one worker, and the configuration that suits it best."""

import json
import pathlib

import compare_ways
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
        bind, server = "proto h2", "proto h2"
        if self.way.http1:  # h2load takes no status line without a reason
            bind = ""
            uses += "  http-response set-status 200 reason OK\n"
        if self.way.front:
            bind = f"ssl crt {self.credentials.path('front.both')} alpn h2"
        if self.way.back:
            server = (f"proto h2 ssl verify required ca-file {self.credentials.path('ca.pem')} alpn h2 "
                      f"sni str({compare_ways.BACKEND_NAME})")
        config.write_text(haproxy.configuration(VIP, PORT, (BACKEND, BACKEND_PORT), uses, bind, server))
        return self.lab.start("lb", self.name, first("haproxy", "-db", "-f", config), cpu=cores()[0], files=FILES)


class Nghttpx(OnVeth):
    name = "nghttpx"

    @staticmethod
    def version():
        return said(["nghttpx", "--version"], "nghttpx ")

    def start(self):
        config = self.lab.dir / "nghttpx.conf"
        patterns = ":".join(["/", *prefixes(self.n_routes)])
        tls = f";tls;sni={compare_ways.BACKEND_NAME}" if self.way.back else ""
        config.write_text(f"backend={BACKEND},{BACKEND_PORT};{patterns};proto=h2{tls}\n")
        words = ["--tls-min-proto-version=TLSv1.3"]
        if self.way.back:
            words.append(f"--cacert={self.credentials.path('ca.pem')}")
        if self.way.front:
            words += [self.credentials.path("front.key"), self.credentials.path("front.pem")]
        return self.lab.start("lb", self.name, first(
            "nghttpx", f"-f{VIP},{PORT}{'' if self.way.front else ';no-tls'}", "-n1",
            "--frontend-http2-max-concurrent-streams=1000", f"--conf={config}", *words), cpu=cores()[0], files=FILES)


class Nginx(OnVeth):
    name = "nginx"

    @staticmethod
    def version():
        return said(["nginx", "-v"], "nginx/")

    def start(self):
        config = self.lab.dir / "nginx.conf"
        scheme = "grpcs" if self.way.back else "grpc"
        locations = "\n".join(f"    location {p} {{ grpc_pass {scheme}://back; }}"
                              for p in prefixes(self.n_routes))
        listen, tls = ("" if self.way.http1 else "http2"), []
        if self.way.front:
            listen = "ssl http2"
            tls = [f"ssl_certificate {self.credentials.path('front.pem')}",
                   f"ssl_certificate_key {self.credentials.path('front.key')}", "ssl_protocols TLSv1.3",
                   "ssl_session_tickets off", "ssl_session_cache off"]
        if self.way.back:
            tls += [f"grpc_ssl_trusted_certificate {self.credentials.path('ca.pem')}", "grpc_ssl_verify on",
                    "grpc_ssl_server_name on", f"grpc_ssl_name {compare_ways.BACKEND_NAME}",
                    "grpc_ssl_protocols TLSv1.3"]
        tls = "\n".join(f"    {line};" for line in tls)
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
    listen {VIP}:{PORT} {listen};
{tls}
    location / {{ grpc_pass {scheme}://back; }}
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
        listener = config["static_resources"]["listeners"][0]
        listener["address"] = envoy_proxy.address_of(VIP, PORT)
        chain = listener["filter_chains"][0]
        if self.way.http1:
            chain["filters"][0]["typed_config"]["codec_type"] = "HTTP1"
        if self.way.front:
            chain["transport_socket"] = self.credentials.of_envoy()[0]
        if self.way.back:
            config["static_resources"]["clusters"][0]["transport_socket"] = self.credentials.of_envoy()[1]
        limits = {name: 1_000_000 for name in ("max_connections", "max_requests", "max_pending_requests")}
        config["static_resources"]["clusters"][0]["circuit_breakers"] = {"thresholds": [limits]}
        path = self.lab.dir / "envoy.json"
        path.write_text(json.dumps(config))
        return self.lab.start("lb", self.name, first(
            ENVOY[-1], "-c", path, "-l", "error", "--concurrency", "1", "--disable-hot-restart"),
            cpu=cores()[0], files=FILES)
