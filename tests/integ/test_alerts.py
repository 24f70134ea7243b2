# SPDX-License-Identifier: Apache-2.0
"""The alert rules and the dashboard of contrib/, as a real Prometheus sees a real daemon. Faults are planted one after
the other, each healed before the next; time goes faster in all rules by one factor. The whole table, an hour in ten
minutes, is opt-in: tools/test alerts."""

import collections
import math
import os
import re
import subprocess
import time

import pytest

from alerts_table import ROWS
from alerts_world import AlertsWorld
from lab import wait_until
from prometheus import PAGE, RULES, metrics_of_the_page
from testbed import HERE

PROMTOOL = HERE / "alerts_promtool.yml"
HOUR_IN_TEN_MINUTES, HOUR_IN_THREE = 6, 20
SLACK_S = 30  # beyond what the rules take: scrapes, backoff of the daemon's own, and others on the machine
QUIET = "2m"  # without a fault, more than most rules wait

whole = pytest.mark.skipif("not config.getoption('--alerts')", reason="tools/test alerts runs it")


class Hour:
    """What happened and what was told. A fault that nobody is told of is noted, and the hour goes on."""

    def __init__(self, world):
        self.world, self.prometheus = world, world.prometheus
        self.rules = self.prometheus.rules()
        self.quiet_s = self.seconds(QUIET)
        self.began = time.time()
        self.spans = []  # (row, alert, planted, healed, until when it may fire)
        self.wrong = []
        self.silent = set(self.prometheus.queries_of_the_dashboard())

    def seconds(self, duration):
        return int(self.prometheus.scaled(duration).removesuffix("ms")) / 1000

    def rule(self, alert):
        return self.rules[alert.split()[1]]

    def rest(self):
        time.sleep(self.quiet_s)
        self.look()

    def look(self):
        """At the dashboard: which of its queries find something now."""
        self.silent = {(title, query) for title, query in self.silent if not self.prometheus.series(query)}

    def play(self, row):
        print(f"{time.time() - self.began:6.0f} s  {row.name}", flush=True)
        planted = time.time()
        fault = row.plant(self.world)
        healed = math.inf
        try:
            next(fault)
            if row.fires:
                self._await_firing(row)
            else:
                time.sleep(self.quiet_s)
            self.look()
        finally:
            healed = time.time()
            next(fault, None)
        for alert in row.fires | row.may:
            window = self.rule(alert)[1]
            until = time.time() + window + SLACK_S if window else self._await_end(row, alert)
            self.spans.append((row, alert, planted, healed, until))
        self.look()

    def _await_firing(self, row):
        bound = SLACK_S + max(sum(self.rule(alert)) for alert in row.fires)
        try:
            wait_until(lambda: row.fires <= self.prometheus.firing(), bound, row.name, interval=0.5)
        except TimeoutError:
            self._note(f"{row.name}: not within {bound:.0f} s: {row.fires - self.prometheus.firing()}")

    def _await_end(self, row, alert):
        """Of an alert that is of the present alone."""
        try:
            wait_until(lambda: alert not in self.prometheus.firing(), SLACK_S, alert, interval=0.5)
        except TimeoutError:
            self._note(f"{row.name}: healed, and {alert} fires on after {SLACK_S} s")
        return time.time() + 2

    def _note(self, text):
        print(f"         {text}", flush=True)
        self.wrong.append(text)

    def end(self):
        """Until what looks back has seen enough; then all that was told must have had its reason."""
        last = max((until for *_, until in self.spans), default=0)
        wait_until(lambda: not self.prometheus.firing() or time.time() > last, SLACK_S + last - time.time() + 1,
                   "silence", interval=1)
        fired = self.prometheus.fired_since(self.began)
        self._tell_table(fired)
        for alert, times in sorted(self._without_reason(fired).items()):
            self._note(f"{alert} fired {len(times)} s for nothing, from {times[0] - self.began:.0f} s on")
        for title, query in sorted(self.silent if len({row.name for row, *_ in self.spans}) > 1 else ()):
            self._note(f"dashboard, {title}: {query} finds nothing")
        for name in metrics_of_the_page():
            if not self.prometheus.value(f"count(last_over_time({name}[1h]))"):
                self._note(f"docs/metrics.md: {name} has no sample")
        assert not self.wrong, "\n".join(self.wrong)

    def _without_reason(self, fired):
        found = collections.defaultdict(list)
        for at, alert in fired:
            if not any(alert == of and planted <= at <= until for _, of, planted, _, until in self.spans):
                found[alert].append(at)
        return found

    def _tell_table(self, fired):
        print(f"{'fault':62} {'alert':58} {'fires':>6} {'ends':>6}")
        n = 0
        for row, alert, planted, healed, until in self.spans:
            times = [at for at, of in fired if of == alert and planted <= at <= until]
            n += bool(times)
            if times:
                print(f"{row.name:62} {alert:58} {times[0] - planted:5.0f}s {max(times[-1] - healed, 0):5.0f}s")
        print(f"{n} alerts of {sum(bool(row.fires) for row in ROWS)} faults, "
              f"{time.time() - self.began:.0f} s", flush=True)


def an_hour(lab, folder, factor, rows):
    world = AlertsWorld(lab, folder, factor)
    try:
        hour = Hour(world.start())
        hour.rest()
        for row in rows:
            hour.play(row)
        hour.end()
    finally:
        world.close()


@pytest.mark.timeout(400)
def test_ops_15_alerts_fire_for_a_few_faults_and_nothing_else(lab, tmp_path):
    """OPS-201: and they end."""
    an_hour(lab, tmp_path, HOUR_IN_THREE, [row for row in ROWS if row.is_short])


@whole
@pytest.mark.timeout(1800)
def test_ops_15_alerts_fire_for_the_faults_of_an_hour_and_nothing_else(lab, tmp_path):
    """SHUNT_FAULTS: only the rows with this text."""
    an_hour(lab, tmp_path, HOUR_IN_TEN_MINUTES, [row for row in ROWS if os.environ.get("SHUNT_FAULTS", "") in row.name])


def test_ops_15_what_is_not_planted_fires_by_promtool(tmp_path):
    """Rules whose faults would need a broken machine or an hour, on series by hand."""
    for path in (RULES, PROMTOOL):
        (tmp_path / path.name).write_text(path.read_text())
    done = subprocess.run(["promtool", "test", "rules", PROMTOOL.name], cwd=tmp_path, capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 0, done


def test_ops_202_each_rule_has_a_fault_and_a_line_of_the_page():
    rules = set(re.findall(r"alert: (\w+)", RULES.read_text()))
    planted = {alert.split()[1] for row in ROWS for alert in row.fires}
    assert planted <= rules
    assert rules - planted <= set(re.findall(r"alertname: (\w+)\n", PROMTOOL.read_text()))
    assert rules == set(re.findall(r"^\| `(Shunt\w+)` \|", PAGE.read_text(), re.MULTILINE))
