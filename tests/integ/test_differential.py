# SPDX-License-Identifier: Apache-2.0
"""The same resources and the same calls, given to gRPC's own xDS client (C-core) and to shuntd: the
same backend answers, or the call fails with the same status.

C-core takes the virtual host from its target's name, so each authority is a channel of its own and
has a listener of its own; all listeners lead to one route configuration. The oracle lives in a
namespace with a direct way to the backends and its own copy of the management server.
"""

import json

import pytest

from differential_table import BACKENDS, PORT, ROWS, all_resources
from resources import Folder
from testbed import EXAMPLE, VIP, Testbed
from testbed import PORT as FRONTEND_PORT

CALL_TIMEOUT_S = 25  # an absent cluster is declared so after 15 s


def add_oracle(bed):
    bed.lab.link(("oracle", "o0"), ("backends", "b1"))
    bed.lab.address("oracle", "o0", "10.83.0.1/24")
    bed.lab.address("backends", "b1", "10.83.0.2/24")
    bed.lab.ip("oracle", "route", "add", "10.82.0.0/16", "via", "10.83.0.2")


def request_of(row):
    _, authority, path, metadata, _ = row
    body = json.dumps({"code": 5, "details": "not here"}) if path.endswith("/Fail") else ""
    return {"authority": authority, "path": path, "metadata": metadata, "body": body,
            "timeout": CALL_TIMEOUT_S}


def outcome(answer):
    return answer.get("backend", answer["code"])


@pytest.mark.timeout(170)
def test_same_outcome_as_grpc_core(lab):
    bed = Testbed(lab)
    add_oracle(bed)
    for name, ip in BACKENDS.items():
        bed.add_backend_address(ip)
        backend = bed.start_grpc_backend(name, ip, PORT)
        bed.wait_connect("backends", ip, PORT, backend)
    Folder(bed.xds_folder).set(*all_resources())
    calls = [request_of(row) for row in ROWS]
    bed.start_xds(ns="oracle")
    oracle = bed.start_calls("oracle", "table", ns="oracle", calls=calls, template="xds:///{}",
                             env={"GRPC_XDS_BOOTSTRAP": str(EXAMPLE / "bootstrap.json")})
    bed.start_xds()
    bed.start_daemon()
    ours = bed.start_calls("ours", "table", calls=calls, template=f"{VIP}:{FRONTEND_PORT}")
    check(bed.calls_result(oracle, 150), bed.calls_result(ours, 150))
    assert bed.daemon.stop(10) == 0


def check(theirs, ours):
    assert len(ROWS) == len(theirs) == len(ours) >= 40
    wrong = []
    for row, their, our in zip(ROWS, theirs, ours):
        if outcome(their) != row[-1]:
            wrong.append(f"{row[0]}: the table says {row[-1]}, C-core {outcome(their)}")
        if outcome(our) != outcome(their) or our["trailing"] != their["trailing"]:
            wrong.append(f"{row[0]}: C-core {their}, shuntd {our}")
    assert not wrong, "\n".join(wrong)
