# SPDX-License-Identifier: Apache-2.0
"""h2load: runs it and reads its report.

Backends mark their answers by size: /mark is a file of a size of its own on each of them. With two
sizes in play, h2load's sum of payload bytes tells how many answers came from which, counted by the
client and not by the balancer.
"""

import dataclasses
import re

MARK = "/mark"


@dataclasses.dataclass
class Report:
    total: int
    succeeded: int
    failed: int
    errored: int
    timeout: int
    status_2xx: int
    payload: int
    seconds: float

    @property
    def perfect(self):
        return self.succeeded == self.status_2xx == self.total and self.failed == 0

    @property
    def rate(self):
        return self.succeeded / self.seconds if self.seconds else 0.0

    def split(self, size_a, size_b):
        """How many answers had size_a and how many size_b; ValueError if no such numbers exist."""
        n_b, rest = divmod(self.payload - self.succeeded * size_a, size_b - size_a)
        n_a = self.succeeded - n_b
        if rest or n_a < 0 or n_b < 0:
            raise ValueError(f"{self.payload} bytes are no mix of {self.succeeded} answers of "
                             f"{size_a} or {size_b}: an answer was altered")
        return n_a, n_b


def arguments(url, requests=None, seconds=None, clients=16, streams=16, rate=None, uris=None, body=None,
              http1=False):
    """The command line. rate: of each client, a second. uris: a file of URIs that each client asks
    for one after the other, instead of the one. body: a file to POST. http1: HTTP/1.1, with keep-alive."""
    amount = ["-D", str(seconds)] if seconds else ["-n", str(requests)]
    pace = ["--rps", str(rate)] if rate else []
    return ["h2load", *amount, *pace, *(["--h1"] if http1 else []), "-c", str(clients), "-m", str(streams),
            *(["-d", str(body)] if body else []), *(["-i", str(uris)] if uris else [url])]


def _find(pattern, text):
    found = re.search(pattern, text)
    if not found:
        raise ValueError(f"h2load said nothing like {pattern!r}:\n{text}")
    return found


def parse(text):
    seconds = _find(r"finished in ([\d.]+)(us|ms|s|m)\b", text)
    scale = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}[seconds[2]]
    requests = _find(r"requests: (\d+) total, \d+ started, \d+ done, (\d+) succeeded, "
                     r"(\d+) failed, (\d+) errored, (\d+) timeout", text)
    status = _find(r"status codes: (\d+) 2xx", text)
    payload = _find(r"\((\d+)\) data", text)
    total, *outcomes = map(int, requests.groups())
    return Report(total, *outcomes, int(status[1]), int(payload[1]),
                  float(seconds[1]) * scale)
