# SPDX-License-Identifier: Apache-2.0
"""What the balancer tells strangers in answers of its own."""

import raw_h2 as h2
from row import DEAD_CLUSTER, row

SECRETS = (DEAD_CLUSTER, "10.82.", "shunt-demo")  # cluster, addresses of backends, node id


def tell_answers(a, block):
    conn = a.connect()
    conn.keeps_answers = True
    conn.send(h2.headers(1, block))
    while not conn.answers.get(1):
        conn.wait()
        conn.pump()
    a.units += 1
    a.sleep(0.2)
    conn.pump()
    a.told["answer"] = conn.answers[1]


def tells_nothing(outcome):
    answer = outcome.report["told"].get("answer")
    if not answer:
        return "there was no answer"
    found = [secret for secret in SECRETS if secret in answer]
    return f"the answer names {found}: {answer!r}" if found else None


@row(check=tells_nothing, seconds=(6, 6))
def answers_of_our_own_name_no_address_and_no_cluster(a):
    """TH-95."""
    tell_answers(a, h2.request("/dead"))


@row(check=tells_nothing, seconds=(6, 6))
def statuses_of_our_own_name_no_address_and_no_cluster(a):
    """TH-95."""
    tell_answers(a, h2.grpc("/dead"))
