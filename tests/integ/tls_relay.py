#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""TLS by a library of others before a peer that has none, in either role, one thread a connection.

usage: tls_relay.py LIBRARY ROLE VERSION LISTEN_IP:PORT TO_IP:PORT PROTOCOL FOLDER OWN UPDATES

LIBRARY is gnutls or tlslite, ROLE server or client (of TLS), VERSION 1.2 or 1.3, PROTOCOL what ALPN is to agree upon.
FOLDER has ca.pem, and OWN.pem with OWN.key: either side must show a certificate, which GnuTLS verifies. Under 1.3 a
KeyUpdate that asks for another goes out before some of the pieces that are sent, UPDATES of them at most. A client of
GnuTLS resumes what its last connection left, and that once. When a connection has ended, a line of JSON says what was
agreed upon, whether it was resumed, how many KeyUpdates went out, and whether close_notify came.
"""

import ctypes
import json
import pathlib
import select
import socket
import sys
import threading
import traceback

PIECE = 16384
PIECES_A_KEY = 8  # sent between two KeyUpdates
SERVER_NAME = "front.example"
HANDSHAKE_S = 30


class Datum(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_uint)]


class Gnutls:
    """libgnutls by its C functions, over a socket that does not block."""

    AGAIN, INTERRUPTED = -28, -52
    VERSIONS = {4: "1.2", 5: "1.3"}
    HAS_TICKET = 1 << 7  # of session_get_flags(): one has come
    LIBRARY = None
    left = None  # the session of the last client that has ended

    def __init__(self, sock, role, version, protocol, files):
        if Gnutls.LIBRARY is None:
            Gnutls.LIBRARY = ctypes.CDLL("libgnutls.so.30")
        self.lib, self.sock = Gnutls.LIBRARY, sock
        sock.setblocking(False)
        self.session, credentials = ctypes.c_void_p(), ctypes.c_void_p()
        self._must("certificate_allocate_credentials", ctypes.byref(credentials))
        self._must("certificate_set_x509_trust_file", credentials, files["ca"], 1)
        self._must("certificate_set_x509_key_file", credentials, files["cert"], files["key"], 1)
        self._must("init", ctypes.byref(self.session), 1 if role == "server" else 2)
        self._must("priority_set_direct", self.session, f"NORMAL:-VERS-ALL:+VERS-TLS{version}".encode(), None)
        self._must("credentials_set", self.session, 1, credentials)
        name = protocol.encode()
        offered = Datum(ctypes.cast(name, ctypes.c_void_p), len(name))
        self._must("alpn_set_protocols", self.session, ctypes.byref(offered), 1, 0)
        if role == "server":
            self.lib.gnutls_certificate_server_set_request(self.session, 2)
            self.lib.gnutls_session_set_verify_cert(self.session, None, 0)
        else:
            name = SERVER_NAME.encode()
            self._must("server_name_set", self.session, 1, name, ctypes.c_size_t(len(name)))
            self.lib.gnutls_session_set_verify_cert(self.session, name, 0)
            used, Gnutls.left = Gnutls.left, None
            if used:
                self._must("session_set_data", self.session, used, ctypes.c_size_t(len(used)))
        self.lib.gnutls_transport_set_int2(self.session, sock.fileno(), sock.fileno())
        self.buffer = ctypes.create_string_buffer(PIECE)

    def _must(self, function, *arguments):
        return self._checked(function, getattr(self.lib, f"gnutls_{function}")(*arguments))

    def _checked(self, what, code):
        if code < 0:
            self.lib.gnutls_strerror.restype = ctypes.c_char_p
            raise OSError(f"{what}: {self.lib.gnutls_strerror(code).decode()}")
        return code

    def _waits(self, code):
        return code in (self.AGAIN, self.INTERRUPTED)

    def handshake(self):
        while self._waits(code := self.lib.gnutls_handshake(self.session)):
            if not select.select([self.sock], [], [], HANDSHAKE_S)[0]:
                raise TimeoutError("handshake")
        self._checked("handshake", code)

    def agreed(self):
        """(version, protocol, whether it was resumed)."""
        chosen = Datum()
        self._must("alpn_get_selected_protocol", self.session, ctypes.byref(chosen))
        version = self.lib.gnutls_protocol_get_version(self.session)
        resumed = self.lib.gnutls_session_is_resumed(self.session) != 0
        return self.VERSIONS.get(version, version), ctypes.string_at(chosen.data, chosen.size).decode(), resumed

    def leave(self):
        """For the next client: with 1.3 only a ticket that this connection got."""
        made = Datum()
        if self.agreed()[0] == "1.2" or self.lib.gnutls_session_get_flags(self.session) & self.HAS_TICKET:
            self._must("session_get_data2", self.session, ctypes.byref(made))
            Gnutls.left = ctypes.string_at(made.data, made.size)

    def receive(self):
        """The next bytes; None = nothing yet; b"" = close_notify."""
        code = self.lib.gnutls_record_recv(self.session, self.buffer, ctypes.c_size_t(PIECE))
        return None if self._waits(code) else self.buffer.raw[:self._checked("receive", code)]

    def send(self, data):
        """How many bytes went; 0 = there is no room."""
        code = self.lib.gnutls_record_send(self.session, data, ctypes.c_size_t(len(data)))
        return 0 if self._waits(code) else self._checked("send", code)

    def update_keys(self):
        while self._waits(code := self.lib.gnutls_session_key_update(self.session, 1)):
            select.select([], [self.sock], [], HANDSHAKE_S)
        self._checked("key update", code)

    def say_bye(self):
        self.lib.gnutls_bye(self.session, 1)


class Tlslite:
    """tlslite-ng, whose generators say 0 where they wait to read and 1 where they wait to write."""

    def __init__(self, sock, role, version, protocol, files):
        from tlslite.api import HandshakeSettings, TLSConnection, X509CertChain, parsePEMKey
        self.sock, self.role, self.protocol = sock, role, protocol.encode()
        self.connection = TLSConnection(sock)
        self.chain = X509CertChain()
        self.chain.parsePemList(pathlib.Path(files["cert"].decode()).read_text())
        self.key = parsePEMKey(pathlib.Path(files["key"].decode()).read_text(), private=True)
        self.settings = HandshakeSettings()
        self.settings.minVersion = self.settings.maxVersion = (3, 3 if version == "1.2" else 4)
        self.settings.certificate_compression_send = ()  # as a client it would compress its own unasked
        self.reading = None

    def handshake(self):
        self.sock.settimeout(HANDSHAKE_S)
        if self.role == "server":
            self.connection.handshakeServer(certChain=self.chain, privateKey=self.key, reqCert=True,
                                            settings=self.settings, alpn=[self.protocol])
        else:
            self.connection.handshakeClientCert(self.chain, self.key, settings=self.settings, serverName=SERVER_NAME,
                                                alpn=[self.protocol])
        peer = self.connection.session.clientCertChain if self.role == "server" else (
            self.connection.session.serverCertChain)
        if not peer:
            raise OSError("the peer showed no certificate")
        self.sock.setblocking(False)

    def agreed(self):
        version = {(3, 3): "1.2", (3, 4): "1.3"}[self.connection.version]
        return version, self.connection.session.appProto.decode(), self.connection.resumed

    def leave(self):
        pass

    def receive(self):
        self.reading = self.reading or self.connection.readAsync(PIECE, 1)
        for got in self.reading:
            if isinstance(got, int):
                return None
            self.reading = None
            return bytes(got)
        return b""

    def _wait(self, generator):
        for wish in generator:
            select.select([] if wish else [self.sock], [self.sock] if wish else [], [], HANDSHAKE_S)

    def send(self, data):
        self._wait(self.connection.writeAsync(data))
        return len(data)

    def update_keys(self):
        from tlslite.constants import KeyUpdateMessageType
        self._wait(self.connection.send_keyupdate_request(KeyUpdateMessageType.update_requested))

    def say_bye(self):
        from tlslite.constants import AlertDescription, AlertLevel
        from tlslite.messages import Alert
        alert = Alert().create(AlertDescription.close_notify, AlertLevel.warning)
        self._wait(self.connection._sendMsg(alert))  # close() would not wait for the peer's


class Relay:
    """One connection. What TLS has for the plain side is read even while TLS has no room: none waits for both."""

    def __init__(self, secure, plain, updates):
        self.secure, self.plain, self.updates = secure, plain, updates
        self.sent = self.updated = 0
        self.notified = False

    def pull(self):
        """From TLS to the plain side, all that is there."""
        while not self.notified and (data := self.secure.receive()) is not None:
            if data:
                self.plain.sendall(data)
            else:
                self.notified = True

    def push(self, data):
        self.sent += 1
        if self.updated < self.updates and self.sent % PIECES_A_KEY == 0:
            self.secure.update_keys()
            self.updated += 1
        while data:
            data = data[self.secure.send(data):]
            if data:
                select.select([self.secure.sock], [self.secure.sock], [], HANDSHAKE_S)
                self.pull()

    def run(self):
        ended = False
        while True:
            self.pull()
            if self.notified:
                if not ended:
                    self.secure.say_bye()
                return
            ready, _, _ = select.select([self.secure.sock, *([] if ended else [self.plain])], [], [], 0.2)
            if self.plain in ready:
                data = self.plain.recv(PIECE)
                if data:
                    self.push(data)
                else:
                    self.secure.say_bye()
                    ended = True


def serve_one(accepted, library, role, version, to, protocol, files, updates):
    said = {}
    try:
        other = socket.create_connection(to, HANDSHAKE_S)
        other.settimeout(None)
        for sock in (accepted, other):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        outer, plain = (accepted, other) if role == "server" else (other, accepted)
        with outer, plain:
            secure = library(outer, role, version, protocol, files)
            secure.handshake()
            said["version"], said["protocol"], said["resumed"] = secure.agreed()
            relay = Relay(secure, plain, updates if version == "1.3" else 0)
            try:
                relay.run()
                secure.leave()
            finally:
                said.update(updates=relay.updated, notified=relay.notified)
    except Exception:  # whatever it was, the test is to see it
        said["error"] = traceback.format_exc()
    print(json.dumps(said), flush=True)


def address(text):
    ip, port = text.rsplit(":", 1)
    return ip, int(port)


def main():
    name, role, version, listen, to, protocol, folder, own, updates = sys.argv[1:]
    library = {"gnutls": Gnutls, "tlslite": Tlslite}[name]
    files = {kind: f"{folder}/{file}".encode() for kind, file in (
        ("ca", "ca.pem"), ("cert", f"{own}.pem"), ("key", f"{own}.key"))}
    listener = socket.create_server(address(listen), backlog=64)
    while True:
        accepted, _ = listener.accept()
        threading.Thread(target=serve_one, daemon=True, args=(
            accepted, library, role, version, address(to), protocol, files, int(updates))).start()


if __name__ == "__main__":
    main()
