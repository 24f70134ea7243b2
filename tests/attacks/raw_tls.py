# SPDX-License-Identifier: Apache-2.0
"""TLS by hand (RFC 8446, RFC 5246): hellos that no library would send, and a client that has shaken hands and then
seals whatever it likes."""

import ctypes
import hmac
import itertools
import os
import ssl
import struct
import tempfile

from attacker import Conn

CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, DATA = range(20, 24)
CLIENT_HELLO, NEW_SESSION_TICKET, KEY_UPDATE = 1, 4, 24
WARNING, FATAL = 1, 2
CLOSE_NOTIFY, USER_CANCELED, NO_RENEGOTIATION = 0, 90, 100
NAME = "front.example"
TLS_1_2, TLS_1_3 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
SUITES = {"TLS_AES_128_GCM_SHA256": (16, "sha256"), "TLS_AES_256_GCM_SHA384": (32, "sha384"),
          "ECDHE-ECDSA-AES128-GCM-SHA256": (16, "sha256"), "ECDHE-ECDSA-AES256-GCM-SHA384": (32, "sha384")}


def record(kind, payload, version=0x0303, length=None):
    """length: what the header says, if it is to lie."""
    return struct.pack("!BHH", kind, version, len(payload) if length is None else length) + payload


def records(kind, payload, size):
    """The payload in records of so many bytes each."""
    return b"".join(record(kind, payload[at:at + size]) for at in range(0, len(payload), size))


def sized(n_bytes, payload):
    return len(payload).to_bytes(n_bytes, "big") + payload


def message(kind, payload):
    return bytes([kind]) + sized(3, payload)


def extension(kind, payload):
    return struct.pack("!H", kind) + sized(2, payload)


def hello(*more, versions=(0x0304, 0x0303), last=b"", alpn=(b"h2",)):
    """A ClientHello that a server answers, as a message. Its key share is anybody's, so that none goes on behind it.
    more, last: extensions, in front of the others and behind them."""
    share = struct.pack("!H", 29) + sized(2, os.urandom(32))
    extensions = b"".join(more) + b"".join((
        extension(0, sized(2, b"\0" + sized(2, NAME.encode()))),
        extension(10, sized(2, struct.pack("!HHH", 29, 23, 24))),
        extension(11, b"\1\0"),
        extension(13, sized(2, struct.pack("!HHHH", 0x0403, 0x0804, 0x0401, 0x0503))),
        extension(16, sized(2, b"".join(sized(1, name) for name in alpn))),
        extension(43, sized(1, b"".join(struct.pack("!H", version) for version in versions))),
        extension(45, b"\1\1"), extension(51, sized(2, share)))) + last
    suites = struct.pack("!HHHHH", 0x1301, 0x1302, 0xc02b, 0xc02c, 0x00ff)
    return message(CLIENT_HELLO, b"\3\3" + os.urandom(32) + sized(1, os.urandom(32)) + sized(2, suites) + b"\1\0" +
                   sized(2, extensions))


def pre_shared_key(identity):
    """Of a ticket; its binder is made up."""
    return extension(41, sized(2, sized(2, identity) + bytes(4)) + sized(2, sized(1, os.urandom(32))))


def context(folder, version=TLS_1_3, chain=None, alpn=("h2",)):
    """What a client goes by; chain: names of certificates of the folder, the first one with its key. It writes its
    secrets down."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.load_verify_locations(os.path.join(folder, "ca.pem"))
    made.minimum_version = made.maximum_version = version
    made.set_alpn_protocols(list(alpn))
    if version == TLS_1_2:
        made.set_ciphers("ECDHE+AESGCM")
    if chain:
        made.load_cert_chain(os.path.join(folder, f"{chain}.pem"), os.path.join(folder, f"{chain}.key"))
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as log:
        made.keylog_filename = log.name
    return made


# -- secrets

def expand(digest, secret, label, length):
    """HKDF-Expand-Label without context, of one block (RFC 8446 7.1)."""
    info = struct.pack("!H", length) + sized(1, b"tls13 " + label) + b"\0"
    return hmac.digest(secret, info + b"\1", digest)[:length]


def prf(digest, secret, seed, length):
    """P_hash (RFC 5246 5)."""
    out, a = b"", seed
    while len(out) < length:
        a = hmac.digest(secret, a, digest)
        out += hmac.digest(secret, a + seed, digest)
    return out[:length]


class Gcm:
    """AES-GCM of libcrypto's, which Python's own library does not have."""

    lib = None

    def __init__(self, key):
        if not Gcm.lib:
            Gcm.lib = ctypes.CDLL("libcrypto.so.3")
            for name in ("EVP_CIPHER_CTX_new", "EVP_aes_128_gcm", "EVP_aes_256_gcm"):
                getattr(Gcm.lib, name).restype = ctypes.c_void_p
        self.key = key
        cipher = self.lib.EVP_aes_128_gcm() if len(key) == 16 else self.lib.EVP_aes_256_gcm()
        self.cipher, self.ctx = ctypes.c_void_p(cipher), ctypes.c_void_p(self.lib.EVP_CIPHER_CTX_new())

    def seal(self, nonce, header, text):
        out, tag, n = ctypes.create_string_buffer(len(text) + 16), ctypes.create_string_buffer(16), ctypes.c_int()
        lib, ctx = self.lib, self.ctx
        lib.EVP_EncryptInit_ex(ctx, self.cipher, None, self.key, nonce)
        lib.EVP_EncryptUpdate(ctx, None, ctypes.byref(n), header, len(header))
        lib.EVP_EncryptUpdate(ctx, out, ctypes.byref(n), text, len(text))
        lib.EVP_EncryptFinal_ex(ctx, tag, ctypes.byref(n))
        lib.EVP_CIPHER_CTX_ctrl(ctx, 0x10, 16, tag)
        return out.raw[:len(text)] + tag.raw


class Sealer13:
    def __init__(self, secret, size, digest):
        self.size, self.digest = size, digest
        self.use(secret)

    def use(self, secret):
        self.secret, self.number = secret, itertools.count()
        self.gcm = Gcm(expand(self.digest, secret, b"key", self.size))
        self.iv = int.from_bytes(expand(self.digest, secret, b"iv", 12), "big")

    def seal(self, kind, payload, padding=0):
        text = payload + bytes([kind]) + bytes(padding)
        nonce = (self.iv ^ next(self.number)).to_bytes(12, "big")
        return record(DATA, self.gcm.seal(nonce, struct.pack("!BHH", DATA, 0x0303, len(text) + 16), text))

    def key_update(self, asks=0):
        made = self.seal(HANDSHAKE, message(KEY_UPDATE, bytes([asks])))
        self.use(expand(self.digest, self.secret, b"traffic upd", len(self.secret)))
        return made


class Sealer12:
    """Behind Finished, which was record 0."""

    def __init__(self, master, client_random, server_random, size, digest):
        block = prf(digest, master, b"key expansion" + server_random + client_random, 2 * size + 8)
        self.gcm, self.salt, self.number = Gcm(block[:size]), block[2 * size:2 * size + 4], itertools.count(1)

    def seal(self, kind, payload):
        explicit = next(self.number).to_bytes(8, "big")
        header = explicit + struct.pack("!BHH", kind, 0x0303, len(payload))
        return record(kind, explicit + self.gcm.seal(self.salt + explicit, header, payload))


# -- connections

class Secured(Conn):
    """A connection that shakes hands as any client does. Then `seal` makes its records; what comes is not read."""

    def __init__(self, a, how, source=None):
        super().__init__(a, preface=False, source=source)
        self.into, self.out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = how.wrap_bio(self.into, self.out, server_hostname=NAME)
        self.how, self.heard, self.hello = how, b"", b""
        self.shaken = self.said_more = False

    def is_judged(self):
        """The server has seen all of it: under 1.3 it says so by its tickets."""
        return self.shaken and (self.said_more or self.tls.version() == "TLSv1.2")

    def pump(self):
        while True:
            try:
                data = self.socket.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.cut()
            self.said_more = self.shaken
            if not self.shaken:
                self.heard += data
                self.into.write(data)

    def turn(self):
        """Answers what has come; whether it is done."""
        try:
            self.tls.do_handshake()
            self.shaken = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            self.cut()
        said = self.out.read()
        self.hello = self.hello or said
        self.send(said)
        return self.shaken

    def shake(self):
        while not self.turn():
            self.wait()
            self.pump()
        return self

    def keyed(self):
        """Makes `seal` of what the library has written down."""
        size, digest = SUITES[self.tls.cipher()[0]]
        client_random = self.hello[11:43]
        with open(self.how.keylog_filename, encoding="ascii") as log:
            lines = [line.split() for line in log if not line.startswith("#")]
        secrets = {label: bytes.fromhex(secret) for label, of, secret in lines if of == client_random.hex()}
        if self.tls.version() == "TLSv1.3":
            self.sealer = Sealer13(secrets["CLIENT_TRAFFIC_SECRET_0"], size, digest)
        else:
            self.sealer = Sealer12(secrets["CLIENT_RANDOM"], client_random, self.heard[11:43], size, digest)
        self.seal = self.sealer.seal
        return self


def secured(a, how, n):
    """n connections that have shaken hands."""
    return [Secured(a, how).shake().keyed() for _ in range(n)]
