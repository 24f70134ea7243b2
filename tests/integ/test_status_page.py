# SPDX-License-Identifier: Apache-2.0
"""The status page on the metrics' port, in a headless Chromium."""

import itertools

import pytest

import resources
from browser import Browser
from lab import wait_until
from lab_fixtures import check_end
from world import SIZES, WEB_PORT, World

ADDRESS = "127.0.0.1:9464"
ORIGIN = f"http://{ADDRESS}"
SETTINGS = f"metrics: {{listen: '{ADDRESS}'}}\n"
EVIL = "<img src=x onerror=alert(1)>\"'&<script>alert(2)</script>"
LIVE_S = 30

# Where everything came from that the page has asked for.
REQUESTS = """
return performance.getEntriesByType('resource').map(e => new URL(e.name).origin + ' ' + e.initiatorType)
"""
# What a page without the id does not have: the document is still the one that was opened.
MARK = "window.marked = true"
IS_MARKED = "return window.marked === true"
OVERFLOW = """
const wide = [...document.querySelectorAll('body *')].filter(e => {
  const r = e.getBoundingClientRect();
  return r.width > 1 && r.right > innerWidth + 0.5 && !e.closest("thead, caption");
});
return [document.documentElement.scrollWidth, wide.map(e => e.tagName + ' ' + e.textContent.slice(0, 40))]
"""
# The least contrast of any text with what is behind it (WCAG 2.1, 1.4.3).
CONTRAST = """
const rgb = text => text.match(/[\\d.]+/g).map(Number);
const lum = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = e => {
  for (; e; e = e.parentElement) {
    const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c;
  }
  return [255, 255, 255];
};
let least = [99, ''];
for (const e of document.querySelectorAll('body *')) {
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
  const a = lum(rgb(getComputedStyle(e).color)), b = lum(behind(e));
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < least[0]) least = [ratio, e.tagName + ' ' + e.textContent.slice(0, 40)];
}
return least
"""


@pytest.fixture(name="shown", scope="module")
def fixture_shown(module_lab):
    """What a test changes, it changes back."""
    # The names go wherever names go: a cluster that nobody serves, and a route to it.
    world = World(module_lab, extra=(resources.cluster(EVIL), resources.endpoints(EVIL)),
                  extra_routes=(resources.route("/evil", EVIL),))
    world.bed.settings += SETTINGS
    yield world.start()
    check_end(world.bed)


@pytest.fixture(name="one_browser", scope="module")
def fixture_one_browser(shown):
    with Browser(shown.bed.lab) as browser:
        yield browser


@pytest.fixture(name="browser")
def fixture_browser(one_browser):
    """As if it were new."""
    one_browser.reset()
    return one_browser


BACK = itertools.count(1)


def bring_back(shown):
    """green-1, which was killed."""
    cluster, address = shown.web_backends["green-1"]
    shown.backends["green-1"] = shown.bed.start_http_backend(f"green-1-{next(BACK)}", address, SIZES[cluster], WEB_PORT)
    shown.bed.wait_connect("backends", address, WEB_PORT, shown.backends["green-1"])
    shown.bed.shuntctl("reconnect")


def open_live(browser, path="/"):
    browser.open(ORIGIN + path)
    browser.wait_text("Live", "#live", LIVE_S)


def check_origin(browser):
    """Nothing was asked for but the page and its events, and nothing was forbidden to it."""
    assert set(browser.run(REQUESTS)) <= {f"{ORIGIN} other", f"{ORIGIN} eventsource"}
    assert not browser.complaints()


def test_ops_177_what_happens_is_seen_without_a_new_page(shown, browser):
    bed = shown.bed
    load = bed.start_h2load("load", seconds=120, clients=2, streams=4, rate=50)
    open_live(browser)
    browser.run(MARK)
    browser.wait_no_text("10.82.1.3:8080", "#endpoints")
    wait_until(lambda: float(browser.run(
        "return document.querySelector('.facts dd').textContent.replace('\u2013', '0')")) > 10, LIVE_S, "requests/s")

    shown.backends["green-1"].kill()
    browser.wait_text("10.82.1.3:8080", "#endpoints", LIVE_S)
    assert "TRANSIENT_FAILURE" in browser.text("#endpoints")
    browser.wait_text("1 failing", "#clusters", LIVE_S)
    bring_back(shown)
    browser.wait_no_text("10.82.1.3:8080", "#endpoints", LIVE_S)

    # A frontend that drains, as everybody sees it at once.
    bed.shuntctl("drain", "frontend", "web")
    browser.wait_text("draining", ".state", LIVE_S)
    assert "draining" in browser.run("return document.title")
    bed.shuntctl("undrain", "frontend", "web")
    browser.wait_no_text("draining", ".state", LIVE_S)

    # The xDS server goes.
    bed.xds.kill()
    browser.wait_text("xDS server", "#wrong", LIVE_S)
    browser.wait_text("2 errors", ".state", LIVE_S)  # the other one is the cluster that nobody serves
    assert browser.run(IS_MARKED)
    check_origin(browser)
    bed.start_xds()
    load.kill()


def test_ops_170_hostile_names_are_text_in_a_browser(shown, browser):
    browser.open(f"{ORIGIN}/")
    bed = shown.bed
    bed.lab.exec("client", ["bash", "-c", "h2load -n 3 -c 1 http://10.81.0.10:8080/evil"], timeout=30)
    open_live(browser)
    browser.wait_text(EVIL, "#clusters", LIVE_S)
    browser.wait_text(EVIL, "#failures", LIVE_S)
    assert browser.run("return document.querySelectorAll('main img, main script, main [onerror]').length") == 0
    # Its own page, by the link that its name is in.
    browser.run("[...document.querySelectorAll('#clusters a')].find(a => a.textContent === arguments[0]).click()", EVIL)
    browser.wait_text("all clusters", "main", LIVE_S)
    browser.wait_text("Live", "#live", LIVE_S)
    assert EVIL in browser.text("#clusters") and "blue" not in browser.text("#clusters")
    check_origin(browser)


@pytest.fixture(name="failing")
def fixture_failing(shown):
    """green-1, all the while."""
    shown.backends["green-1"].kill()
    yield
    bring_back(shown)


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_ops_177_it_is_read_narrow_and_wide_in_light_and_dark(browser, scheme):
    open_live(browser)
    browser.wait_text("10.82.1.3:8080", "#endpoints", LIVE_S)
    for width in (360, 700, 1400):
        browser.look(width, scheme)
        scroll, wide = browser.run(OVERFLOW)
        assert scroll <= width and not wide, (width, wide)
        ratio, where = browser.run(CONTRAST)
        assert ratio >= 4.5, (width, where, ratio)
        paper = browser.run("return getComputedStyle(document.body).backgroundColor").split("(")[1]
        assert (int(paper.split(",")[0]) < 128) == (scheme == "dark")
    check_origin(browser)


def test_ops_177_without_scripts_the_page_is_whole(shown, browser):
    browser.allow_scripts(False)
    browser.open(f"{ORIGIN}/")
    browser.allow_scripts(True)  # for us; those of the page have not run
    text = browser.text()
    for part in ("Without JavaScript", "blue", "rpc", "web", "Workers", "127.0.0.1:18000"):
        assert part in text, text
    assert "Live" not in browser.text("#live")
    assert browser.run("return document.title").endswith("Shunt")


def test_the_page_can_be_stopped_and_hidden_and_costs_nothing_then(shown, browser):
    open_live(browser)

    def followers():
        words = ["ss", "-Htn", "state", "established", "sport", "=", ":9464"]
        return shown.bed.lab.exec("lb", words).stdout.count("\n")
    assert followers() >= 1
    browser.run("document.getElementById('pause').click()")
    browser.wait_text("Paused", "#live")
    wait_until(lambda: followers() == 0, LIVE_S, "nobody who follows")
    browser.run("document.getElementById('pause').click()")
    browser.wait_text("Live", "#live", LIVE_S)
    assert followers() >= 1


def test_ops_177_a_page_that_is_not_live_says_since_when(shown, browser):
    open_live(browser)
    shown.bed.daemon.kill()
    browser.wait_text("Not live since", "#live", LIVE_S)
    assert "blue" in browser.text("#clusters")
    shown.bed.start_daemon()
    browser.wait_text("Live", "#live", LIVE_S)
    browser.wait_no_text("Not live", "#live", LIVE_S)
