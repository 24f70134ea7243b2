# SPDX-License-Identifier: Apache-2.0
"""Clients that speak HTTP/1.1 to the balancer, whose backends speak HTTP/2."""

import json
import pathlib
import re
import sys

from http1_table import rows
from testbed import PORT, VIP
from testbed import URL as ROOT

URL = ROOT.rstrip("/") + "/mark"
HERE = pathlib.Path(__file__).parent
GET = b"GET /mark HTTP/1.1\r\nHost: a\r\n\r\n"


def curl(lab, *words):
    """What curl says of status, version, connections and bytes."""
    told = "%{http_code} %{http_version} %{num_connects} %{size_download}\n"
    out = lab.exec("client", ["curl", "-sS", "--http1.1", "--max-time", "60", "-o", "/dev/null", "-w", told, *words])
    return out.stdout.split("\n")[:-1]


def speak(lab, *asked):
    """Rows of h1_agent.py: (pieces, final answers, whether the connection ends)."""
    told = [{"pieces": [p.hex() for p in pieces], "answers": n, "closed": closed} for pieces, n, closed in asked]
    path = lab.dir / "h1-rows.json"
    path.write_text(json.dumps(told))
    script = f"exec {sys.executable} {HERE / 'h1_agent.py'} {VIP} {PORT} < {path}"
    return json.loads(lab.exec("client", ["sh", "-c", script]).stdout)


def test_curl_gets_and_posts_in_every_way_and_keeps_its_connection(world, lab):
    """H1-01, H1-09, H1-12, H1-19, H1-31."""
    small, large = lab.dir / "small", lab.dir / "large"
    small.write_bytes(b"s" * 100)
    large.write_bytes(b"l" * 100_000_000)
    for folder in lab.dir.glob("www-*"):
        with open(folder / "big", "wb") as big:
            big.truncate(100_000_000)
    assert curl(lab, f"{ROOT}/big") == ["200 1.1 1 100000000"]
    told = [answer[:10] for answer in curl(lab, URL, "-o", "/dev/null", URL)]
    assert told == ["200 1.1 1 ", "200 1.1 0 "], told
    assert curl(lab, "-I", URL) == ["200 1.1 1 0"]
    assert curl(lab, "-0", URL)[0].startswith("200 ")
    for how in (["-d", f"@{small}"], ["-H", "Expect: 100-continue", "-d", f"@{small}"],
                ["-H", "Transfer-Encoding: chunked", "--data-binary", f"@{small}"],
                ["--data-binary", f"@{large}"],
                ["-H", "Transfer-Encoding: chunked", "-T", str(large), "-X", "POST"]):
        assert curl(lab, *how, URL)[0].startswith("200 1.1 1 "), how
    workers = world.bed.show_workers()
    assert sum(w["h1"]["requests_chunked"] for w in workers) == 2, workers
    assert sum(w["h2"]["conn_errors"] for w in workers) == 0, workers


def test_h2load_asks_by_http_1(world, lab):
    argv = ["h2load", "--h1", "-n", "20000", "-c", "16", URL]
    out = lab.exec("client", argv).stdout
    assert re.search(r"20000 succeeded, 0 failed, 0 errored", out), out


def test_pipelined_requests_are_answered_in_order(world, lab):
    """H1-09: however the bytes are cut."""
    heads = [GET.replace(b"GET", b"HEAD"), GET, b"GET /none HTTP/1.1\r\nHost: a\r\n\r\n"]
    many = b"".join([GET, heads[2]] * 50)
    together, cut, long = speak(
        lab, ([GET + heads[2] + GET], 3, False),
        ([(GET + heads[2])[i:i + 1] for i in range(len(GET + heads[2]))], 2, False), ([many], 100, False))
    assert together["statuses"] == [200, 404, 200] and together["whole"], together
    assert cut["statuses"] == [200, 404], cut
    assert long["statuses"] == [200, 404] * 50, long


def test_who_is_refused_is_told_why_and_hung_up_on(world, lab):
    """H1-30."""
    grpc = b"POST /a.B/C HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\nContent-Length: 0\r\n\r\n"
    upgrade = GET[:-2] + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"
    bad, refused, ignored, http9 = speak(
        lab, ([b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n" + GET], 1, True), ([grpc], 1, True), ([upgrade], 1, False),
        ([GET.replace(b"1.1", b"9.9")], 1, True))
    assert [a["statuses"] for a in (bad, refused, ignored, http9)] == [[400], [415], [200], [505]]
    assert all(a["closed"] for a in (bad, refused, http9)) and not ignored["closed"]
    counters = world.bed.show_workers()[0]["h1"]
    assert counters["malformed_request_line"] == 1 and counters["grpc_415"] == 1, counters


def test_smuggling_rows_are_refused_or_taken_once(world, lab):
    """H1-24: by the running daemon, too. Two of them it takes for other protocols, and one h1_agent.py can't."""
    told = [row for row in rows() if row.name not in ("TLS record", "preface of HTTP/2", "body of HEAD")]
    refused = [int(row.verdict[-3:]) if re.search(r"[45]\d\d$", row.verdict) else None for row in told]
    heard = speak(lab, *[([row.payload], row.taken + bool(no), bool(no)) for row, no in zip(told, refused)])
    wrong = [(row.name, row.verdict, h["statuses"]) for row, no, h in zip(told, refused, heard)
             if len(h["statuses"]) != row.taken + bool(no) or not h["whole"]
             or (no and (h["statuses"][-1] != no or not h["closed"]))
             or not no and set(h["statuses"]) - {200, 301, 404, 405}]
    assert not wrong, wrong
