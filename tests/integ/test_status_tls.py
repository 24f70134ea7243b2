# SPDX-License-Identifier: Apache-2.0
"""The gRPC status port with TLS: who may ask, whose certificate is seen, what many clients or a lack of descriptors do
to it, what is said at the end, and what is told of a bad configuration."""

import json
import os
import subprocess
import sys
import time

import pytest

import resources
from lab import wait_until
from pki import Pki, replace
from takeover_world import follow
from test_certs import CA, CERT, KEY
from test_daemon import check
from test_tls import provider
from testbed import EXAMPLE, EXIT_TIMEOUT_S
from world import ROUTES

HOST, PORT = "127.0.0.1", "50052"
ADDRESS = f"{HOST}:{PORT}"
WAIT_S = 45
CONNECTIONS = 64  # of the status port, at most
# Of one connection: its own descriptor, that which tells of its end, and two of a pair of sockets.
EACH = 4
SLACK = 40
N_ROUTES = 1000  # a hundred answers with so many are more than sockets hold
FULL = 10_000  # bytes

# usage: ADDRESS CA [CERTIFICATE KEY]; "" = in the clear
CLIENT = """
import pathlib, sys, grpc
address, ca, *own = sys.argv[1:]
files = [pathlib.Path(path).read_bytes() for path in (ca, *reversed(own)) if path]
options = [("grpc.max_receive_message_length", -1)]
channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(*files), options) if files else \\
    grpc.insecure_channel(address, options)
health = "/grpc.health.v1.Health/"
"""
# Prints "OK" and how many bytes the configuration has, or the error.
ASK = CLIENT + """
try:
    assert channel.unary_unary(health + "Check")(b"", timeout=10) == b"\\x08\\x01"
    fetch = channel.unary_unary("/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus")
    print("OK", len(fetch(b"", timeout=10)))
except grpc.RpcError as error:
    print(error.code().name, error.details())
"""
# Prints each status, and then how the call ended.
WATCH = CLIENT + """
call = channel.unary_stream(health + "Watch")(b"")
try:
    for message in call:
        print(message.hex(), flush=True)
except grpc.RpcError:
    pass
print(call.code().name, call.details(), flush=True)
"""
# Opens so many connections, which say nothing.
HOLD = """
import socket, sys, time
held = [socket.create_connection((sys.argv[1], int(sys.argv[2])), 5) for i in range(int(sys.argv[3]))]
print("held", flush=True)
time.sleep(60)
"""


# usage: HOST PORT tls|clear. Asks for the configuration a hundred times, in windows without an end, and reads nothing
# then. Its segments are small, and so is what sockets hold.
DEAF = """
import socket, ssl, sys, time, h2.connection, h2.settings
PATH = "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus"
client = socket.socket()
client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
client.connect((sys.argv[1], int(sys.argv[2])))
if sys.argv[3] == "tls":
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    client = context.wrap_socket(client)
peer = h2.connection.H2Connection()
peer.initiate_connection()
peer.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 2**31 - 1})
peer.increment_flow_control_window(2**31 - 1 - 65535)
for stream in range(1, 200, 2):
    peer.send_headers(stream, [(":method", "POST"), (":scheme", "http"), (":authority", "x"), (":path", PATH),
                               ("te", "trailers"), ("content-type", "application/grpc")])
    peer.send_data(stream, bytes(5), end_stream=True)
client.sendall(peer.data_to_send())
print("asked", flush=True)
time.sleep(120)
"""


# Connects as soon as it can; prints whether it is answered.
FIRST = """
import socket, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[3])
context.check_hostname = False
context.set_alpn_protocols(["h2"])
print("begins", flush=True)
while True:
    try:
        client = socket.create_connection((sys.argv[1], int(sys.argv[2])), 15, ("127.0.0.2", 0))  # not to itself
        break
    except ConnectionRefusedError:
        pass
try:
    print(context.wrap_socket(client).version(), flush=True)
except OSError as error:
    print("hung up on:", error, flush=True)
"""


@pytest.fixture(name="made")
def fixture_made(tmp_path):
    made = Pki(tmp_path / "pki")
    for name in ("ca", "strangers"):
        made.authority(name)
    for name, authority in (("server", "ca"), ("next", "ca"), ("client", "ca"), ("stranger", "strangers")):
        made.leaf(name, authority)
    return made


def bootstrap(made):
    text = json.loads((EXAMPLE / "bootstrap.json").read_text())
    at = made.folder
    text["certificate_providers"] = {
        "own": provider(**{CERT: at / "server.pem", KEY: at / "server.key"}), "ca": provider(**{CA: at / "ca.pem"})}
    path = at / "bootstrap.json"
    path.write_text(json.dumps(text))
    return {"GRPC_XDS_BOOTSTRAP": str(path)}


def start(make_world, made, tls, settings=""):
    return start_in(make_world().bed, made, tls, settings)


def start_in(bed, made, tls, settings=""):
    tls = f", tls: {tls}" if tls else ""
    bed.settings = f"csds: {{listen: '{ADDRESS}'{tls}}}\n{settings}"
    bed.start_xds()
    bed.start_daemon(env=bootstrap(made))
    return bed


def unread(bed):
    """Bytes that wait in sockets of the status port's side."""
    lines = bed.lab.exec("lb", ["ss", "-Htn", "sport", "=", f":{PORT}"]).stdout.splitlines()
    return max((int(line.split()[2]) for line in lines), default=0)


def own(made, name=None):
    """The files of a client that trusts our authority, with this certificate."""
    files = [made.folder / "ca.pem"]
    if name:
        files += [made.folder / f"{name}.pem", made.folder / f"{name}.key"]
    return [str(path) for path in files]


def ask(bed, words):
    return bed.lab.exec("lb", [sys.executable, "-c", ASK, ADDRESS, *words], timeout=60).stdout.split()[0]


def seen(bed):
    """The certificate that a new client sees, in PEM. What else it hears is no text."""
    line = f"openssl s_client -connect {ADDRESS} -alpn h2 < /dev/null | openssl x509"
    return bed.lab.exec("lb", ["sh", "-c", line], check=False).stdout


def counter(bed, name):
    return bed.show("info")[name]


def test_only_clients_with_a_certificate_of_its_cas_may_ask_the_status_port(make_world, made):
    """TLS-222, TH-62."""
    bed = start(make_world, made, "{certificate: own, ca: ca}")
    assert ask(bed, own(made, "client")) == "OK"
    assert counter(bed, "status_connections_refused") == 0
    for words in (own(made), own(made, "stranger"), [""]):
        before = counter(bed, "status_connections_refused")
        assert ask(bed, words) == "UNAVAILABLE"
        assert counter(bed, "status_connections_refused") > before
    assert ask(bed, own(made, "client")) == "OK"
    said = bed.daemon.output()
    assert "reason=no_peer_certificate" in said, said
    wait_until(lambda: counter(bed, "status_connections") == 0, WAIT_S, "all have gone")


def test_the_first_client_of_the_status_port_is_answered(make_world, made):
    """TLS-224: it waits until the files of the start have been looked at."""
    bed = make_world().bed
    first = bed.lab.start("lb", "first", [sys.executable, "-c", FIRST, HOST, PORT, str(made.folder / "ca.pem")])
    wait_until(lambda: "begins" in first.output(), WAIT_S, "the client")
    start_in(bed, made, "{certificate: own}")
    wait_until(lambda: "TLSv1.3" in first.output() or "hung up" in first.output(), WAIT_S, "an answer")
    assert "TLSv1.3" in first.output(), first.output() + bed.daemon.output()
    assert counter(bed, "status_connections_refused") == 0


def test_the_status_ports_certificate_changes_and_a_bad_one_changes_nothing(make_world, made):
    """TLS-224."""
    (made.folder / "server.pem").rename(made.folder / "later.pem")
    bed = start(make_world, made, "{certificate: own}")
    assert ask(bed, own(made)) == "UNAVAILABLE" and ask(bed, [""]) == "UNAVAILABLE"
    assert "reason=no_credential" in bed.daemon.output()
    replace(made.folder / "server.pem", made.pem("later"))
    wait_until(lambda: seen(bed) == made.pem("later"), WAIT_S, "the first certificate")
    assert ask(bed, own(made)) == "OK"
    replace(made.folder / "server.key", made.key("next"))
    replace(made.folder / "server.pem", made.pem("next"))
    wait_until(lambda: seen(bed) == made.pem("next"), WAIT_S, "the next certificate")
    assert ask(bed, own(made)) == "OK"
    replace(made.folder / "server.pem", "garbage")
    wait_until(lambda: any(p["provider"] == "own" and p["error"] for p in bed.show("certs")["providers"]), WAIT_S,
               "the error")
    assert seen(bed) == made.pem("next") and ask(bed, own(made)) == "OK"


def descriptors(bed):
    return {int(name) for name in os.listdir(f"/proc/{bed.daemon.pid}/fd")}


def test_who_says_nothing_takes_no_place_from_who_asks(make_world, made):
    """OPS-285, TH-62."""
    bed = start(make_world, made, "{certificate: own}")
    before = len(descriptors(bed))
    holder = bed.lab.start("lb", "holder", [sys.executable, "-c", HOLD, HOST, PORT, "300"])
    wait_until(lambda: "held" in holder.output(), WAIT_S, "300 connections")
    assert ask(bed, own(made)) == "OK"
    wait_until(lambda: len(descriptors(bed)) <= before + EACH * CONNECTIONS + SLACK, WAIT_S, "the oldest ones are gone")
    assert counter(bed, "status_connections") <= CONNECTIONS
    assert counter(bed, "status_connections_cut") >= 300 - CONNECTIONS
    wait_until(lambda: counter(bed, "status_connections") == 0, WAIT_S, "those that did not shake hands are gone")
    wait_until(lambda: len(descriptors(bed)) < before + SLACK, WAIT_S, "and their descriptors")
    assert counter(bed, "status_connections_refused") == 300
    holder.kill()


def limit(bed, n):
    subprocess.run(["prlimit", "--pid", str(bed.daemon.pid), f"--nofile={n}:4096"], check=True)


def test_without_descriptors_nobody_is_answered_and_with_them_everybody_is_again(make_world, made):
    """OPS-286."""
    bed = start(make_world, made, "{certificate: own}")
    assert ask(bed, own(made)) == "OK"
    wait_until(lambda: counter(bed, "status_connections") == 0, WAIT_S, "its end")
    before = descriptors(bed)
    free = [n for n in range(len(before) + EACH) if n not in before]
    limit(bed, free[0])
    assert ask(bed, own(made)) != "OK"
    for n in free[1:EACH]:  # as many as a connection has, but one, if nobody else takes any
        limit(bed, n)
        ask(bed, own(made))
    limit(bed, 4096)
    assert ask(bed, own(made)) == "OK"
    wait_until(lambda: len(descriptors(bed)) <= len(before), WAIT_S, "none of them stays open")


def watch(bed, words):
    watcher = bed.lab.start("lb", "watcher", [sys.executable, "-c", WATCH, ADDRESS, *words])
    wait_until(lambda: "0801" in watcher.output(), WAIT_S, "SERVING")
    return watcher


def heard_last(watcher):
    wait_until(lambda: "UNAVAILABLE" in watcher.output(), WAIT_S, "the end")
    return watcher.output().splitlines()[-2:]


@pytest.mark.ends_daemon
def test_watchers_hear_by_tls_why_the_daemon_ends(make_world, made):
    """OPS-286."""
    bed = start(make_world, made, "{certificate: own}")
    watcher = watch(bed, own(made))
    assert bed.daemon.stop(EXIT_TIMEOUT_S) == 0
    assert heard_last(watcher) == ["0802", "UNAVAILABLE the server ends"]


@pytest.mark.ends_daemon
@pytest.mark.parametrize("how", ("clear", "tls"))
def test_a_client_that_reads_nothing_does_not_hold_up_the_end(make_world, made, how):
    """OPS-292."""
    world = make_world()
    routes = [resources.route(f"/{n}.Service/", "rpc") for n in range(N_ROUTES)]
    world.set_routes(resources.route_config(ROUTES, resources.virtual_host("all", ["*"], *routes)))
    bed = start_in(world.bed, made, "{certificate: own}" if how == "tls" else None)
    deaf = bed.lab.start("lb", "deaf", [sys.executable, "-c", DEAF, HOST, PORT, how])
    wait_until(lambda: "asked" in deaf.output(), WAIT_S, deaf.name)
    wait_until(lambda: unread(bed) > FULL, WAIT_S, "answers that wait for their reader")
    time.sleep(1)  # nothing changes any more
    began = time.monotonic()
    assert bed.daemon.stop(EXIT_TIMEOUT_S) == 0
    assert "waiting_for" not in bed.daemon.output(), bed.daemon.output()
    assert time.monotonic() - began < EXIT_TIMEOUT_S / 2 and deaf.alive()


def test_watchers_of_a_process_that_is_followed_hear_it_and_the_newer_one_answers(make_world, made, lab):
    """OPS-286."""
    bed = start(make_world, made, "{certificate: own, ca: ca}", f"takeover_socket: {lab.dir}/takeover.sock\n")
    watcher = watch(bed, own(made, "client"))
    older = follow(bed, 2, env=bootstrap(made))
    assert ask(bed, own(made, "client")) == "OK"
    assert heard_last(watcher) == ["0801", "UNAVAILABLE the server ends"]
    assert ask(bed, own(made)) == "UNAVAILABLE"
    assert older.wait(EXIT_TIMEOUT_S) == 0


@pytest.mark.parametrize("tls, texts", (
    ("{certificate: own, ca: ca}", ()),
    ("{certificate: nobody}", ("csds.tls.certificate", '"nobody"')),
    ("{certificate: ca}", ("csds.tls.certificate", '"ca"', "certificate_file")),
    ("{certificate: own, ca: nobody}", ("csds.tls.ca", '"nobody"')),
    ("{certificate: own, ca: own}", ("csds.tls.ca", '"own"', "ca_certificate_file")),
    ("{ca: ca}", ("csds", "certificate")),
))
def test_check_names_what_the_status_port_cannot_use(made, tmp_path, tls, texts):
    """TLS-224."""
    config = tmp_path / "shunt.yaml"
    config.write_text((EXAMPLE / "shunt.yaml").read_text() + f"csds: {{listen: '{ADDRESS}', tls: {tls}}}\n")
    done = check(config, **bootstrap(made))
    assert done.returncode == (1 if texts else 0), done.stderr
    assert all(text in done.stderr for text in texts), done.stderr
