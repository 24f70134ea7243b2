# SPDX-License-Identifier: Apache-2.0
"""What a load cost whom tools/compare measures, and how that is found by looks at a worker."""

import collections

Look = collections.namedtuple("Look", "busy_s long_turns requests")  # of a worker, so far


class Sample:
    """A load that has ended. requests; subject_s, others_s: CPU; per_second; failed; counted: how many of the requests
    subject_s is of; busy: of the loading thread, where it polls; latency: shunt-load's, in ns; why: {outcome: how
    many}."""

    def __init__(self, requests, subject_s, others_s, per_second, failed, *, counted=None, busy=None, latency=None,
                 why=None):
        self.requests = requests
        self.subject_s = subject_s
        self.others_s = others_s
        self.per_second = per_second
        self.failed = failed
        self.counted = requests if counted is None else counted
        self.busy = busy
        self.latency = latency
        self.why = why

    def without(self, less):
        """The same but for what another load needed, too."""
        return Sample(self.requests - less.requests, self.subject_s - less.subject_s, self.others_s - less.others_s,
                      self.per_second, self.failed, busy=self.busy, latency=self.latency, why=self.why)

    def subject_us(self, least=1):
        """Of a request; None: fewer than that were counted, which tell nothing."""
        return self.subject_s / self.counted * 1e6 if self.counted >= least else None

    def whole_us(self):
        return (self.subject_s + self.others_s) / self.requests * 1e6


def spent(looks):
    """(seconds busy, requests) of what passed between two looks without a turn of more than a millisecond. A worker
    with real-time priority is held off its core for 50 ms of each second, and a turn that finds what came meanwhile
    seems to have lasted as long: in half a second that is more than all requests cost."""
    pairs = [(b.busy_s - a.busy_s, b.requests - a.requests) for a, b in zip(looks, looks[1:])
             if a.long_turns == b.long_turns]
    return sum(busy_s for busy_s, _ in pairs), sum(n for _, n in pairs)


def steady(looks):
    """Those of them between which connections neither come nor go: a load's first request is sent when all of its
    connections are there, and the last one answered before they go."""
    some = [i for i, (a, b) in enumerate(zip(looks, looks[1:])) if b.requests > a.requests]
    return looks[some[0] + 1:some[-1] + 1] if some else []
