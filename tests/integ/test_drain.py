# SPDX-License-Identifier: Apache-2.0
"""What kernels of clients and backends see of a drain's end."""

import time

import pytest

from agent import Agent
from testbed import PORT, VIP

DRAIN_S, LAST_S = 2, 1  # the latter is for those who are cut
EXIT_S = 60
KINDS = {"idle": 6, "busy": 5, "deaf": 2}


def estab_resets(lab, ns):
    """Of connections of this namespace, that were reset while open (RFC 4022, tcpEstabResets)."""
    return lab.tcp_counters(ns)["EstabResets"]


@pytest.mark.ends_daemon
@pytest.mark.parametrize("farewell_s", [0, 3])
def test_fl_175_fl_176_only_who_reads_nothing_is_reset(make_world, lab, farewell_s):
    """Though none of the clients ends its side when Shunt has. And no backend is (FL-180)."""
    world = make_world()
    bed = world.bed
    bed.settings = f"drain_s: {DRAIN_S}\n" + (f"farewell_s: {farewell_s}\n" if farewell_s else "")
    world.start()
    clients = Agent(lab, "client", "clients", "drain_agent.py")
    clients.ask(op="open", ip=VIP, port=PORT, kinds=KINDS)
    before, began = {ns: estab_resets(lab, ns) for ns in ("client", "backends")}, time.monotonic()
    bed.daemon.signal(15)
    ends = clients.ask(op="ends")
    assert bed.daemon.wait(EXIT_S) == 0, bed.daemon.output()
    took_s = time.monotonic() - began
    cut = KINDS["busy"] + KINDS["deaf"]
    assert ends == sorted([["idle", None, "fin"]] * KINDS["idle"] + [["busy", "14", "fin"]] * KINDS["busy"], key=str)
    assert f'msg="stopped" requests_cut={cut}' in bed.daemon.output(), bed.daemon.output()
    after = {ns: estab_resets(lab, ns) - n for ns, n in before.items()}
    assert after == {"client": KINDS["deaf"], "backends": 0}
    assert took_s > farewell_s + DRAIN_S, took_s
    print(f"ended after {took_s:.1f} s, of which {farewell_s + DRAIN_S + LAST_S} are given")
