# SPDX-License-Identifier: Apache-2.0
"""Where nginx, Envoy and dataplane/h1 differ over a row of smuggling.rows, and why."""


def by_row(*groups):
    """{(rule, name): why} of (rule, why, names)."""
    return {(rule, name): why for rule, why, names in groups for name in names}


# What one of them refuses and we take.
LAXER = by_row(
    ("H1-02", "Envoy has a list of methods; RFC 9110 9.1 does not end it, and HTTP/2 here does not either",
     ["a method of our own"]),
    ("H1-06", "RFC 9112 3.2.4 has it; nginx proxies none, and Envoy has no route for it", ["asterisk of OPTIONS"]),
    ("H1-06", "nginx decodes and normalizes paths; here routes and backends get them as they are, as with HTTP/2",
     ["dots in the path", "percent in the path"]),
    ("H1-08", "Envoy's bound is 100 by default; ours is HTTP/2's", ["128 fields"]),
    ("H1-09", "Envoy answers two of three that come at once", ["pipelined"]),
    ("H1-09", "Envoy never keeps a connection of HTTP/1.0; RFC 9112 C.2.2 lets it be kept", [
        "HTTP/1.0 with keep-alive"]),
    ("H1-16", "RFC 9110 7.8 lets a server ignore an upgrade, as nginx does", ["websocket"]),
)

# What both take and we refuse.
STRICTER = by_row(
    ("H1-02", "RFC 9112 3 lets such blanks be taken, and warns of it", [
        "two blanks before the target", "two blanks before the version", "blank behind the version"]),
    ("H1-02", "no such version exists, so nobody knows its framing", ["version 1.2", "version 1.9"]),
    ("H1-03", "RFC 9112 2.2 lets a bare LF end a line: where only one of two servers does, there are two requests", [
        "bare LF behind the request line", "bare LF behind a field", "bare LF ends the head", "bare LF throughout",
        "bare LF before chunked", "a bare LF before", "LF and then CRLF"]),
    ("H1-03", "RFC 9112 2.2: a bare CR makes the element invalid", ["two CRs before LF", "a bare CR before"]),
    ("H1-03", "RFC 9112 2.2 asks for at least one to be skipped", ["two empty lines before"]),
    ("H1-07", "RFC 9112 3.2: 400 for an invalid Host; RFC 9110 7.2 and RFC 3986 3.2.2 say what one is", [
        "with user", "port of letters", "two ports", "negative port", "IPv6 without bracket", "bracket within",
        "letters behind the bracket", "empty brackets", "zone in brackets"]),
    ("H1-12", "RFC 9112 7.1: overflows are to be expected and prevented", ["17 digits"]),
    ("H1-12", "blanks belong to an extension", ["blank behind the size", "tab behind the size", "two numbers"]),
    ("H1-12", "RFC 9112 7.1.1: their length ought to be limited", ["an extension too long", "too many blanks"]),
    ("H1-12", "a bare LF, as in a head", [
        "bare LF behind the data", "data too short", "bare LF ends the trailers"]),
    ("H1-12", "RFC 9112 7.1.1: no control byte is in an extension", ["NUL in an extension"]),
    ("H1-13", "RFC 9110 6.5.1: never in trailers", ["Content-Length", "Transfer-Encoding", "Host"]),
    ("H1-13", "trailers are lines as a head's are", ["obs-fold", "bare LF", "too many"]),
    ("H1-14", "RFC 9110 7.6.1: no option may name a field of the whole way", [
        "names Content-Length", "names Transfer-Encoding", "names Authorization", "names Cookie",
        "names Content-Type"]),
    ("H1-14", "RFC 9110 7.6.1: options are tokens", ["has a blank in a name", "quoted"]),
    ("H1-15", "RFC 9110 10.1.1: 417 for what is not known", ["another expectation", "two expectations"]),
)
