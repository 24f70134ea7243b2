# SPDX-License-Identifier: Apache-2.0
"""Backends behind an HTTP proxy (gRFC A86): clusters and endpoints, good ones and bad ones, as cluster_table and
endpoint_table have them; and answers of a proxy, each with what it means to whom."""

import dataclasses
import sys

from cluster_table import CLUSTER, SOCKETS, changed
from cluster_table import bad as bad_cluster
from cluster_table import good as good_cluster
from endpoint_table import BETA, FIRST, UNREACHABLE, assignment, bad, endpoint, good, locality, of, socket
from lab import wait_until
from resources import TYPES
from testbed import HERE
from tls_table import UPSTREAM, trusting
from validation_table import ACK, UNKNOWN_FIELD, Row

WRAPPER = SOCKETS + "http_11_proxy.v3.Http11ProxyUpstreamTransport"
RAW = SOCKETS + "raw_buffer.v3.RawBuffer"
TLS = {"name": "envoy.transport_sockets.tls", "typed_config": {"@type": UPSTREAM, "common_tls_context": trusting()}}
ADDRESS = TYPES + "config.core.v3.Address"
KEY = "envoy.http11_proxy_transport_socket.proxy_address"
PROXY_IP, PROXY_PORT = "10.82.3.1", 3128
DEAD_PORT = 3129  # nobody listens there


def wrapped(inner=None):
    """A transport socket; inner: that which is behind the proxy."""
    inside = {"transport_socket": inner} if inner is not None else {}
    return {"name": "proxy", "typed_config": {"@type": WRAPPER, **inside}}


def by_proxy(ip=PROXY_IP, port=PROXY_PORT, key=KEY):
    """Metadata of an endpoint or a locality."""
    return metadata({"@type": ADDRESS, **socket(ip, port)["address"]}, key)


def metadata(value, key=KEY):
    return {"typed_filter_metadata": {key: value}}


def start_proxy(bed, mode):
    """connect_agent.py, which does what the text says."""
    word = bed.lab.dir / "mode"
    word.write_text(mode)
    bed.add_backend_address(PROXY_IP)
    agent = bed.lab.start("backends", "proxy", [
        sys.executable, HERE / "connect_agent.py", PROXY_IP, str(PROXY_PORT), word])
    wait_until(lambda: "listens" in agent.output(), 45, "the proxy")
    return agent


# -- verdicts

NOT_READ = "ACK: it does not read them (CL-07)"


def connect_cluster_rows():
    where = "transport_socket"
    raw = {"name": "raw", "typed_config": {"@type": RAW}}
    yield good_cluster("around nothing (HC-01)", changed(transport_socket=wrapped()))
    yield good_cluster("around plain text (HC-01)", changed(transport_socket=wrapped(raw)),
                       core="NACK: it has no name for it")
    yield Row("around TLS (HC-01)", ACK, resource=changed(transport_socket=wrapped(TLS)))
    yield Row("around TLS by another name (HC-01)", ACK, resource=changed(transport_socket=wrapped(
        {**TLS, "name": "t"})))
    yield good_cluster("by another name (HC-01)", changed(transport_socket={**wrapped(), "name": "t"}))
    yield good_cluster("an unknown field (HC-01)", changed(transport_socket=wrapped()),
                       patch=[["transport_socket.typed_config", UNKNOWN_FIELD]])
    yield bad_cluster("around itself (HC-02)", changed(transport_socket=wrapped(wrapped())), where, WRAPPER)
    yield bad_cluster("around TLS of servers (HC-02)", changed(transport_socket=wrapped(
        {"name": "t", "typed_config": {"@type": SOCKETS + "tls.v3.DownstreamTlsContext"}})), where,
        "DownstreamTlsContext")
    yield bad_cluster("around TLS without CAs (HC-02)", changed(transport_socket=wrapped(
        {**TLS, "typed_config": {"@type": UPSTREAM}})), where, "common_tls_context")
    yield bad_cluster("around no config (HC-02)", changed(transport_socket=wrapped({"name": "t"})), where,
                      "typed_config")
    matches = [{"name": "m", "match": {}, "transport_socket": wrapped()}]
    yield bad_cluster("by match (HC-03)", changed(transport_socket_matches=matches), where + "_matches[0]",
                      core=NOT_READ)
    beside = [{"name": "m", "match": {}, "transport_socket": raw}]
    yield bad_cluster("beside matches (HC-03)", changed(
        transport_socket=wrapped(), transport_socket_matches=beside), where + "_matches", core=NOT_READ)


def connect_endpoint_rows():
    """Of a cluster with the wrapper around nothing. One whose proxy is nobody cannot be reached."""
    dead = by_proxy(port=DEAD_PORT)
    yield good("a proxy (HC-04)", of(endpoint(metadata=by_proxy())))
    yield good("a locality's proxy (HC-04)", assignment(locality(endpoint(), metadata=by_proxy())))
    yield good("an endpoint's proxy before its locality's (HC-04)", assignment(
        locality(endpoint(metadata=by_proxy()), metadata=dead)))
    yield good("one that is dead (HC-06)", of(endpoint(metadata=dead)), UNREACHABLE)
    yield good("a locality's that is dead (HC-06)", assignment(locality(endpoint(), metadata=dead)), UNREACHABLE)
    yield good("a value of another type (HC-05)", of(endpoint(metadata=metadata({"@type": RAW}))))
    yield good("an endpoint's of another type before its locality's (HC-04)", assignment(
        locality(endpoint(metadata=metadata({"@type": RAW})), metadata=by_proxy())))
    yield good("another key (HC-05)", of(endpoint(metadata=by_proxy(port=DEAD_PORT, key="x"))))
    yield good("the key among the untyped (HC-05)", of(endpoint(metadata={"filter_metadata": {KEY: {"a": 1}}})))
    yield good("nothing at all (HC-06)", of(endpoint()))
    yield from bad_proxy_rows()


def bad_proxy_rows():
    def proxy_of(**address):
        return metadata({"@type": ADDRESS, **address})
    in_ip = {"address": PROXY_IP}
    for label, value, texts, more in (
            ("no address", proxy_of(), ("no socket_address",), {}),
            ("a pipe", proxy_of(pipe={"path": "/x"}), ("no socket_address",), {}),
            ("no IP", proxy_of(socket_address={"port_value": 1}), ("is not an IP address",), {}),
            ("a name", by_proxy("proxy.test"), ("proxy.test",), {}),
            ("no port", proxy_of(socket_address=in_ip), ("no port_value",), {"core": PORT_0}),
            ("port 0", by_proxy(port=0), ("port 0",), {"core": PORT_0}),
            ("port 65536", by_proxy(port=65536), ("port 65536",), {}),
            ("a named port", proxy_of(socket_address={**in_ip, "named_port": "http"}), ("no port_value",),
             {"core": PORT_0})):
        yield bad(f"{label} (HC-05)", of(endpoint(metadata=value)), FIRST, KEY, *texts, **more)
    yield bad("a locality's that is a name (HC-05)", assignment(locality(endpoint(), metadata=by_proxy("x"))),
              "endpoints[0]", KEY)
    yield bad("an unhealthy endpoint's (HC-05)", of(
        endpoint(), endpoint("192.0.2.1", health_status="UNHEALTHY", metadata=by_proxy("x"))), KEY,
        core="ACK: it skips those first")
    yield good("a name under another key (HC-05)", of(endpoint(metadata=by_proxy("x", key="x"))),
               core="NACK: it looks at each Address")
    yield good("a name in a locality without weight (CL-05)", assignment(
        locality(endpoint()), locality(zone="y", weight=0, metadata=by_proxy("x"))))


PORT_0 = "ACK: no port is port 0 to it"


# -- what answers mean

@dataclasses.dataclass
class Answer:
    """Of a proxy, to CONNECT."""
    label: str
    text: bytes
    opens: bool  # for us
    # Why gRPC C-core and Go see it differently; "" = they do not. None: it depends, since they take bytes from behind
    # for a body, if they are there already.
    core: str | None = ""
    go: str | None = ""
    envoy: str = ""
    behind: bool = False  # what the backend says first is sent with the answer, in one piece


def status(line, fields=b"", **more):
    return Answer(line.decode(), b"HTTP/1.1 " + line + b"\r\n" + fields + b"\r\n", **more)


ONLY_200 = "200 alone opens to it"
TAKEN = "it is taken"
FIRST_COUNTS = "the first counts"
ANSWERS = (
    status(b"200 Connection established", opens=True),
    Answer("HTTP/1.0", b"HTTP/1.0 200 OK\r\nProxy-agent: x\r\n\r\n", True),
    Answer("the backend's first bytes in one piece with it", b"HTTP/1.1 200 OK\r\n\r\n", True, behind=True),
    status(b"200 a length", b"Content-Length: 5\r\n", opens=True, go=None),
    status(b"200 chunks", b"Transfer-Encoding: chunked\r\n", opens=True, core=None, go=None),
    status(b"200 long", b"X-Long: " + b"a" * 4000 + b"\r\n", opens=True, envoy="2000 bytes are too many"),
    status(b"204 No Content", opens=True, go=ONLY_200, envoy=ONLY_200),
    status(b"299 x", opens=True, go=ONLY_200, envoy=ONLY_200),
    status(b"101 Switching Protocols", opens=False),
    status(b"300 x", opens=False),
    status(b"403 Forbidden", b"Content-Length: 0\r\n", opens=False),
    status(b"407 Proxy Authentication Required", b"Proxy-Authenticate: Basic\r\n", opens=False),
    status(b"502 Bad Gateway", b"Content-Length: 3\r\n\r\nno.", opens=False),
    Answer("100 before it", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", True, core=FIRST_COUNTS,
           go=FIRST_COUNTS, envoy=FIRST_COUNTS),
    Answer("garbage", b"\x15\x03\x01\x00\x02\x02\x50", False),
    Answer("HTTP/2.0", b"HTTP/2.0 200 OK\r\n\r\n", False, go=TAKEN, envoy=TAKEN),
    Answer("no CR", b"HTTP/1.1 200 OK\n\n", False, core=TAKEN, go=TAKEN, envoy=TAKEN),
    Answer("a folded line", b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", False, go=TAKEN, envoy=TAKEN),
    Answer("a field without name", b"HTTP/1.1 200 OK\r\n: a\r\n\r\n", False, core=TAKEN),
    Answer("more than 8 KiB", b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 2000 + b"\r\n", False, core=TAKEN, go=TAKEN),
)
