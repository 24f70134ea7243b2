# SPDX-License-Identifier: Apache-2.0
"""Bad and odd listeners for test_validation, as validation_table has route configurations."""

import copy

import resources
from policy_cases import FAULT, FAULTS, FILTER_CONFIG, grpc_abort, http_abort
from resources import ROUTER, TYPES, route, route_config, virtual_host
from routing_cases import ALPHA
from validation_table import (ACK, BUFFER, ROUTES, SESSION, SESSION_PER_ROUTE, UDPA_STRUCT,
                              XDS_STRUCT, Row)

COOKIE_STATE = TYPES + "extensions.http.stateful_session.cookie.v3.CookieBasedSessionState"
HEADER_STATE = TYPES + "extensions.http.stateful_session.header.v3.HeaderBasedSessionState"
ROUTER_FILTER = {"name": "router", "typed_config": {"@type": ROUTER}}
SERVED = {"/x.T/M": ALPHA}


def good_listener(name="web"):
    made = resources.listener(name, ROUTES)
    made["api_listener"]["api_listener"]["http_filters"] = [
        FAULTS, session_filter(), ROUTER_FILTER]
    return made


def session_filter(name="session", **cookie):
    config = {"@type": COOKIE_STATE, "cookie": {"name": "c", **cookie}}
    state = {"name": "cookie", "typed_config": config}
    return {"name": name, "typed_config": {"@type": SESSION, "session_state": state}}


def changed(**fields):
    made = copy.deepcopy(good_listener())
    made["api_listener"]["api_listener"].update(fields)
    return made


def filters(*list_of):
    return changed(http_filters=list(list_of))


def some(name, url, optional=False, **config):
    made = {"name": name, "typed_config": {"@type": url, **config}}
    if optional:
        made["is_optional"] = True
    return made


def bad(label, resource, *texts, **more):
    return Row(label, texts, resource=resource, **more)


def good(label, resource, answers=None, **more):
    return Row(label, ACK, resource=resource, answers=answers or SERVED, **more)


def chain_rows():
    unknown = some("unknown", BUFFER, max_request_bytes=1)
    optional = {**unknown, "is_optional": True}
    where = "http_filters"
    yield bad("no filters (FLT-01)", filters(), where)
    yield bad("no router (FLT-03)", filters(FAULTS), where, "router")
    yield bad("router before another (FLT-03)", filters(ROUTER_FILTER, FAULTS), where, "router")
    yield bad("two routers (FLT-03)", filters(ROUTER_FILTER, some("again", ROUTER)), where,
              "router")
    yield bad("unknown optional filter alone (FLT-03)", filters(optional), where, "router")
    yield good("unknown optional filter after the router (FLT-03)",
               filters(ROUTER_FILTER, optional))
    yield good("unknown optional filter first (FLT-02)", filters(optional, ROUTER_FILTER))
    yield bad("unknown filter (FLT-02)", filters(unknown, ROUTER_FILTER), "unknown", "Buffer")
    yield bad("two filters of one name (FLT-01)", filters(FAULTS, FAULTS, ROUTER_FILTER), where,
              "fault", "duplicate")
    yield bad("two filters of one name, one left out (FLT-01)",
              filters(FAULTS, {**optional, "name": "fault"}, ROUTER_FILTER), where, "fault",
              "duplicate")
    yield bad("filter without a name (FLT-01)", filters({**FAULTS, "name": ""}, ROUTER_FILTER),
              where)
    yield bad("filter without a config (FLT-02)", filters({"name": "f"}, ROUTER_FILTER), "f",
              "typed_config")
    yield bad("type that is for overrides alone (FLT-02)",
              filters(some("s", SESSION_PER_ROUTE, disabled=True), ROUTER_FILTER), "s",
              "StatefulSessionPerRoute")
    two = some("fault-2", FAULT, **http_abort(418))
    yield good("two filters of one type", filters(FAULTS, two, ROUTER_FILTER), {"/x.T/M": "418"})


def fault_rows():
    for optional in (False, True):
        yield bad(f"bad fault, optional: {optional} (FLT-02, FI-09)",
                  filters(some("fault", FAULT, optional, **http_abort(700)), ROUTER_FILTER),
                  "fault", "http_status", core="ACK: it does not check (FI-09)")
    yield bad("fault with an unknown denominator (FLT-02)", filters(some(
        "fault", FAULT, abort={"http_status": 503, "percentage": {"denominator": 9}}),
        ROUTER_FILTER), "fault", "denominator", core="ACK: it does not check")
    delay = {"fixed_delay": "-1s", "percentage": {"numerator": 100}}
    yield bad("fault with a bad delay (A28-V08)", filters(some("fault", FAULT, delay=delay),
                                                      ROUTER_FILTER), "fault", "fixed_delay")
    yield good("fault", filters(some("fault", FAULT, **http_abort(418)), ROUTER_FILTER),
               {"/x.T/M": "418"})
    yield good("fault of gRPC status (FI-05)",
               filters(some("fault", FAULT, **grpc_abort(9)), ROUTER_FILTER), {"/x.T/M": "grpc 9"},
               headers=[["content-type", "application/grpc"]])
    for url in (XDS_STRUCT, UDPA_STRUCT):
        kind = url.split("/")[1]
        percentage = {"numerator": 100, "denominator": "HUNDRED"}
        value = {"abort": {"http_status": 418, "percentage": percentage}}
        yield good(f"fault in a {kind} (FLT-04)", filters(some(
            "fault", url, type_url=FAULT, value=value), ROUTER_FILTER), {"/x.T/M": "418"},
            core="NACK: its faults cannot be read from JSON (FLT-04)")
        yield bad(f"unknown type in a {kind} (FLT-04)", filters(some(
            "odd", url, type_url="type.googleapis.com/no.Such", value={}), ROUTER_FILTER), "odd",
            "no.Such")
        yield good(f"optional unknown type in a {kind} (FLT-04)", filters(some(
            "odd", url, True, type_url="type.googleapis.com/no.Such", value={}), ROUTER_FILTER))


def disabled_rows():
    """A fault of the listener that is disabled there, and switched on by one route (FLT-09)."""
    fault = {**some("fault", FAULT, **http_abort(418)), "disabled": True}
    yield good("a disabled fault", filters(fault, ROUTER_FILTER))
    on = route("/on.T/", ALPHA)
    on["typed_per_filter_config"] = {"fault": {"@type": FILTER_CONFIG, "config": {}}}
    routes = route_config("inline", virtual_host("all", ["*"], on, route("", ALPHA)))
    del routes["@type"]
    yield good("a disabled fault that a route switches on",
               without(changed(route_config=routes, http_filters=[fault, ROUTER_FILTER]), "rds"),
               {"/on.T/M": "418", "/x.T/M": ALPHA}, core="NACK: it wants a config (FLT-08)")


def session_rows():
    state = {"name": "s", "typed_config": {"@type": HEADER_STATE, "name": "x"}}
    yield bad("session of another kind (SA-01)",
              filters(some("session", SESSION, session_state=state), ROUTER_FILTER), "session",
              "HeaderBasedSessionState")
    yield good("session of no kind (SA-01)", filters(some("session", SESSION), ROUTER_FILTER))
    bare = {"name": "s", "typed_config": {"@type": COOKIE_STATE}}
    yield bad("session without a cookie (SA-02)",
              filters(some("session", SESSION, session_state=bare), ROUTER_FILTER), "session",
              "cookie")
    yield bad("cookie without a name (SA-02)",
              filters(session_filter() | named_cookie(""), ROUTER_FILTER), "session",
              "cookie", "name")
    yield bad("cookie with a negative ttl (SA-02)",
              filters(session_filter(ttl="-1s"), ROUTER_FILTER), "session", "ttl")
    yield good("cookie with all its fields", filters(session_filter(ttl="60s", path="/"),
                                                     ROUTER_FILTER))


def named_cookie(name):
    return {"typed_config": {"@type": SESSION, "session_state": {
        "name": "s", "typed_config": {"@type": COOKIE_STATE, "cookie": {"name": name}}}}}


def without(listener, *keys):
    manager = listener["api_listener"]["api_listener"]
    for key in keys:
        del manager[key]
    return listener


def manager_rows():
    yield bad("xff_num_trusted_hops (FLT-10)", changed(xff_num_trusted_hops=1),
              "xff_num_trusted_hops")
    extension = {"name": "e", "typed_config": {"@type": ROUTER}}
    yield bad("original_ip_detection_extensions (FLT-10)",
              changed(original_ip_detection_extensions=[extension]),
              "original_ip_detection_extensions")
    yield bad("no routes", without(changed(), "rds"), "rds")
    yield bad("rds without a name", changed(rds={
        "config_source": resources.ADS, "route_config_name": ""}), "route_config_name",
        core="ACK: it does not check")
    yield bad("rds from a file", changed(rds={"route_config_name": ROUTES, "config_source": {
        "path_config_source": {"path": "/nowhere"}}}), "rds", "config_source")
    yield good("rds from self", changed(rds={"route_config_name": ROUTES, "config_source": {
        "self": {}}}))
    inline = {k: v for k, v in route_config("inline", virtual_host("all", ["*"], route("", ALPHA)))
              .items() if k != "@type"}
    yield good("inline routes", without(changed(route_config=inline), "rds"))
    inline = copy.deepcopy(inline)
    inline["virtual_hosts"][0]["routes"].append({"route": {"cluster": ALPHA}})
    yield bad("bad inline routes", without(changed(route_config=inline), "rds"), "route_config",
              "route 1", "match")
    yield bad("max_stream_duration below 0 (A28-V08)", changed(common_http_protocol_options={
        "max_stream_duration": "-1s"}), "max_stream_duration")
    yield good("max_stream_duration of 0 (A31-T02)", changed(common_http_protocol_options={
        "max_stream_duration": "0s"}))
    yield good("timeouts that are not read (A31-T06)", changed(
        request_timeout="1s", normalize_path=True))
    yield good("access logs that are not supported (OPS-42)", changed(access_log=[
        {"name": "none"}, {"name": "other", "typed_config": {"@type": ROUTER}}]))
    yield good("stream_idle_timeout (TH-98)", changed(stream_idle_timeout="300s"))
    yield bad("stream_idle_timeout below 0 (TH-98)", changed(stream_idle_timeout="-1s"),
              "stream_idle_timeout", core="ACK: it does not read it")
    other = good_listener()
    other["api_listener"]["api_listener"] = {"@type": ROUTER}
    yield bad("something else than an HttpConnectionManager", other, "api_listener",
              "HttpConnectionManager")
    other = good_listener()
    other["api_listener"] = {}
    yield bad("empty api_listener", other, "api_listener")


def listener_rows():
    yield from chain_rows()
    yield from fault_rows()
    yield from disabled_rows()
    yield from session_rows()
    yield from manager_rows()
