# SPDX-License-Identifier: Apache-2.0
"""Both roles with gRPC and its xDS credentials (A29): a client whose cluster is our frontend, and a server of gRPC
behind us. Both hear of it from servers of their own, out of the folder that shuntd is served; either side shows a
certificate."""

import json
import os

import pytest

import resources
from conftest import check_end
from go_build import go_build
from lab import LabError, wait_until
from lab_fixtures import module_lab_of
from resources import HTTP_MANAGER, ROUTER
from test_certs import CA, CERT, KEY
from test_tls import BACKEND, TlsWorld, provider
from testbed import EXAMPLE, PORT, VIP
from tls_table import DOWNSTREAM
from world import RPC_PATH

LISTENER = "grpc/server?listener={}"
SERVER, SERVER_PORT = "secure-rpc", 9443
GO, GO_PORT = "grpc-go", 9444
OLD, OLD_PORT = "grpc-go-1.2", 9445  # TLS 1.2, to which neither xDS nor C-core can be told to keep
GO_CALLS = 200
MEBIBYTE = 1 << 20
READY_S = 60  # the backoff has grown while the program was built
TARGET, STRICT = "front", "strict"  # Listeners of clients: one has another name to match
MEBIBYTES = int(os.environ.get("SHUNT_TLS_MEGABYTES", "10"))
CALLS_S = 60


def server_listener(ip, port):
    """Of a gRPC server, which answers by itself."""
    manager = {
        "@type": HTTP_MANAGER, "http_filters": [{"name": "router", "typed_config": {"@type": ROUTER}}],
        "route_config": {"name": "own", "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
            {"match": {"prefix": "/"}, "non_forwarding_action": {}}]}]}}
    common = {"tls_certificate_provider_instance": {"instance_name": "own"},
              "validation_context": {"ca_certificate_provider_instance": {"instance_name": "ca"}}}
    return {"@type": resources.LISTENER, "name": LISTENER.format(f"{ip}:{port}"),
            "address": {"socket_address": {"address": ip, "port_value": port}},
            "filter_chains": [{"filters": [{"name": "hcm", "typed_config": manager}], "transport_socket": {
                "name": "envoy.transport_sockets.tls", "typed_config": {
                    "@type": DOWNSTREAM, "common_tls_context": common, "require_client_certificate": True}}}]}


def client_resources(name, wanted):
    """An API listener whose only cluster is our frontend, if it bears this name."""
    cluster = TlsWorld.cluster(f"{name}-cluster", names=[wanted])
    common = cluster["transport_socket"]["typed_config"]["common_tls_context"]
    common["tls_certificate_provider_instance"]["instance_name"] = "own"
    routes = resources.virtual_host("all", ["*"], resources.route("/", f"{name}-cluster"))
    return [resources.listener(name, f"{name}-routes"), resources.route_config(f"{name}-routes", routes), cluster,
            resources.endpoints(f"{name}-cluster", (VIP, PORT))]


def bootstrap(world, own):
    """Of gRPC, with this certificate."""
    made = json.loads((EXAMPLE / "bootstrap.json").read_text())
    made["server_listener_resource_name_template"] = LISTENER.format("%s")
    at = world.pki.folder
    made["certificate_providers"] = {
        "own": provider(**{CERT: at / f"{own}.pem", KEY: at / f"{own}.key"}), "ca": provider(**{CA: at / "ca.pem"})}
    path = world.folder / f"grpc-{own}.json"
    path.write_text(json.dumps(made))
    return {"GRPC_XDS_BOOTSTRAP": str(path)}


@pytest.fixture(name="secured", scope="module")
def fixture_secured(request, tmp_path_factory):
    with module_lab_of(request) as lab:
        made = TlsWorld(lab, tmp_path_factory.mktemp("grpc"), mutual=True, names=["web.example"], sni="web.example",
                        peers={SERVER: SERVER_PORT, GO: GO_PORT, OLD: OLD_PORT})
        made.world.extra_routes += (resources.route(RPC_PATH, SERVER),)
        made.world.extra += (server_listener(BACKEND, SERVER_PORT), server_listener(BACKEND, GO_PORT),
                             *client_resources(TARGET, "front.example"), *client_resources(STRICT, "other.example"))
        made.world.set_weights(75, 25)
        for ns in ("client", "backends"):
            made.bed.start_xds(ns=ns)
        server = made.bed.start_grpc_backend("secure", BACKEND, SERVER_PORT, ["xds"], env=bootstrap(made, "back"))
        made.bed.wait_connect("backends", BACKEND, SERVER_PORT, server)
        yield made.start()
        check_end(made.bed)


def calls(secured, scenario, target=f"xds:///{TARGET}", own="client", **arguments):
    name = f"calls-{scenario}-{len(secured.bed.lab.processes)}"
    process = secured.bed.start_calls(name, scenario, target=target, env=bootstrap(secured, own), **arguments)
    return secured.bed.calls_result(process, CALLS_S)


@pytest.mark.parametrize("scenario", (
    "unary", "server_streaming", "client_streaming", "bidi", "big_message", "statuses"))
def test_grpc_on_both_sides_with_its_xds_credentials(secured, scenario):
    """TLS-51, TLS-56: megabytes each way among it."""
    before = secured.cluster_shown(SERVER)["requests"]
    calls(secured, scenario, **({"mib": MEBIBYTES} if scenario == "big_message" else {}))
    shown = secured.cluster_shown(SERVER)
    assert shown["tls"] == "mtls" and shown["requests"] > before, shown


def unknown_to_us(secured):
    """Clients whose certificate we did not trust. Go's show none where they have none of a CA that we name."""
    return sum(worker["tls_clients"][cause] for worker in secured.bed.show_workers()
               for cause in ("unknown_ca", "no_peer_certificate"))


@pytest.mark.parametrize("target, own, text, refused", (
    (STRICT, "client", "SANs from certificate did not match", False), (TARGET, "stranger", "UNAVAILABLE", True)),
    ids=("name", "authority"))
def test_grpc_and_we_refuse_whom_we_do_not_trust(secured, target, own, text, refused):
    """TLS-56, TLS-60: a name of ours that it does not accept, and a certificate that we do not."""
    before = unknown_to_us(secured)
    with pytest.raises(LabError, match=text):
        calls(secured, "unary", target=f"xds:///{target}", own=own, count=1)
    assert (unknown_to_us(secured) > before) == refused


@pytest.fixture(name="program", scope="module")
def fixture_program(secured, tmp_path_factory):
    """grpcgo, whose servers run."""
    program = go_build("grpcgo", ".", tmp_path_factory.mktemp("grpcgo") / "grpcgo", timeout=380)
    for name, port, more in ((GO, GO_PORT, []), (OLD, OLD_PORT, [secured.pki.folder, "1.2"])):
        server = secured.bed.lab.start("backends", name, [program, "serve", f"{BACKEND}:{port}", *more],
                                       env=bootstrap(secured, "back"))
        secured.bed.wait_connect("backends", BACKEND, port, server)
    wait_until(lambda: all(secured.cluster_shown(name)["state"] == "READY" for name in (GO, OLD)), READY_S,
               "the servers of grpc-go")
    return program


def go_calls(secured, words, *batches, own="client"):
    """[{answers: …, failures: …}] of a client of grpc-go. words: its command line; batches: [(name of the server,
    calls, bytes)]."""
    path = secured.folder / "batches"
    path.write_text("".join(json.dumps({"method": f"/{name}/Who", "count": count, "bytes": size}) + "\n"
                            for name, count, size in batches))
    said = bootstrap(secured, own)["GRPC_XDS_BOOTSTRAP"]
    line = " ".join(f"'{word}'" for word in words)
    done = secured.bed.lab.exec("client", ["sh", "-c", f"GRPC_XDS_BOOTSTRAP='{said}' {line} < '{path}'"],
                                timeout=CALLS_S + MEBIBYTES)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.timeout(450 + MEBIBYTES)  # the program is built once, of many packages
@pytest.mark.parametrize("name, version", ((GO, "1.3"), (OLD, "1.2")), ids=("xds", "1.2"))
def test_grpc_go_on_both_sides(secured, program, name, version):
    """TLS-51, TLS-56: megabytes each way among it; with its xDS credentials, and with files of its own."""
    words = [program, f"xds:///{TARGET}"] if name == GO else [program, f"{VIP}:{PORT}", secured.pki.folder, version]
    assert go_calls(secured, words, (name, GO_CALLS, 0), (name, MEBIBYTES, MEBIBYTE)) == [
        {"answers": {f"/{name}/Who to client by TLS {version}": GO_CALLS}, "failures": {}},
        {"answers": {"echo": MEBIBYTES}, "failures": {}}]


@pytest.mark.timeout(450)
@pytest.mark.parametrize("target, own, refused", ((STRICT, "client", False), (TARGET, "stranger", True)),
                         ids=("name", "authority"))
def test_grpc_go_and_we_refuse_whom_we_do_not_trust(secured, program, target, own, refused):
    """TLS-56, TLS-60."""
    before = unknown_to_us(secured)
    found, = go_calls(secured, [program, f"xds:///{target}"], (GO, 1, 0), own=own)
    assert found["answers"] == {} and "Unavailable" in str(found["failures"]), found
    assert (unknown_to_us(secured) > before) == refused
