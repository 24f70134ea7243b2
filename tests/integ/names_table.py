# SPDX-License-Identifier: Apache-2.0
"""What a cluster wants of its server's certificate, for test_names_differential: rows of a cluster's TLS context, and
whether a server with NAMES, or with no name but NOBODY's, is spoken to."""

import dataclasses

HOST = "10.82.1.9"
NAMES = f"DNS:a.test,DNS:*.w.test,URI:spiffe://t.test/Web,email:Me@x.test,IP:{HOST}"
COMMON_NAME = "a.test"  # of the server without other names


@dataclasses.dataclass
class Row:
    label: str
    names: list = dataclasses.field(default_factory=list)  # match_subject_alt_names
    typed: list = dataclasses.field(default_factory=list)  # [(type, matcher)]
    fields: dict = dataclasses.field(default_factory=dict)  # of the UpstreamTlsContext
    hostname: str = ""  # of the endpoint
    has_names: bool = True  # the server's certificate
    opens: bool = True
    known: dict = dataclasses.field(default_factory=dict)  # {peer that departs: why}


def exact(*names):
    return [{"exact": name} for name in names]


VALIDATION = {"auto_sni_san_validation": True}
CORE_FOLDS = {"C-core": "it compares all kinds of names as DNS names, without regard to case"}
NO_EMAILS = {"C-core": "it does not look at emails"}
UNREAD = {peer: "it does not read typed names" for peer in ("C-core", "grpc-go")}

ROWS = (
    Row("no names"),
    Row("no names, of a certificate without", has_names=False),
    Row("the common name does not count", exact(COMMON_NAME), has_names=False, opens=False),
    Row("a DNS name", exact("a.test")),
    Row("a DNS name in other case", exact("A.Test")),
    Row("another DNS name", exact("b.test"), opens=False),
    Row("the end of a DNS name", exact("test"), opens=False),
    Row("under a wildcard", exact("b.w.test")),
    Row("two labels under a wildcard", exact("c.b.w.test"), opens=False),
    Row("what the wildcard stands below", exact("w.test"), opens=False),
    Row("a URI", exact("spiffe://t.test/Web")),
    Row("a URI in other case", exact("spiffe://t.test/web"), opens=False, known=CORE_FOLDS),
    Row("an email", exact("Me@x.test"), known=NO_EMAILS),
    Row("an email in other case", exact("me@x.test"), opens=False),
    Row("an address", exact(HOST)),
    Row("another address", exact("10.82.1.8"), opens=False),
    Row("the second of two", exact("b.test", "a.test")),
    Row("none of two", exact("b.test", "c.test"), opens=False),
    Row("a prefix", [{"prefix": "spiffe://t.test/"}]),
    Row("a prefix in other case", [{"prefix": "SPIFFE://"}], opens=False),
    Row("a prefix in any case", [{"prefix": "SPIFFE://", "ignore_case": True}]),
    Row("a suffix", [{"suffix": "/Web"}]),
    Row("another suffix", [{"suffix": "/Webs"}], opens=False),
    Row("a part", [{"contains": "t.test/W"}]),
    Row("a part in any case", [{"contains": "T.TEST/w", "ignore_case": True}]),
    Row("a prefix of a wildcard's text", [{"prefix": "*.w"}]),
    Row("a prefix of what a wildcard stands for", [{"prefix": "b.w"}], opens=False),
    Row("a pattern", [{"safe_regex": {"regex": "spiffe://t[.]test/.*"}}]),
    Row("a pattern for a part", [{"safe_regex": {"regex": "t[.]test"}}], opens=False),
    Row("a typed DNS name", typed=[("DNS", {"exact": "a.test"})]),
    Row("a typed DNS name that is a URI's", typed=[("DNS", {"prefix": "spiffe:"})], opens=False, known=UNREAD),
    Row("a typed URI", typed=[("URI", {"exact": "spiffe://t.test/Web"})]),
    Row("a typed URI that is a DNS name's", typed=[("URI", {"exact": "a.test"})], opens=False, known=UNREAD),
    Row("a typed address", typed=[("IP_ADDRESS", {"exact": HOST})]),
    Row("a typed email", typed=[("EMAIL", {"exact": "Me@x.test"})]),
    Row("typed names before others", exact("a.test"), [("DNS", {"exact": "b.test"})], opens=False, known=UNREAD),
    Row("SNI alone does not matter", fields={"sni": "b.test"}),
    Row("SNI that is a name", fields={"sni": "a.test", **VALIDATION}),
    Row("SNI in other case", fields={"sni": "A.TEST", **VALIDATION}),
    Row("SNI under a wildcard", fields={"sni": "b.w.test", **VALIDATION}),
    Row("SNI that is no name", fields={"sni": "b.test", **VALIDATION}, opens=False),
    Row("SNI before names", exact("b.test"), fields={"sni": "a.test", **VALIDATION}),
    Row("SNI before names that match", exact("a.test"), fields={"sni": "b.test", **VALIDATION}, opens=False),
    Row("the host's name", fields={"auto_host_sni": True, **VALIDATION}, hostname="a.test"),
    Row("the host's name that is no name", fields={"auto_host_sni": True, **VALIDATION}, hostname="b.test",
        opens=False),
    Row("the host's name before SNI", fields={"auto_host_sni": True, "sni": "a.test", **VALIDATION},
        hostname="b.test", opens=False),
    Row("no host's name", fields={"auto_host_sni": True, "sni": "a.test", **VALIDATION}),
)
