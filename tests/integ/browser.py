# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium in the balancer's namespace, by chromedriver's WebDriver and nothing else. It has a profile of
its own, and no way to any network but the loopback there."""

import base64
import json

from lab import LabError, wait_until

DRIVER = "127.0.0.1:9515"
START_TIMEOUT_S = 60
LOAD_TIMEOUT_MS = 90_000  # on a machine at work
ARGUMENTS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--disable-dev-shm-usage", "--hide-scrollbars", "--force-device-scale-factor=1")


class Browser:
    """Use it as a context: at its end it is closed."""

    def __init__(self, lab):
        self.lab = lab
        self.folder = lab.dir / "chromium"
        self.folder.mkdir()
        self.session = ""
        home = {"HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder), "XDG_CACHE_HOME": str(self.folder),
                "TMPDIR": str(self.folder)}
        host, port = DRIVER.split(":")
        self.driver = lab.start("lb", "chromedriver", ["chromedriver", f"--port={port}"], env=home)
        wait_until(lambda: lab.accepts("lb", host, port, 1), START_TIMEOUT_S, "chromedriver")
        options = {"args": [*ARGUMENTS, f"--user-data-dir={self.folder / 'profile'}"]}
        answer = self._ask("POST", "/session", capabilities={"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"},
            "timeouts": {"pageLoad": LOAD_TIMEOUT_MS}}})
        self.session = f"/session/{answer['sessionId']}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._ask("DELETE", self.session)
        self.driver.stop()

    def _ask(self, method, path, **body):
        """A command of WebDriver: its answer is JSON, whatever the status."""
        words = ["-H", "Content-Type: application/json", "--data-binary", json.dumps(body)] if method == "POST" else []
        done = self.lab.exec("lb", ["curl", "-sS", "-m", "100", "-X", method, *words, f"http://{DRIVER}{path}"],
                             timeout=110)
        value = json.loads(done.stdout)["value"]
        if isinstance(value, dict) and "error" in value:
            raise LabError(f"{method} {path}: {value['error']}: {value.get('message', '')}")
        return value

    def open(self, url):
        self._ask("POST", f"{self.session}/url", url=url)

    def run(self, script, *args):
        """What the body of a function returns, run in the page."""
        return self._ask("POST", f"{self.session}/execute/sync", script=script, args=list(args))

    def text(self, selector="body"):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def wait_text(self, part, selector="body", timeout=30):
        wait_until(lambda: part in self.text(selector), timeout, f"'{part}' in {selector}", interval=0.3)

    def wait_no_text(self, part, selector="body", timeout=30):
        wait_until(lambda: part not in self.text(selector), timeout, f"no '{part}' in {selector}", interval=0.3)

    def tell(self, command, **parameters):
        """Of Chromium's own protocol: what a person sets in it."""
        return self._ask("POST", f"{self.session}/goog/cdp/execute", cmd=command, params=parameters)

    def look(self, width, scheme, height=900):
        """A window of this size, for somebody who prefers light or dark."""
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=False)
        self.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def allow_scripts(self, allowed):
        self.tell("Emulation.setScriptExecutionDisabled", value=not allowed)

    def reset(self):
        """To a blank page, as wide and as light as it was at first; nobody follows the last one any more, and what was
        complained of there is forgotten."""
        self.allow_scripts(True)
        self.tell("Emulation.clearDeviceMetricsOverride")
        self.tell("Emulation.setEmulatedMedia", features=[])
        self.open("about:blank")
        self.complaints()

    def screenshot(self, whole=False):
        """PNG, of what is seen or of the whole page."""
        answer = self.tell("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def complaints(self):
        """Of its console, since the last time: errors, and what a policy has forbidden."""
        return [entry["message"] for entry in self._ask("POST", f"{self.session}/se/log", type="browser")
                if entry["level"] in ("SEVERE", "WARNING")]
