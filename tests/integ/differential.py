# SPDX-License-Identifier: Apache-2.0
"""What the differential tests share: an oracle's outcome against ours, with the known differences.

A table KNOWN maps `case/label`, or a case's name for all its calls, to (what shuntd does, why it
may differ from the oracle: an id of the routing rules). A difference that nobody explains is wrong,
and so is an explanation that explains nothing.
"""

import collections
import math

EARLY_S, LATE_S = 0.02, 10  # how late is the machine's: what is not ended in time ends otherwise
SIGMAS = 6


def add_oracle(bed):
    """A namespace for the oracle, with a direct way to the backends."""
    bed.lab.link(("oracle", "o0"), ("backends", "b1"))
    bed.lab.address("oracle", "o0", "10.83.0.1/24")
    bed.lab.address("backends", "b1", "10.83.0.2/24")
    bed.lab.ip("oracle", "route", "add", "10.82.0.0/16", "via", "10.83.0.2")


class Judge:
    """Gathers complaints in `wrong`; show(answer) says what an answer amounts to."""

    def __init__(self, oracle, known, show, oracle_early_s=EARLY_S):
        self.oracle = oracle
        self.known = known
        self.show = show
        self.oracle_early_s = oracle_early_s
        self.wrong = []
        self.outcomes = []  # the oracle's
        self._used = set()

    def compare(self, cases, ask):
        """ask(calls) gives (their answers, our answers)."""
        rows = [(case, call) for case in cases for call in case.calls]
        theirs, ours = ask([call for _, call in rows])
        assert len(theirs) == len(ours) == len(rows)
        for (case, call), their, our in zip(rows, theirs, ours):
            self.outcomes.append(self.show(their))
            known = self._known(case, call)
            label = f"{case.name}/{call.label}"
            self._judge(label, call, known, their, our)
            if call.ends_s:
                self._judge_time(label, "shuntd", call, our, EARLY_S)
            if call.ends_s and not known:
                self._judge_time(label, self.oracle, call, their, self.oracle_early_s)

    def _known(self, case, call):
        for key in (f"{case.name}/{call.label}", case.name):
            if key in self.known:
                self._used.add(key)
                return self.known[key]
        return None

    def _judge(self, label, call, known, their, our):
        wanted = self.show(their)
        if known:
            if self.show(their) == known[0]:
                self.wrong.append(f"{label}: {self.oracle} does {known[0]} too, so KNOWN is wrong: "
                                  f"{known[1]}")
            wanted = known[0]
        elif call.expected and wanted != call.expected:
            self.wrong.append(f"{label}: the table says {call.expected}, {self.oracle} {their}")
        if self.show(our) != wanted:
            self.wrong.append(f"{label}: wanted {wanted}, {self.oracle} {self.show(their)}, "
                              f"shuntd {our}")

    def _judge_time(self, label, who, call, answer, early_s):
        took = answer.get("seconds", math.inf)
        if not call.ends_s - early_s <= took <= call.ends_s + LATE_S:
            self.wrong.append(f"{label}: {who} ended after {took:.2f} s, not {call.ends_s} s")

    def compare_shares(self, cases, ask):
        rows = [(case, call) for case in cases for call in case.calls for _ in range(case.repeat)]
        theirs, ours = ask([call for _, call in rows])
        counts = collections.defaultdict(lambda: (collections.Counter(), collections.Counter()))
        for (case, call), their, our in zip(rows, theirs, ours):
            key = f"{case.name}/{call.label}"
            counts[key][0][self.show(their)] += 1
            counts[key][1][self.show(our)] += 1
        for key, (their, our) in counts.items():
            self._judge_shares(key, their, our)

    def _judge_shares(self, key, their, our):
        wanted = their
        if key in self.known:
            self._used.add(key)
            shares, why = self.known[key]
            wanted = {name: share * sum(our.values()) for name, share in shares.items()}
            if not far_apart(wanted, their):
                self.wrong.append(f"{key}: {self.oracle} does so too, so KNOWN is wrong: {why}")
        if far_apart(wanted, our):
            self.wrong.append(f"{key}: wanted {dict(wanted)}, shuntd {dict(our)}")

    def conclude(self, min_calls, often, min_often=20):
        """Fails with everything that was wrong. An oracle that gives one answer to all is none."""
        self.wrong += [f"{key}: KNOWN, but nobody asks" for key in set(self.known) - self._used]
        assert not self.wrong, f"{len(self.wrong)} differences\n" + "\n".join(self.wrong)
        assert len(self.outcomes) >= min_calls
        counts = collections.Counter(self.outcomes)
        assert all(counts[name] >= min_often for name in often), counts


def far_apart(one, other):
    """Whether two counts of equal totals can't well be draws of one distribution."""
    total = sum(one.values())
    for key in {*one, *other}:
        first, second = one.get(key, 0), other.get(key, 0)
        share = (first + second) / (2 * total)
        if abs(first - second) > SIGMAS * math.sqrt(2 * total * share * (1 - share)) + 1:
            return True
    return False
