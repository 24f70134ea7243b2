#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Has istiod's CA sign a certificate, as Istio's agents do beside a workload.

usage: istio_csr.py IP:PORT FOLDER

The folder has root-cert.pem, a certificate and key that the workload comes with (first.pem, first.key: they name its
identity), and request.csr. What istiod answers becomes cert-chain.pem.
"""

import pathlib
import sys

import grpc

METHOD = "/istio.v1.auth.IstioCertificateService/CreateCertificate"
NAME = "istiod.istio-system.svc"  # in istiod's own certificate
VALID_S = 3600
TIMEOUT_S = 20


def varint(value):
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(encoded) + bytes([value])


def request_of(csr):
    """IstioCertificateRequest: csr (1), validity_duration (3)."""
    return b"\x0a" + varint(len(csr)) + csr + b"\x18" + varint(VALID_S)


def chain_of(response):
    """IstioCertificateResponse: cert_chain (1), repeated."""
    parts = []
    while response:
        assert response[0] == 0x0A, response[:1]
        length = shift = 0
        at = 1
        while True:
            length |= (response[at] & 0x7F) << shift
            shift += 7
            at += 1
            if response[at - 1] < 0x80:
                break
        parts.append(response[at:at + length])
        response = response[at + length:]
    return parts


def main():
    address, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    credentials = grpc.ssl_channel_credentials(*((folder / name).read_bytes()
                                                 for name in ("root-cert.pem", "first.key", "first.pem")))
    channel = grpc.secure_channel(address, credentials, options=[("grpc.ssl_target_name_override", NAME)])
    call = channel.unary_unary(METHOD)
    chain = chain_of(call(request_of((folder / "request.csr").read_bytes()), timeout=TIMEOUT_S))
    assert len(chain) > 1, "no authority in the chain"
    (folder / "cert-chain.pem").write_bytes(b"".join(part.rstrip() + b"\n" for part in chain[:-1]))


if __name__ == "__main__":
    main()
