# SPDX-License-Identifier: Apache-2.0
"""Runs a row in a world, and says what is wrong with what became of it. Time is told and never judged, but for what a
row says itself: when an attacker is to be cut, and when all is to be given back."""

import contextlib
import dataclasses
import json
import time

import row as rows
from attack_world import SPARE_S
from lab import LabError

POLL_S = 0.15
AFTER_S = 0.3  # that the victim is watched behind an attack
# What has to be as it was before: beside the victim, whose own come and go, and connections to backends.
BACK = {"clients": 8, "requests": 16, "tcp_connections": 12, "tcp_ranges": 4, "tcp_runs": 64,
        "h2_connections": 12, "h2_streams": 32, "chunks": 96}
# Frames of the device, and what only remembers that a connection was.
NOT_HELD = ("mbufs", "tcp_time_wait", "upstreams")
CUT_SPARE_S = 2
SETTLED_S = 0.5  # of looks
AGAIN_S = 10  # of the attack, if the short form had no effect
SHORT_BACK_S = 5  # a row that is open is not waited for longer in the short form


class Fault(AssertionError):
    """What a row found; anything else is an error of the tests."""


@dataclasses.dataclass
class Outcome:
    row: rows.Row
    report: dict
    counters: dict  # by how much each grew
    ended: list  # the victim's requests
    quiet: list
    held: int  # bytes of pools at most, more than before
    by_pool: dict
    resident: int  # bytes more than before
    settled: int  # of pools at most when the attack was about to end
    back_s: float | None  # None: not within the row's time
    left: dict  # pools that are not as before: objects more

    @property
    def rate(self):
        return self.report["units"] / max(self.report["seconds"], 0.001)

    @property
    def failed(self):
        return [error for _, _, error in self.ended if error]

    @property
    def success(self):
        return 100 * (1 - len(self.failed) / max(1, len(self.ended)))

    def grown(self, name):
        return self.counters.get(name, 0)


def quantile(samples, share):
    times = sorted(seconds for _, seconds, _ in samples)
    return times[min(len(times) - 1, int(share * len(times)))] if times else float("nan")


class Watch:
    """What pools hold while an attack runs."""

    def __init__(self, ground):
        self.ground = ground
        self.before = ground.used()
        self.resident = ground.resident()
        self.most, self.by_pool, self.most_resident = 0, {}, 0
        self.looks = []  # (when, bytes of pools)

    def look(self):
        now = self.ground.used()
        held = {}
        for pool, (used, size, peak) in now.items():
            was_used, _, was_peak = self.before[pool]
            # A peak that is new says more than a look now and then.
            most = peak if peak > was_peak else used
            if not pool.startswith(NOT_HELD) and most > was_used:
                held[pool] = (most - was_used) * size
        total = sum(held.values())
        if total > self.most:
            self.most, self.by_pool = total, held
        self.looks.append((time.monotonic(), sum(max(0, used - self.before[pool][0]) * size
                                                 for pool, (used, size, _) in now.items()
                                                 if not pool.startswith(NOT_HELD))))
        self.most_resident = max(self.most_resident, self.ground.resident() - self.resident)
        return now

    def settled(self):
        """What pools held at most when the attack was about to end."""
        end = self.looks[-1][0]
        return max(held for at, held in self.looks if at >= end - SETTLED_S)

    def left(self, more):
        now = self.ground.used()
        return {pool: now[pool][0] - self.before[pool][0] for pool, slack in BACK.items()
                if now[pool][0] > self.before[pool][0] + slack + more.get(pool, 0)}


def report_of(process):
    try:
        report = json.loads(process.output().splitlines()[-1])
    except (ValueError, IndexError):
        raise LabError(f"{process.name} ended with {process.popen.returncode}: {process.output()}") from None
    if "error" in report:
        raise LabError(report["error"])
    return report


def attack(ground, row, seconds, form, watch):
    """Once; the attacker's report."""
    process = ground.attack(f"attack-{row.name}", row, seconds, least=row.least, long=form == "long")
    end = time.monotonic() + seconds + SPARE_S
    while process.alive() and time.monotonic() < end:
        watch.look()
        with contextlib.suppress(TimeoutError):
            process.wait(POLL_S)
    if process.alive():
        process.kill()
        raise LabError(f"the attack did not end: {process.output()}")
    return report_of(process)


def run(ground, row, form):
    """The outcome of a row: form is "short" or "long"."""
    seconds = row.seconds[form == "long"]
    if row.cut_s and form == "short" and not row.long:
        seconds = max(seconds, row.cut_s + CUT_SPARE_S)  # it ends sooner, when all are cut
    back_s = min(row.back_s, SHORT_BACK_S) if form == "short" and row.open else row.back_s
    stays = row.stays if form == "short" else {}
    ground.samples()
    watch, before = Watch(ground), ground.counters()
    report = attack(ground, row, seconds, form, watch)
    ended_at = time.monotonic()
    time.sleep(AFTER_S)
    after = ground.counters()
    if form == "short" and any(after[name] <= before.get(name, 0) for name in row.counters):
        # A machine that is busy with something else may have left no time for it.
        report = attack(ground, row, AGAIN_S, form, watch)
        ended_at = time.monotonic()
        time.sleep(AFTER_S)
        after = ground.counters()
    ended = ground.samples()
    left = watch.left(stays)
    while left and time.monotonic() - ended_at < back_s:
        time.sleep(POLL_S)
        left = watch.left(stays)
    return Outcome(row, report, {name: after[name] - before.get(name, 0) for name in after}, ended, ground.quiet,
                   watch.most, watch.by_pool, watch.most_resident, watch.settled(),
                   None if left else time.monotonic() - ended_at, left)


def faults(outcome):
    """Why the row fails, as sentences."""
    row, report = outcome.row, outcome.report
    if outcome.failed:
        yield f"{len(outcome.failed)} of the victim's {len(outcome.ended)} requests failed: {outcome.failed[:3]}"
    if not outcome.ended:
        yield "none of the victim's requests has ended"
    most = row.held * max(1, report["most"])
    if outcome.held > most:
        yield f"{outcome.held} bytes of pools were held, by {report['most']} connections that may hold {most}: " \
              f"{outcome.by_pool}"
    if row.settles and outcome.settled > rows.MIB * report["most"]:
        yield f"in the end {outcome.settled} bytes of pools were held by {report['most']} connections"
    for name in row.counters:
        if outcome.grown(name) < 1:
            yield f"{name} did not grow"
    for name in row.calm:
        if outcome.grown(name):
            yield f"{name} grew by {outcome.grown(name)}"
    yield from cut_faults(row, report)
    if outcome.back_s is None:
        yield f"not given back: {outcome.left}"
    if row.check:
        error = row.check(outcome)
        if error:
            yield error


def cut_faults(row, report):
    if row.spared and report["cuts"]:
        yield f"{len(report['cuts'])} connections were cut"
    if row.cut_s is None:
        return
    late = [s for s in report["cuts"] if s > row.cut_s]
    if late:
        yield f"{len(late)} connections were cut late: after {max(late):.1f} s"
    # Those that are opened again and again are not all due at the end.
    left = report["connections"] - len(report["cuts"])
    if not report["cuts"] or left and report["connections"] == report["most"]:
        yield f"{left} of {report['connections']} connections were not cut"
