# SPDX-License-Identifier: Apache-2.0
"""Messages and frames that are wrong: smuggling, injection, and what the state machine forbids."""

import raw_h2 as h2
from attacker import Cut
from row import row

BASE = h2.indexed(2) + h2.indexed(6) + h2.literal(4, "/smuggled") + h2.literal(1, "victim.test")


def smuggle(a, *blocks):
    """Each on a stream of its own; none may be answered by a backend, which knows no such path and would say 404."""
    conn = a.connect()
    conn.keeps_answers = True
    for n, block in enumerate(blocks):
        conn.send(h2.headers(1 + 2 * n, block))
        a.units += 1
    conn.send(h2.ping(b"finished"))
    while a.going() and conn.responses + sum(conn.resets.values()) < len(blocks):
        conn.wait(seconds=0.1)
        conn.pump()
    a.told.update(blocks=len(blocks), passed=sum("status: 404" in text for text in conn.answers.values()))


def none_passed(outcome):
    told = outcome.report["told"]
    if not told:
        return "the connection did not live as long as the requests"
    return f"{told['passed']} of {told['blocks']} reached a backend" if told["passed"] else None


@row(check=none_passed, counter="h2.malformed_value")
def values_with_line_breaks_reach_no_backend(a):
    """TH-19: CVE-2021-39240."""
    smuggle(a, *(BASE + h2.literal("x-a", f"b{c}get / http/1.1") for c in ("\r", "\n", "\r\n", "\0")),
            *(BASE + h2.literal("x-a", value) for value in (" b", "b ", "\tb")))


@row(check=none_passed, counter="h2.malformed_name")
def names_with_what_is_no_token_reach_no_backend(a):
    """TH-12, TH-19: CVE-2019-9516."""
    names = ("", "X-A", "x a", "x\ra", "x\na", "x\0a", "x:a", "x\x7fa", "x\xffa", "x(a", "x/a", "x@a", "x,a")
    smuggle(a, *(BASE + h2.literal(name, "b") for name in names))


@row(check=none_passed, counter=("h2.malformed_connection_field", "h2.malformed_te"))
def fields_of_a_connection_reach_no_backend(a):
    """TH-19: CVE-2021-40346."""
    names = ("connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade")
    smuggle(a, *(BASE + h2.literal(name, "chunked") for name in names), BASE + h2.literal("te", "gzip"),
            BASE + h2.literal("te", "trailers, gzip"))


@row(check=none_passed, counter="h2.malformed_pseudo")
def pseudo_fields_that_are_doubled_late_or_unknown_reach_no_backend(a):
    """TH-19."""
    path = h2.literal(4, "/smuggled")
    smuggle(a, BASE + path, BASE + h2.indexed(2), BASE + h2.indexed(6), BASE + h2.literal(1, "other.test"),
            h2.literal("x-a", "b") + BASE, BASE + h2.literal("x-a", "b") + path, BASE + h2.literal(":unknown", "b"),
            BASE + h2.literal(":status", "200"), h2.indexed(2) + h2.indexed(6) + h2.literal(1, "victim.test"),
            h2.indexed(2) + path + h2.literal(1, "victim.test"), h2.indexed(6) + path + h2.literal(1, "victim.test"))


@row(check=none_passed, counter="h2.malformed_content_length")
def lengths_that_do_not_fit_reach_no_backend(a):
    """TH-19."""
    values = ("1", "-1", "+0", "0x0", "00000000000000000000000000001", "1, 2", "", " 0", "18446744073709551616")
    smuggle(a, *(BASE + h2.literal("content-length", value) for value in values),
            BASE + h2.literal("content-length", "0") + h2.literal("content-length", "1"))


@row(check=none_passed, counter="h2.requests_bad_400")
def a_host_that_is_not_the_authority_reaches_no_backend(a):
    """TH-19: CVE-2023-25725."""
    bare = h2.indexed(2) + h2.indexed(6) + h2.literal(4, "/smuggled")
    smuggle(a, bare, *(bare + h2.literal(1, authority) for authority in ("a@b", "a b", "a/b", "a\tb")))


@row(check=none_passed, counter="h2.malformed_method")
def methods_schemes_and_paths_that_are_none_reach_no_backend(a):
    """TH-19."""
    def of(method, scheme, path):
        return h2.fields((":method", method), (":scheme", scheme), (":path", path), (":authority", "victim.test"))
    smuggle(a, of("GET / HTTP/1.1\r\n", "http", "/smuggled"), of("G T", "http", "/smuggled"),
            of("", "http", "/smuggled"), of("GET", "ht tp", "/smuggled"), of("GET", "", "/smuggled"),
            of("GET", "http", ""))


def wrong_frames(a, *frames):
    """Each on a connection of its own, behind a request. All these are errors of a connection."""
    for _ in range(100 if a.long else 3):
        for frame in frames:
            try:
                conn = a.connect()
                conn.send(h2.headers(1, h2.request()) + frame)
                a.units += 1
                while True:
                    conn.wait()
                    conn.pump()
            except Cut:
                pass


@row(counter="h2.conn_errors", cut_s=5)
def frames_on_streams_that_are_idle_or_fall_end_their_connection(a):
    """TH-20."""
    wrong_frames(a, h2.data(5, b"x"), h2.rst(5), h2.window(5, 1), h2.headers(2, h2.request()),
                 h2.headers(7, h2.request()) + h2.headers(5, h2.request()), h2.data(0, b"x"),
                 h2.frame(h2.HEADERS, 5, 0, h2.request()), h2.frame(h2.PING, 0, 1, bytes(8)),
                 h2.frame(h2.SETTINGS, 0, 1), h2.frame(h2.GOAWAY, 0, 1, bytes(8)), h2.continuation(1, b""))


@row(counter="h2.conn_errors", cut_s=5)
def frames_of_wrong_lengths_end_their_connection(a):
    """TH-20."""
    wrong_frames(a, h2.frame(h2.PING, 0, 0, bytes(7)), h2.frame(h2.SETTINGS, 0, 0, bytes(5)),
                 h2.frame(h2.SETTINGS, 1, 0, bytes(6)), h2.frame(h2.RST, 0, 1, bytes(3)),
                 h2.frame(h2.WINDOW, 0, 0, bytes(3)), h2.frame(h2.GOAWAY, 0, 0, bytes(7)),
                 h2.frame(h2.DATA, h2.PADDED, 1, b"\xff"),
                 h2.frame(h2.HEADERS, 4 | h2.PADDED, 3, b"\xff" + h2.request()),
                 h2.frame(h2.DATA, 0, 1, bytes(16385)), h2.frame(0xee, 0, 0, b"", length=0xffffff))


@row(counter="h2.conn_errors", cut_s=5)
def windows_and_settings_out_of_range_end_their_connection(a):
    """TH-18: RFC 9113 6.5.2, 6.9.1."""
    wrong_frames(a, h2.window(0, h2.MAX_WINDOW), h2.window(0, 0), h2.settings((h2.INITIAL_WINDOW, 1 << 31)),
                 h2.settings((h2.MAX_FRAME, 100)), h2.settings((h2.MAX_FRAME, 1 << 24)),
                 h2.settings((h2.ENABLE_PUSH, 2)), h2.frame(h2.PUSH, 4, 1, b"\0\0\0\2"))


@row(spared=True)
def windows_that_become_negative_hold_answers_back(a):
    """TH-18: RFC 9113 6.9.2: and open again, again and again."""
    conn = a.connect(settings=((h2.INITIAL_WINDOW, 20_000),))
    for i in range(1000):
        stream = 1 + 2 * i
        conn.send(h2.headers(stream, h2.request("/page")) + h2.settings((h2.INITIAL_WINDOW, 0)))
        conn.wait(seconds=0.01)
        conn.pump()
        conn.send(h2.settings((h2.INITIAL_WINDOW, 20_000)) + h2.rst(stream))
        a.units += 1
        a.sleep(0.25)  # within the budgets of resets and of SETTINGS


@row(counter="h2.conn_errors")
def random_bytes_behind_the_preface_end_their_connection_alone(a):
    """TH-20."""
    noise = [a.random.randbytes(400) for _ in range(100)]
    a.flood(lambda turn: noise[turn % 100], 1, n=4, again=True)


@row()
def random_frames_of_known_types_disturb_nobody(a):
    """TH-20."""
    def some(_):
        return b"".join(h2.frame(a.random.randrange(10), a.random.randrange(256), a.random.randrange(6),
                                 a.random.randbytes(a.random.choice((0, 4, 5, 6, 8, 20)))) for _ in range(20))
    a.flood(some, 20, n=4, again=True)
