# SPDX-License-Identifier: Apache-2.0
"""HAProxy as the peer of tools/compare and tools/badnet: one thread, HTTP/2, without TLS if nothing is said."""


def configuration(vip, port, backend, uses="", bind="proto h2", server="proto h2", polls=False):
    """backend: (ip, port); uses: lines of the frontend that choose among backends; bind, server: more of these
    lines; polls: never sleeps."""
    poll = "\n  busy-polling" if polls else ""
    return f"""\
global
  nbthread 1{poll}
  maxconn 6000
  ssl-default-bind-options ssl-min-ver TLSv1.3 no-tls-tickets
  ssl-default-server-options ssl-min-ver TLSv1.3
  tune.h2.max-concurrent-streams 1000
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  http-reuse always
frontend front
  bind {vip}:{port} {bind}
{uses}  default_backend back
backend back
  server one {backend[0]}:{backend[1]} {server}
"""
