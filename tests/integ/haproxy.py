# SPDX-License-Identifier: Apache-2.0
"""HAProxy as the peer of tools/compare and tools/badnet: one thread, HTTP/2 without TLS on both sides."""


def configuration(vip, port, backend, uses=""):
    """backend: (ip, port); uses: lines of the frontend that choose among backends."""
    return f"""\
global
  nbthread 1
  maxconn 6000
  tune.h2.max-concurrent-streams 1000
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  http-reuse always
frontend front
  bind {vip}:{port} proto h2
{uses}  default_backend back
backend back
  server one {backend[0]}:{backend[1]} proto h2
"""
