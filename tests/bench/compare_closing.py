# SPDX-License-Identifier: Apache-2.0
"""Backends that end their connections: after so many requests, so long after a connection began, or when it has been
idle for so long. The backend is an nginx, the same for everybody; what counts is how fast and how evenly a balancer
goes on. Requests that it cannot end well are a figure of the peers', and a failure of shuntd's.
"""

import shutil

ANSWER = "#" * 64
# What ends a connection, and nginx's words for it; all other reasons are far away.
BUSY = {"50 requests": "keepalive_requests 50;", "1000 requests": "keepalive_requests 1000;",
        "0.4 s": "keepalive_requests 1000000000; keepalive_time 400ms;"}
IDLE = {"0.4 s idle": "keepalive_requests 1000000000; keepalive_timeout 400ms;"}
CASES = {**BUSY, **IDLE}
BUSY_LOAD = ("-c", 8, "-m", 8)
IDLE_LOAD = ("-c", 1, "-r", 2, "-D", 3)  # each request comes later than nginx waits


def is_here():
    return bool(shutil.which("nginx"))


def command(lab, address, port, case):
    """nginx as the backend of this case."""
    config = lab.dir / "closing.conf"
    config.write_text(f"""\
daemon off;
worker_processes 1;
pid {lab.dir}/closing.pid;
error_log {lab.dir}/closing.err crit;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  http2_max_concurrent_streams 1000;
  {CASES[case]}
  server {{
    listen {address}:{port} http2;
    location / {{ return 200 "{ANSWER}"; }}
  }}
}}
""")
    return ["nginx", "-c", config]


def figures(subjects, seconds):
    """(subject, what, unit, value, how many requests of shuntd's failed) of all of them in all cases."""
    for subject in subjects:
        for case in CASES:
            with subject(closing=case) as running:
                report = running.load_of(*(IDLE_LOAD if case in IDLE else [*BUSY_LOAD, "-D", max(1.0, seconds)]))
            name = f"backend closes after {case}"
            if case in BUSY:
                yield subject, f"answers per second, {name}", "1/s", report["per_second"], 0
            yield subject, f"longest wait, {name}", "ms", report["latency_ns"]["max"] / 1e6, 0
            yield (subject, f"failed of 1000, {name}", "", 1e3 * report["failed"] / report["sent"],
                   0 if subject.is_peer else report["failed"])
