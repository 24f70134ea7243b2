# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus beside the daemon, with the rules of contrib/, in which all time goes faster by one factor."""

import json
import re
import time
import urllib.parse

from lab import wait_until
from testbed import ROOT

ADDRESS = "127.0.0.1:9090"
RULES = ROOT / "contrib" / "prometheus" / "alerts.yml"
CONFIG = ROOT / "contrib" / "prometheus" / "prometheus.yml"
DASHBOARD = ROOT / "contrib" / "grafana" / "shunt.json"
PAGE = ROOT / "docs/metrics.md"
# True where others have the cores; promtool tells when it fires.
OF_A_BUSY_MACHINE = {"ShuntAddsTime"}
SECONDS = {"s": 1, "m": 60, "h": 3600}
LOOK_BACK = "5m"  # Prometheus' own, for which a sample counts
RATE_INTERVAL = "1m"  # what Grafana makes of a scrape each 15 s
# What tells alerts of one name apart.
OBJECTS = ("frontend", "cluster", "pool", "worker", "gateway", "port", "provider", "grpc_xds_resource_type",
           "grpc_xds_server", "role")
START_S = 45


def sped_up(text, factor):
    """Rules and configurations: each interval, `for` and window of theirs is divided by the factor."""
    def shorter(found):
        return f"{found[1]}{round(1000 * int(found[2]) * SECONDS[found[3]] / factor)}ms"
    return re.sub(r"(_interval: |for: |\[)(\d+)([smh])\b", shorter, text)


def name_of(labels):
    """"page ShuntClusterDown green"."""
    thing = next((labels[key] for key in OBJECTS if key in labels), "")
    return f"{labels['severity']} {labels['alertname']} {thing}".rstrip()


OF_OTHERS = ("shunt_port_member_", "grpc_lb_wrr_", "grpc_lb_outlier_detection_ejections_unenforced_")


def metrics_of_the_page():
    """The names in the tables of docs/metrics.md, of histograms their buckets', without what only bonds have
    (test_bonds.py), clusters whose backends report, or whose outliers are spared."""
    for name, kind in re.findall(r"^\| `([a-z_]+)` \| (\w+) \|", PAGE.read_text(), re.MULTILINE):
        if not name.startswith(OF_OTHERS):
            yield f"{name}_bucket" if kind == "histogram" else name


class Prometheus:
    def __init__(self, bed, factor):
        self.lab = bed.lab
        self.factor = factor
        folder = self.lab.dir / "prometheus"
        folder.mkdir()
        (folder / "alerts.yml").write_text(sped_up(RULES.read_text(), factor))
        config = folder / "prometheus.yml"
        config.write_text(sped_up(CONFIG.read_text(), factor))
        self.process = self.lab.start("lb", "prometheus", [
            "prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
            f"--query.lookback-delta={self.scaled(LOOK_BACK)}", f"--web.listen-address={ADDRESS}",
            "--log.level=warn"])
        wait_until(lambda: self.value("count(up == 1)") == 2, START_S, "both jobs scraped")

    def scaled(self, duration):
        return sped_up(f"[{duration}", self.factor)[1:]

    def ask(self, path, **query):
        url = f"http://{ADDRESS}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        text = self.lab.exec("lb", ["curl", "-sg", "--max-time", "10", url], check=False).stdout
        return json.loads(text) if text.startswith("{") else {"status": "error", "error": "no answer"}

    def value(self, expr):
        """The only sample's value; None = there is none."""
        answer = self.ask("query", query=expr)
        rows = answer["data"]["result"] if answer["status"] == "success" else []
        return float(rows[0]["value"][1]) if rows else None

    def series(self, expr):
        answer = self.ask("query", query=expr)
        assert answer["status"] == "success", (expr, answer)
        return answer["data"]["result"]

    def firing(self):
        """The names of all alerts that fire, but for those of a busy machine."""
        alerts = self.ask("alerts")
        if alerts["status"] != "success":
            return set()
        return {name_of(a["labels"]) for a in alerts["data"]["alerts"]
                if a["state"] == "firing" and a["labels"]["alertname"] not in OF_A_BUSY_MACHINE}

    def rules(self):
        """{alert: (seconds of `for`, seconds of its longest window)}, as this Prometheus has them."""
        found = {}
        for group in self.ask("rules")["data"]["groups"]:
            for rule in group["rules"]:
                windows = re.findall(r"\[((?:\d+(?:ms|[smh]))+)\]", rule["query"])
                hold, window = found.get(rule["name"], (0, 0))
                found[rule["name"]] = (max(hold, rule["duration"]), max([window, *map(seconds_of, windows)]))
        return found

    def fired_since(self, start):
        """[(when, alert)] of all times at which one fired, as the rules were evaluated."""
        answer = self.ask("query_range", query='ALERTS{alertstate="firing"}', start=start, end=time.time(), step=1)
        return sorted((float(at), name_of(series["metric"])) for series in answer["data"]["result"]
                      for at, _ in series["values"] if series["metric"]["alertname"] not in OF_A_BUSY_MACHINE)

    def queries_of_the_dashboard(self):
        """(panel, query), with its variables filled in."""
        board = json.loads(DASHBOARD.read_text())
        for panel in board["panels"]:
            for target in panel["targets"]:
                yield panel["title"], (target["expr"].replace("$instance", ".*")
                                       .replace("$__rate_interval", self.scaled(RATE_INTERVAL)))


def seconds_of(duration):
    """Of "1m30s", as Prometheus prints it."""
    units = {**SECONDS, "ms": 0.001}
    return sum(int(n) * units[unit] for n, unit in re.findall(r"(\d+)(ms|[smh])", duration))
