# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus beside the daemon, with the rules of contrib/, in seconds where these have minutes."""

import json
import re
import urllib.parse

from lab import wait_until
from testbed import ROOT

ADDRESS = "127.0.0.1:9090"
RULES = ROOT / "contrib" / "prometheus" / "alerts.yml"
CONFIG = ROOT / "contrib" / "prometheus" / "prometheus.yml"
DASHBOARD = ROOT / "contrib" / "grafana" / "shunt.json"
# True where others have the cores; promtool tells when it fires.
OF_A_BUSY_MACHINE = {"ShuntAddsTime"}
WINDOW = "8s"  # of rates
HOLD = "2s"  # of alerts
WAIT_S = 30

GET = """
import sys, urllib.request, urllib.error
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())
except urllib.error.HTTPError as e:
    print(e.read().decode())
"""


def in_short_form(text):
    """Of rules and configurations: a scrape a second, and waits to match."""
    text = re.sub(r"(scrape|evaluation)_interval: \d+s", r"\1_interval: 1s", text)
    text = re.sub(r"for: \d+[ms]", f"for: {HOLD}", text)
    return text.replace("[5m]", f"[{WINDOW}]")


class Prometheus:
    def __init__(self, bed):
        self.bed = bed
        self.lab = bed.lab
        folder = self.lab.dir / "prometheus"
        folder.mkdir()
        (folder / "alerts.yml").write_text(in_short_form(RULES.read_text()))
        config = folder / "prometheus.yml"
        config.write_text(in_short_form(CONFIG.read_text()))
        self.process = self.lab.start("lb", "prometheus", [
            "prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={ADDRESS}", "--log.level=warn"])
        wait_until(lambda: self.query("count(up == 1)") == 2, WAIT_S, "both jobs scraped")

    def ask(self, path, **query):
        url = f"http://{ADDRESS}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        text = self.lab.exec("lb", ["/usr/bin/python3", "-c", GET, url], check=False).stdout
        return json.loads(text) if text.startswith("{") else {"status": "error", "error": "no answer"}

    def query(self, expr):
        """The only sample's value; None = there is none."""
        answer = self.ask("query", query=expr)
        rows = answer["data"]["result"] if answer["status"] == "success" else []
        return float(rows[0]["value"][1]) if rows else None

    def series(self, expr):
        answer = self.ask("query", query=expr)
        assert answer["status"] == "success", (expr, answer)
        return answer["data"]["result"]

    def firing(self):
        alerts = self.ask("alerts")
        if alerts["status"] != "success":
            return {}
        return {a["labels"]["alertname"]: a for a in alerts["data"]["alerts"]
                if a["state"] == "firing" and a["labels"]["alertname"] not in OF_A_BUSY_MACHINE}

    def wait_firing(self, *names):
        """Until these alerts fire, and no others."""
        wait_until(lambda: set(self.firing()) == set(names), WAIT_S, f"{names or 'no alert'} of {set(self.firing())}",
                   interval=0.5)

    def dashboard_queries(self):
        board = json.loads(DASHBOARD.read_text())
        for panel in board["panels"]:
            for target in panel["targets"]:
                yield panel["title"], (target["expr"].replace("$instance", ".*")
                                       .replace("$__rate_interval", WINDOW))
