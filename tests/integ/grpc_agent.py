#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An agent (agent.py) that makes gRPC calls and tells how each ended.

usage: grpc_agent.py SOCKET

Asked for {target, calls, parallel, channels, xds_credentials}; a call is {authority, path, metadata,
body, timeout, stream}. A target with {} is filled with the authority, else the authority is set on the
channel. With xds_credentials there is TLS where the cluster has it. Channels are kept; calls go over so
many of them in turn, each with a connection of its own. The answer to a call with `stream` tells how
many messages came.
"""

import itertools
import sys
import threading
import time

import grpc
import grpc.experimental

import agent

CHANNELS = {}
TURNS = itertools.count()
DEFAULT_TIMEOUT_S = 25


def channel_of(target, authority, number, xds_credentials):
    key = (target, authority, number, xds_credentials)
    if key not in CHANNELS:
        options = [] if "{}" in target else [("grpc.default_authority", authority)]
        if number:
            options.append(("grpc.use_local_subchannel_pool", 1))
        target = target.format(authority)
        if xds_credentials:
            fallback = grpc.experimental.insecure_channel_credentials()
            CHANNELS[key] = grpc.secure_channel(target, grpc.xds_channel_credentials(fallback), options=options)
        else:
            CHANNELS[key] = grpc.insecure_channel(target, options=options)
    return CHANNELS[key]


def pairs_of(metadata):
    return [(k, bytes.fromhex(v) if k.endswith("-bin") else v) for k, v in metadata]


def texts(pairs):
    """Metadata without what the transport adds, in a form that JSON knows."""
    return sorted([k, v.hex() if isinstance(v, bytes) else v] for k, v in pairs or ())


def outcome(done, started):
    told = dict(texts(done.initial_metadata())), texts(done.trailing_metadata())
    backend = told[0].get("x-backend") or dict(told[1]).get("x-backend")
    return {"code": done.code().name, "backend": backend, "details": (done.details() or "")[:300],
            "initial": texts(done.initial_metadata()), "trailing": told[1],
            "seconds": time.monotonic() - started}


def stream_one(method, call, timeout):
    """The outcome of a call whose answer is a stream."""
    started, count = time.monotonic(), 0
    done = method(call.get("body", "").encode(), metadata=pairs_of(call["metadata"]),
                  timeout=timeout)
    try:
        for _ in done:
            count += 1
    except grpc.RpcError:
        pass
    return {**outcome(done, started), "messages": count}


def run(request):
    calls = request["calls"]
    room = threading.Semaphore(request.get("parallel", 16))
    finished = threading.Semaphore(0)
    answers = [None] * len(calls)

    def end(done, number, started):
        answers[number] = outcome(done, started)
        room.release()
        finished.release()
    for number, call in enumerate(calls):
        channel = channel_of(request["target"], call["authority"],
                             next(TURNS) % request.get("channels", 1),
                             request.get("xds_credentials", False))
        timeout = call.get("timeout", DEFAULT_TIMEOUT_S) or None
        if call.get("stream"):
            answers[number] = stream_one(channel.unary_stream(call["path"]), call, timeout)
            finished.release()
            continue
        room.acquire()
        started = time.monotonic()
        future = channel.unary_unary(call["path"]).future(
            call.get("body", "").encode(), metadata=pairs_of(call["metadata"]), timeout=timeout)
        future.add_done_callback(lambda done, n=number, s=started: end(done, n, s))
    for _ in calls:
        finished.acquire()
    return answers


if __name__ == "__main__":
    agent.serve(sys.argv[1], run)
