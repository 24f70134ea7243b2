# SPDX-License-Identifier: Apache-2.0
"""Ten minutes of clients that mean no harm, all at once, and beside the victim: 10,000 streams of grpc-go, browsers,
long polls, readers on slow links. Nothing fails, and no counter of a defence moves. Only with --long;
SHUNT_WELL_BEHAVED_S chooses another time."""

import json
import os
import re
import types

import judge
import pytest
import well_behaved
from go_build import go_build
from lab import SUPPORT_CPU, wait_until

SECONDS = int(os.environ.get("SHUNT_WELL_BEHAVED_S", "600"))
STREAMS, CHANNELS = 10_000, 112  # grpc-go opens no second connection when `limits.streams` are open
SPARE_S = 90
PORT = 8300
KINDS = (well_behaved.browsers, well_behaved.long_polls, well_behaved.slow_readers)
# What a well-behaved client never makes grow.
DEFENCES = re.compile(
    r"h2\.(abuse_\w+|malformed_\w+|conn_errors|streams_refused_\w+|no_memory|requests_bad_400|requests_too_large_431)"
    r"|proxy\.(clients_(refused|over_share|over_budget|evicted|silent|in_header|stalled|cut_for_memory)|streams_stalled"
    r"|streams_cut_for_memory|queue_overflows|refused_early_ends)"
    r"|ended\.(?!ok$|client_reset$|client_lost$)\w+")


@pytest.mark.timeout(SECONDS + 600)
def test_no_defence_strikes_clients_that_mean_no_harm(grounds, form, tmp_path, say):
    if form != "long":
        pytest.skip("takes ten minutes: --long")
    program = go_build("grpcgo", "./streams", tmp_path / "streams", timeout=380)
    ground = grounds("honest")
    server = ground.lab.start("backends", "streams-server", [program, "serve", f"{ground.honest}:{PORT}"], cpu=None)
    ground.bed.wait_connect("backends", ground.honest, PORT, server)
    ground.serve(("/shunt.test.Streams", "streams", (ground.honest, PORT), 2 * STREAMS))
    wait_until(lambda: {c["cluster"]: c["state"] for c in ground.bed.show("clusters")["clusters"]}.get("streams") ==
               "READY", 20, "the streams' backend")
    ground.samples()
    before = ground.counters()
    running = [ground.attack(kind.__name__, types.SimpleNamespace(topic="well_behaved", name=kind.__name__), SECONDS)
               for kind in KINDS]
    sources = [f"10.66.255.{n + 1}" for n in range(CHANNELS)]
    asking = ground.lab.start("client", "streams", [program, "ask", ground.address, SECONDS, STREAMS, *sources],
                              cpu=SUPPORT_CPU, files=4096)
    wait_until(lambda: not any(p.alive() for p in (*running, asking)), SECONDS + SPARE_S, "their end")
    after, victim = ground.counters(), ground.samples()
    streams = json.loads(asking.output().splitlines()[-1])
    told = [judge.report_of(process)["told"] for process in running]
    struck = {name: after[name] - before.get(name, 0) for name in after
              if DEFENCES.fullmatch(name) and after[name] != before.get(name, 0)}
    say(f"{streams}\n{[{**t, 'failures': t['failures'][:5]} for t in told]}\nvictim: {len(victim)}\nstruck: {struck}")
    assert streams["failures"] == {} and streams["streams"] == STREAMS
    assert [t["failures"][:5] for t in told] == [[], [], []] and all(t["finished"] for t in told)
    assert [error for _, _, error in victim if error] == []
    assert struck == {}
