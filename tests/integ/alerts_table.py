# SPDX-License-Identifier: Apache-2.0
"""What happens to a daemon in an hour, and which alerts that is worth. A row is a generator: it plants a fault,
yields, and heals it again. `fires` has each alert that fires, what follows from the fault included: "SEVERITY NAME
OBJECT". Where there is none, something happens that is no fault, and nobody may be told.
"""

import contextlib
import dataclasses
import signal
import typing

import resources
from alerts_world import GATEWAYS, LIMIT_S, LIVE_REQUESTS, LONG, LOSS, MOODY, NARROW, SOURCES, SPARE_PORT, TLS_PORT
from lab import wait_until
from pki import replace
from test_workers import held, worker_thread
from testbed import PORT, VIP

TYPE = "envoy.config"
CLUSTER, LISTENER = f"{TYPE}.cluster.v3.Cluster", f"{TYPE}.listener.v3.Listener"
SERVER = "127.0.0.1:18000"
STARTED = 'process_start_time_seconds{job="shunt"}'
ROWS = []
FAILURES_A_SECOND = 5


@dataclasses.dataclass
class Row:
    name: str
    plant: typing.Callable
    fires: set
    may: set  # fire, too: not told of if they do
    is_short: bool  # one of those that CI plants


def row(*fires, may=(), short=False):
    def add(plant):
        ROWS.append(Row(plant.__name__.replace("_", " "), plant, set(fires), set(may), short))
        return plant
    return add


# -- the daemon, first, since half an hour later it counts no longer

@row("page ShuntDown", "ticket ShuntRestarts")
def the_daemon_is_killed_again_and_again(w):
    for _ in range(3):
        before = w.prometheus.value(STARTED)
        w.bed.daemon.kill()
        w.start_daemon()
        wait_until(lambda: w.prometheus.value(STARTED) not in (None, before), LIMIT_S, "its start is scraped")
    w.bed.daemon.kill()
    yield
    w.start_daemon()


# -- backends

@row("ticket ShuntBackendDead green", short=True)
def a_backend_is_dead(w):
    w.backends["green-1"].kill()
    yield
    w.revive("green-1")


@row("page ShuntHalfEjected moody", short=True)
def half_of_the_endpoints_are_ejected(w):
    w.say(MOODY["moody"][1], 503)
    yield
    w.say(MOODY["moody"][1], 200)


@row("ticket ShuntEndpointUnhealthy checked", short=True)
def an_endpoint_fails_its_health_checks(w):
    w.say(MOODY["checked"][0], 503)
    yield
    w.say(MOODY["checked"][0], 200)


@row("page ShuntClusterDown green", "ticket ShuntBackendDead green", "ticket ShuntBadAnswers green",
     "page ShuntErrors web", "page ShuntErrors web-tls")
def all_backends_of_a_cluster_are_dead(w):
    for name in ("green-1", "green-2"):
        w.backends[name].kill()
    yield
    for name in ("green-1", "green-2"):
        w.revive(name)


@row("page ShuntClusterDown sealed", "ticket ShuntBackendDead sealed", short=True)
def a_backend_comes_back_with_a_certificate_of_strangers(w):
    w.backends["sealed"].kill()
    w.start_sealed("strangers")
    yield
    w.backends["sealed"].kill()
    w.start_sealed("ca")
    w.bed.shuntctl("reconnect", "sealed")


# -- the control plane

@row("page ShuntXdsServerGone " + SERVER, short=True)
def the_xds_server_is_gone(w):
    w.bed.xds.kill()
    yield
    w.bed.start_xds()


@row("ticket ShuntXdsRefused " + CLUSTER, short=True)
def the_update_of_a_cluster_is_refused(w):
    w.put(changed=[{**resources.cluster("narrow"), "lb_policy": "MAGLEV"}])
    yield
    w.put()


@row("page ShuntFrontendDown spare", "ticket ShuntXdsMissing " + LISTENER)
def a_listener_is_deleted(w):
    w.put(without=["spare"])
    yield
    w.put()


# The two seconds in which it waits for the server before it serves what it kept are twelve of this hour's.
@row("page ShuntXdsServerGone " + SERVER, "ticket ShuntXdsStale " + SERVER,
     may=["page ShuntErrors web", "page ShuntErrors web-tls"])
def the_daemon_starts_anew_without_the_xds_server(w):
    w.bed.xds.kill()
    w.stop_daemon()
    w.start_daemon()
    yield
    w.bed.start_xds()


@row("ticket ShuntStateNotKept")
def the_disk_of_state_dir_is_full(w):
    filler = w.state / "filler"
    with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
        while True:
            file.write(bytes(1024))
    w.put(blue=60)
    yield
    filler.unlink()


# -- certificates

@row("ticket ShuntCertificateExpires front")
def a_certificate_ends_in_two_days(w):
    w.serve_certificate("ends-soon")
    yield
    w.serve_certificate("front")


@row("page ShuntCertificateExpires front")
def a_certificate_ends_today(w):
    w.serve_certificate("ends-today")
    yield
    w.serve_certificate("front")


@row("ticket ShuntCertificateUnreadable front")
def the_file_of_a_certificate_is_broken(w):
    replace(w.pem, "garbage\n")
    yield
    w.serve_certificate("front")


@row("ticket ShuntCertificateUnreadable front", "page ShuntTlsRefuses server")
def it_is_broken_when_the_daemon_starts(w):
    w.stop_load("tls")
    replace(w.pem, "garbage\n")
    w.stop_daemon()
    w.start_daemon()
    yield
    w.serve_certificate("front")
    w.start_tls_load()


@row("ticket ShuntHandshakesFail")
def clients_do_not_know_the_authority_of_a_new_certificate(w):
    argv = ["curl", "-s", "-o", "/dev/null", "--max-time", "5", f"https://{VIP}:{TLS_PORT}/mark"]
    loop = f"while :; do {' '.join(argv)}; sleep {1 / FAILURES_A_SECOND}; done"
    clients = w.lab.start("client", "strangers", ["bash", "-c", loop])
    yield
    clients.kill()


# -- limits and losses

@row("ticket ShuntBreakerFull narrow")
def a_circuit_breaker_is_nearly_full(w):
    held_ones = w.hold("/narrow.Service/Call", NARROW, SOURCES[:1])
    yield
    held_ones.kill()


@row("page ShuntPoolNearlyFull requests", "page ShuntPoolNearlyFull h2_streams")
def live_requests_are_nearly_as_many_as_may_be(w):
    held_ones = w.hold("/slow.Service/Call", LIVE_REQUESTS)
    yield
    held_ones.kill()


@row("ticket ShuntRetransmissions")
def the_way_to_the_clients_loses_frames(w):
    w.lab.nft(w.bed.middle_of("client"), LOSS)
    yield
    w.lab.nft(w.bed.middle_of("client"), "delete table netdev faults\n")


@row("ticket ShuntAccessLogLoses")
def who_takes_the_access_log_has_stopped(w):
    w.sink.signal(signal.SIGSTOP)
    w.bed.run_h2load(requests=40_000, clients=2, streams=8)
    yield
    w.sink.signal(signal.SIGCONT)


@row("ticket ShuntTracesLost")
def the_collector_of_traces_refuses_them(w):
    w.collector.ask(op="answer", code=12)
    yield
    w.collector.ask(op="answer", code=0)


# -- its host

@row("page ShuntWorkerStalled 0", "page ShuntOldSnapshot 0")
def a_worker_stands_still_while_the_configuration_changes(w):
    with held(worker_thread(w.bed, 0)):
        w.put(blue=50)
        yield


@row("ticket ShuntWorkerBusy 0")
def a_worker_has_more_to_do_than_it_can(w):
    w.start_load("busy", f"http://{VIP}:{PORT}/mark", clients=2, streams=40, seconds=300,
                 fields=(":authority: busy.example", LONG))
    yield
    w.stop_load("busy")


@row("page ShuntPortDown 1")
def the_link_to_the_backends_goes(w):
    w.lab.ip(w.bed.middle_of("backends"), "link", "set", "near", "down")
    yield
    w.lab.ip(w.bed.middle_of("backends"), "link", "set", "near", "up")


@row("page ShuntPortDown 0", *(f"page ShuntFrontendDown {name}" for name in ("web", "web-tls", "spare")))
def the_link_to_the_clients_goes(w):
    w.lab.ip(w.bed.middle_of("client"), "link", "set", "near", "down")
    yield
    w.lab.ip(w.bed.middle_of("client"), "link", "set", "near", "up")


def without_gateways(w, *gone):
    for ip in gone:
        w.lab.ip("client", "addr", "del", f"{ip}/24", "dev", "c0")
    yield
    w.lab.address("client", "c0", *(f"{ip}/24" for ip in gone))


@row("ticket ShuntGatewayDown " + GATEWAYS[0])
def one_of_two_gateways_is_dead(w):
    yield from without_gateways(w, GATEWAYS[0])


@row("page ShuntGatewayDown 0")
def both_gateways_are_dead(w):
    yield from without_gateways(w, *GATEWAYS)


# -- no faults

@row()
def an_operator_drains_a_frontend_and_takes_it_back(w):
    w.bed.shuntctl("drain", "frontend", "spare")
    yield
    w.bed.shuntctl("undrain", "frontend", "spare")


@row(short=True)
def the_configuration_changes_and_clients_ask_in_vain(w):
    w.put(blue=50)
    w.bed.run_h2load(requests=200, clients=1, streams=1, path="/not-there")
    w.bed.run_h2load(requests=5, clients=1, streams=1, url=f"http://{VIP}:{SPARE_PORT}")
    yield
    w.put()
