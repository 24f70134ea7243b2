# SPDX-License-Identifier: Apache-2.0
"""Why grpc-go and Envoy judge rows of verdict_table otherwise than shuntd, {reason: rows}. C-core's reasons stand with
its rows (`core`); docs/xds.md tells all of them by kind."""

GRPC_GO = {
    "the socket's name counts for it (A29); we go by the type, as C-core and Envoy (TLS-127)": (
        "tls: another name of the socket (TLS-127)", "cluster: no name of the socket (TLS-127)",
        "chain: another name of the socket (TLS-127)", "chain: no name of the socket (TLS-127)",
        "proxy: around plain text (HC-01)", "proxy: around TLS by another name (HC-01)",
        "socket: plain text by name (A36-10)"),
    "older fields count for it where the newer ones say nothing, and then all together; we take each, as C-core": (
        "tls: an old field that is not read (TLS-122)", "tls: our certificate by the old field, of nobody (TLS-126)",
        "cluster: certificates beside a provider's by the old field (TLS-123)",
        "server: clients must, by the old field (TLS-126)", "server: a combined one of nothing (TLS-128)"),
    "it does not read typed names; we do, as Envoy (TLS-125)": (
        "tls: a typed name of no type (TLS-125)", "tls: a typed name of another type (TLS-125)",
        "tls: a typed name without matcher (TLS-125)", "cluster: a typed name of type 99 (TLS-125)",
        "server: typed names of clients (TLS-128)"),
    "it ignores ignore_case beside a pattern; C-core and Envoy do not": ("tls: a pattern without case (TLS-125)",),
    "a provider without a name is none to it; C-core looks for it": (
        "cluster: our certificate of a provider without a name (TLS-121)",),
    "it knows a context by its type alone; we open a TypedStruct, as Envoy": (
        "cluster: a context in a struct (TLS-217)", "chain: a context in a struct (TLS-217)"),
    "it does not look at it; C-core does": (
        "socket: UDP (A36-02)", "socket: a port above 65535 (A36-02)", "socket: two managers (A36-06)",
        "socket: bad inline routes (A36-08)", "socket: a bad duration (A36-08)",
        "socket: a bad prefix of the default chain (A36-11)"),
    "chains that never match are not there for it, good or bad; C-core looks at them": (
        "socket: one that never matches alone (A36-05)", "socket: a bad chain that never matches (A36-07)",
        "chain: a bad context in a chain that never matches (A36-07)", "socket: twice destination_port (A36-24)",
        "socket: twice server_names (A36-25)", "socket: twice another transport (A36-25)",
        "socket: twice application_protocols (A36-25)", "socket: raw_buffer with application_protocols first (A36-25)"),
    "it refuses any (A36); we have some, and C-core ignores them": ("socket: listener_filters (A36-04)",),
    "it is stricter than C-core": ("socket: no name (A36-06)", "socket: rds from self (A36-08)"),
    "it is for servers, and we are a proxy": (
        "socket: xff_num_trusted_hops (HX-50)", "socket: faults (A36-09)", "socket: sessions (A36-09)"),
    "it has no limit of depth; C-core has ours (A41-04)": (
        "filter: rbac: 17 lists deep (A41-04)", "filter: rbac: 17 negations deep (A41-04)",
        "filter: rbac: 17 principals deep (A41-04)"),
}

ENVOY = {
    "without CAs it takes any certificate; A29 refuses": (
        "tls: no context (TLS-122)", "tls: an empty context (TLS-122)", "tls: no CA (TLS-122)",
        "tls: combined, empty (TLS-122)", "tls: an old field that is not read (TLS-122)",
        "cluster: an empty combined context's default (TLS-122)", "cluster: a bad context in a struct (TLS-217)",
        "cluster: TLS without CAs around which a proxy is (HC-02)", "proxy: around TLS without CAs (HC-02)",
        "context: clients must have a certificate, of nobody (TLS-128)", "context: system roots (TLS-128)",
        "server: clients must, by the system's CAs (TLS-128)", "server: a validation without CAs (TLS-128)",
        "server: a combined one without CAs (TLS-128)"),
    "it ignores providers": (
        "tls: CAs of nobody (TLS-121)", "tls: combined, of nobody (TLS-121)",
        "tls: combined, by the old field, of nobody (TLS-126)", "tls: our certificate, of nobody (TLS-121)",
        "tls: our certificate by the old field, of nobody (TLS-126)",
        "server: clients must, by nobody's CAs (TLS-121)"),
    "it ignores the field, which A29 refuses": (
        "tls: require_signed_certificate_timestamp (TLS-123)",
        "server: require_signed_certificate_timestamp (TLS-123)"),
    "it has more than gRPC and we have": (
        "tls: tls_params (TLS-123)", "tls: tls_params with something (TLS-123)", "tls: certificates (TLS-123)",
        "tls: a typed name of another type (TLS-125)", "context: parameters (TLS-123)", "context: SNI (TLS-128)",
        "context: STRICT_STAPLING (TLS-128)", "context: names of clients (TLS-128)",
        "server: names in a combined context (TLS-128)", "server: typed names of clients (TLS-128)",
        "proxy: around itself (HC-02)", "proxy: by match (HC-03)", "proxy: beside matches (HC-03)",
        "socket: a pipe (A36-02)", "socket: use_original_dst (A36-03)", "socket: an unknown HTTP filter (A36-08)",
        "filter: rbac: checked_condition (A41-05)", "filter: rbac: header :scheme (A41-06)",
        "filter: rbac: header grpc-timeout (A41-06)"),
    "its API wants more than gRPC looks at": (
        "cluster: trust of kind 99 (TLS-127)", "cluster: no name of the socket (TLS-127)",
        "chain: no name of the socket (TLS-127)", "socket: no name (A36-06)", "socket: no port (A36-02)",
        "socket: a port above 65535 (A36-14)", "filter: rbac: bad rules that log (A41-03)",
        "filter: rbac: bad shadow rules (A41-03)", "filter: rbac: an empty policy (A41-05)",
        "filter: rbac: any that is false (A41-05)", "filter: rbac: a list of none (A41-05)",
        "filter: rbac: one of none (A41-05)", "filter: rbac: inverted metadata (A41-11)",
        "filter: rbac: metadata (A41-11)"),
    "it cannot do what gRPC can, or ignores": (
        "cluster: system roots with names (TLS-124)",
        "cluster: certificates by SDS beside a provider's (TLS-123)",
        "server: certificates by SDS beside a provider's (TLS-123)", "socket: a name (A36-02)",
        "socket: a named port (A36-02)", "socket: listener_filters (A36-04)", "socket: rds from self (A36-08)",
        "socket: sessions (A36-09)"),
    "a chain needs neither a filter nor a router for it": (
        "socket: no filters (A36-06)", "socket: no filters in the default chain (A36-06)",
        "socket: a bad chain that never matches (A36-07)", "socket: a bad default chain (A36-07)",
        "socket: no HTTP filters (A36-08)"),
    "it tells chains apart by it; gRPC ignores it": ("socket: direct peers and all (A36-41)",),
    "chains that never match without an inspector must differ, too (A36); not so for C-core": (
        "socket: twice destination_port (A36-24)", "socket: twice server_names (A36-25)",
        "socket: twice another transport (A36-25)", "socket: twice application_protocols (A36-25)",
        "socket: two behind raw_buffer (A36-25)", "socket: raw_buffer with application_protocols first (A36-25)"),
    "it does not look at it; gRPC does": (
        "socket: a bad prefix of the default chain (A36-11)", "filter: rbac: header without a matcher (A28-H14)",
        "filter: rbac: 33 bits (A41-07)", "filter: rbac: two filters of one name (FLT-01)",
        "filter: rbac: an override as a filter (FLT-02)"),
    "it has no limit of depth; C-core has ours (A41-04)": GRPC_GO["it has no limit of depth; C-core has ours (A41-04)"],
}
