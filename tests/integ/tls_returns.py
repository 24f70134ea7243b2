# SPDX-License-Identifier: Apache-2.0
"""Connections to a backend with TLS that are ended and made anew: how many of their handshakes resume a session."""

import json

from lab import wait_until

RETURNS = 50
WAIT_S = 30


def ended(world):
    """(full handshakes with backends, resumed ones)"""
    workers = world.bed.show_workers()
    return tuple(sum(worker["tls_backends"][how] for worker in workers) for how in ("ok", "resumed"))


def handshakes_of_returns(world, name, ask, returns=RETURNS):
    """What ended() counts meanwhile. name: of the cluster; ask: makes a request to it, which must succeed."""
    before = ended(world)
    ask()
    for _ in range(returns):
        def kill():
            return json.loads(world.bed.shuntctl("kill", "conn", f"cluster={name}", "side=backend", "json"))["data"]
        wait_until(lambda: kill()["ended"] == 1, WAIT_S, "a connection that ends")
        ask()
    return tuple(now - then for now, then in zip(ended(world), before))


def check_returns(world, name):
    """All but the first one resume, to the cluster that answers under its name with a client's certificate."""
    def ask():
        assert world.curl(f"/{name}/mark", *world.own("client"))[1].startswith("200 ")
    full, resumed = handshakes_of_returns(world, name, ask)
    assert full <= 1 and resumed >= RETURNS, (full, resumed)
