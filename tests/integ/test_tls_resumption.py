# SPDX-License-Identifier: Apache-2.0
"""Clients that come back with a ticket, those of OpenSSL as Python has it, of 1.2 and 1.3 and with a certificate:
whoever has the same secret resumes their sessions, and nobody does once the CAs have changed."""

import shutil
import socket
import ssl

import pytest

from lab import Lab, inside, wait_until
from pki import replace
from takeover_world import WAIT_S, follow
from test_tls import TlsWorld
from testbed import PORT, VIP

RETURNS = 100  # of each version
SESSIONS = 10
CHAIN = 21
LEAST = 99
VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
REQUEST = b"GET /mark HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


class Clients:
    """Clients of one version with a certificate, and the sessions of those that came first."""

    def __init__(self, pki, version):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.minimum_version = self.context.maximum_version = version
        self.context.load_verify_locations(pki.folder / "ca.pem")
        self.context.load_cert_chain(pki.folder / "client.pem", pki.folder / "client.key")
        self.context.set_alpn_protocols(["http/1.1"])
        self.sessions = []

    def _ask(self, session=None):
        """(whether the session was resumed, the session afterwards)"""
        with socket.create_connection((VIP, PORT), timeout=20) as plain, self.context.wrap_socket(
                plain, server_hostname=VIP, session=session) as peer:
            peer.sendall(REQUEST)
            answer = b""
            while part := peer.recv(65536):
                answer += part
            assert answer.startswith(b"HTTP/1.1 200 "), answer[:200]
            return peer.session_reused, peer.session

    @staticmethod
    def _within(lab, ask_all):
        """What it returns, which runs where clients are."""
        with inside(lab.ns("client")):
            return ask_all()

    def _run(self, lab, sessions):
        return self._within(lab, lambda: [self._ask(session) for session in sessions])

    def visit(self, lab):
        heard = self._run(lab, [None] * SESSIONS)
        assert not any(resumed for resumed, _ in heard)
        self.sessions = [session for _, session in heard]
        assert all(session.has_ticket for session in self.sessions)

    def resumed(self, lab, returns=RETURNS):
        """How many of so many clients resume; all are served."""
        heard = self._run(lab, [self.sessions[n % SESSIONS] for n in range(returns)])
        return sum(resumed for resumed, _ in heard)

    def chain(self, lab, returns):
        """Each with the session of the one before: [(whether it resumed, the id of what it left)]."""
        def ask_all():
            heard, session = [], None
            for _ in range(returns):
                resumed, session = self._ask(session)
                heard.append((resumed, session.id))
            return heard
        return self._within(lab, ask_all)


class ReturningWorld(TlsWorld):
    """Two workers, certificates demanded of clients, and a secret that may be shared. secret: a path, or None."""

    def __init__(self, lab, folder, secret):
        super().__init__(lab, folder, mutual=True, bed={"workers": (0, 1)})
        self.set_secret(secret)

    def set_secret(self, secret, takeover_socket=None):
        """For the next process."""
        self.bed.settings = f"tls: {{ticket_secret: {secret}, crl_refresh_s: 1}}\n" if secret else ""
        if takeover_socket:
            self.bed.settings += f"takeover_socket: {takeover_socket}\n"

    def counted(self):
        """Handshakes with clients that resumed a session, of each worker."""
        return [worker["tls_clients"]["resumed"] for worker in self.bed.show_workers()]

    def restart(self):
        self.bed.daemon.stop(30)
        self.bed.start_daemon(env={"GRPC_XDS_BOOTSTRAP": str(self.folder / "bootstrap.json")})

    def follow(self, number):
        return follow(self.bed, number, env={"GRPC_XDS_BOOTSTRAP": str(self.folder / "bootstrap.json")})

    def versions(self):
        """Of the contexts of servers, by id."""
        return {c["id"]: c["version"] for c in self.bed.show("certs")["contexts"] if c["role"] == "server"}


@pytest.fixture(name="secret")
def fixture_secret(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"s" * 48)
    path.chmod(0o600)
    return path


def test_clients_resume_across_workers_and_a_restart_until_the_cas_change(lab, tmp_path, secret):
    """TLS-58, TLS-59, TLS-196."""
    w = ReturningWorld(lab, tmp_path, secret).start()
    clients = [Clients(w.pki, version) for version in VERSIONS]
    for c in clients:
        c.visit(lab)
        assert c.resumed(lab) >= LEAST
    by_worker = w.counted()
    assert min(by_worker) > 0 and sum(by_worker) >= 2 * LEAST, by_worker
    assert ('grpc_server_tls_handshakes_total{grpc_tls_handshake_result="SUCCESS",'
            f'grpc_tls_handshake_resumed="RESUMED_HANDSHAKE"}} {sum(by_worker)}') in w.bed.shuntctl("show", "metrics")

    w.restart()
    for c in clients:
        assert c.resumed(lab) >= LEAST

    before = w.versions()
    replace(w.pki.folder / "ca.pem", w.pki.pem("ca") + w.pki.pem("strangers"))
    wait_until(lambda: all(version > before[n] for n, version in w.versions().items()), 20, "the other CAs")
    for c in clients:
        assert c.resumed(lab) == 0
    w.restart()
    for c in clients:
        assert c.resumed(lab, SESSIONS) == 0


def test_a_client_that_uses_each_ticket_once_resumes_each_time(lab, tmp_path, secret):
    """TLS-237."""
    w = ReturningWorld(lab, tmp_path, secret).start()
    for version, tickets in zip(VERSIONS, (1, CHAIN)):
        heard = Clients(w.pki, version).chain(lab, CHAIN)
        assert [resumed for resumed, _ in heard] == [False] + [True] * (CHAIN - 1), version
        assert len({made for _, made in heard}) == tickets, version
    assert min(w.counted()) > 0 and sum(w.counted()) == 2 * (CHAIN - 1), w.counted()


def test_clients_resume_at_the_process_that_takes_over(lab, tmp_path, secret):
    """FL-18."""
    w = ReturningWorld(lab, tmp_path, secret)
    w.set_secret(secret, lab.dir / "takeover.sock")
    w.start()
    clients = [Clients(w.pki, version) for version in VERSIONS]
    for c in clients:
        c.visit(lab)
    older = w.follow(2)
    assert older.wait(WAIT_S) == 0
    for c in clients:
        assert c.resumed(lab) >= LEAST


def test_clients_resume_through_three_takeovers_without_a_configured_secret(lab, tmp_path):
    """FL-121, TLS-219: those who came to the first process, and those who have come since."""
    w = ReturningWorld(lab, tmp_path, None)
    w.set_secret(None, lab.dir / "takeover.sock")
    w.start()
    clients, older = [], []
    for number in range(2, 5):
        clients += [Clients(w.pki, version) for version in VERSIONS]
        for c in clients[-2:]:
            c.visit(lab)
        older.append(w.follow(number))
        for c in clients:
            assert c.resumed(lab, SESSIONS) == SESSIONS, number
    assert [process.wait(WAIT_S) for process in older] == [0] * len(older)
    w.restart()  # which keeps no secret
    for c in clients[-2:]:
        assert c.resumed(lab, SESSIONS) == 0


def test_where_one_of_two_processes_has_a_configured_secret_sessions_end_once(lab, tmp_path, secret):
    """FL-122."""
    w = ReturningWorld(lab, tmp_path, None)
    w.set_secret(None, lab.dir / "takeover.sock")
    w.start()
    for number, newer_secret in ((2, secret), (3, None)):
        clients = [Clients(w.pki, version) for version in VERSIONS]
        for c in clients:
            c.visit(lab)
        w.set_secret(newer_secret, lab.dir / "takeover.sock")
        w.follow(number)
        for c in clients:
            assert c.resumed(lab, SESSIONS) == 0, number


def test_two_daemons_with_one_secret_resume_each_others_sessions(lab, tmp_path, secret):
    """TLS-58, TLS-196: the other one has the same files, until its CAs change, and runs at the same time."""
    first = ReturningWorld(lab, tmp_path / "one", secret).start()
    with Lab("shunt-test") as elsewhere:
        second = ReturningWorld(elsewhere, tmp_path / "two", secret)
        shutil.copytree(first.pki.folder, second.pki.folder, dirs_exist_ok=True)
        second.start()
        clients = [Clients(first.pki, version) for version in VERSIONS]
        for c in clients:
            c.visit(lab)
            assert c.resumed(elsewhere) >= LEAST
        assert sum(second.counted()) >= 2 * LEAST
        before = second.versions()
        replace(second.pki.folder / "ca.pem", first.pki.pem("ca") + first.pki.pem("strangers"))
        wait_until(lambda: all(version > before[n] for n, version in second.versions().items()), 20, "the other CAs")
        for c in clients:
            assert c.resumed(elsewhere, SESSIONS) == 0
        assert sum(first.counted()) == 0
