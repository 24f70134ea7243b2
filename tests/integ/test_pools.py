# SPDX-License-Identifier: Apache-2.0
"""What workers tell of their pools, with as many of them as there can be."""

import pytest

from lab import wait_until
from testbed import START_TIMEOUT_S, VIP, Testbed

MAX_PORTS = 8
BEHIND = 8082
SETTINGS = """
access_log: {{path: {folder}/access.log}}
tracing: {{collector: "127.0.0.1:4317"}}
"""

pytestmark = pytest.mark.timeout(200)


def test_a_worker_with_all_ports_and_features_lists_all_pools(lab):
    """A list that was full ended the process as it started."""
    bed = Testbed(lab)
    bed.more_ports = [f"{{device: 'net_null{n},no-rx=1', addresses: [10.9{n}.0.1/24]}}" for n in range(2, MAX_PORTS)]
    bed.more_frontends = [f"{{name: behind, address: {VIP}, port: {BEHIND}, target: web, "
                          "proxy_protocol: {allow: [10.81.0.1/32]}}"]
    bed.settings = SETTINGS.format(folder=lab.dir)
    bed.start_daemon(wait=False)
    wait_until(lambda: bed.stats_socket.exists() or not bed.daemon.alive(), START_TIMEOUT_S, "the stats socket")
    assert bed.daemon.alive(), bed.daemon.output()
    pools = {row["pool"] for row in bed.show("pools")}
    assert {"client_headers", "access_records", "trace_tags", "tls_conns", f"mbufs-{MAX_PORTS - 1}-0"} <= pools, pools
