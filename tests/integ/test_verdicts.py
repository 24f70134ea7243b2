# SPDX-License-Identifier: Apache-2.0
"""Listeners and Clusters with TLS, filter chains and access control, judged by shuntd, gRPC C-core, grpc-go and Envoy:
each row of verdict_table is accepted or refused by all of them, but where verdict_known or the row says why not. What
accepted ones then do, shuntd's tests beside these peers show (docs/testing.md)."""

import collections

import pytest

import envoy_proxy
from cluster_table import CLUSTER
from go_build import go_build
from pki import Pki
from test_validation import CORE, OURS
from testbed import EXIT_TIMEOUT_S, Testbed
from tls_table import bootstrap
from verdict_known import ENVOY as ENVOYS
from verdict_known import GRPC_GO
from verdict_table import all_cluster_rows, all_listener_rows
from verdict_world import ENVOY, GO, Peers

MIN_ROWS, MIN_OF_A_KIND = 250, 60


class Judge:
    """Gathers what is wrong, and counts."""

    def __init__(self, rows):
        self.wrong = []
        self.counts = {peer: collections.Counter() for peer in (OURS, CORE, GO, ENVOY)}
        self.known = {CORE: {row.label: row.core for row in rows if row.core},
                      **{peer: {label: why for why, labels in known.items() for label in labels}
                         for peer, known in ((GO, GRPC_GO), (ENVOY, ENVOYS))}}
        labels = [row.label for row in rows]
        twice = [label for label, count in collections.Counter(labels).items() if count > 1]
        self.wrong += [f"{label}: stands twice" for label in twice]
        self.wrong += [f"{label}: known of {peer}, but nobody's" for peer, known in self.known.items()
                       for label in known.keys() - set(labels)]

    def judge(self, row, verdicts):
        ours = verdicts[OURS]
        self.counts[OURS]["NACK" if ours else "ACK"] += 1
        if bool(ours) != bool(row.wanted):
            self.wrong.append(f"{row.label}: {ours or 'accepted'}")
        missing = [text for text in (row.resource["name"], *row.wanted) if text not in ours]
        if ours and missing:
            self.wrong.append(f"{row.label}: the refusal lacks {missing}: {ours}")
        for peer, known in self.known.items():
            self.compare(row, peer, verdicts[peer], known.get(row.label))

    def compare(self, row, peer, said, known):
        agrees = bool(said) == bool(row.wanted)
        self.counts[peer]["NACK" if said else "ACK"] += 1
        self.counts[peer]["as shuntd" if agrees else "known to depart"] += 1
        if agrees and known:
            self.wrong.append(f"{row.label}: {peer} agrees, though it is said: {known}")
        if not agrees and not known:
            self.wrong.append(f"{row.label}: {peer} says {said or 'ACK'}")


@pytest.fixture(name="peers")
def fixture_peers(lab, tmp_path):
    if not envoy_proxy.BINARY.exists():
        pytest.skip("no Envoy")
    program = go_build("grpcgo", ".", tmp_path / "bin" / "grpcgo", timeout=380)
    made = Pki(lab.dir / "pki")
    made.leaf("leaf", made.authority("ca"))
    path = bootstrap(lab.dir, certificate_file=made.folder / "leaf.pem", private_key_file=made.folder / "leaf.key",
                     ca_certificate_file=made.folder / "ca.pem")
    peers = Peers(Testbed(lab), path, made, program)
    yield peers
    assert peers.bed.daemon.stop(EXIT_TIMEOUT_S) == 0


@pytest.mark.timeout(500)  # grpc-go is built once, of many packages
def test_same_verdicts_as_grpc_and_envoy(peers):
    clusters, listeners = list(all_cluster_rows()), list(all_listener_rows())
    judge = Judge([*clusters, *listeners])
    peers.use(CLUSTER)
    for row in (*clusters, *listeners):
        judge.judge(row, peers.verdicts(row))
    print(len(clusters) + len(listeners), "rows", {peer: dict(count) for peer, count in judge.counts.items()})
    assert not judge.wrong, f"{len(judge.wrong)} wrong\n" + "\n".join(judge.wrong)
    assert len(clusters) + len(listeners) >= MIN_ROWS
    assert all(count[word] >= MIN_OF_A_KIND for count in judge.counts.values() for word in ("ACK", "NACK"))
