#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gRPC calls against grpc_server.py's methods, one scenario per run.

usage: grpc_calls.py TARGET SCENARIO [JSON arguments]

A scenario asserts what it expects and prints one JSON line of what it saw; any surprise is a
traceback and a non-zero exit. Runs in the namespace of the client, hence a program of its own.
"""

import json
import os
import random
import sys
import threading
import time
import zlib

import grpc
import grpc.experimental

ECHO = "/shunt.test.Echo/"
MIB = 1 << 20
LARGE = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))
NO_RETRIES = (("grpc.enable_retries", 0),)
CALL_TIMEOUT_S = 20


def connect(target, *options):
    options = [*dict([*LARGE, *NO_RETRIES, *options]).items()]  # the last of a name counts
    if target.startswith("xds:"):  # with TLS where the cluster has it
        fallback = grpc.experimental.insecure_channel_credentials()
        return grpc.secure_channel(target, grpc.xds_channel_credentials(fallback), options=options)
    return grpc.insecure_channel(target, options=options)


def metadata_of(pairs):
    return sorted((key, value) for key, value in pairs or ())


def sized(chunks, size, pause_s=0):
    return json.dumps({"chunks": chunks, "bytes": size, "pause_s": pause_s}).encode()


def backend_of(call):
    return dict(call.initial_metadata())["x-backend"]


def unary(channel, count=100):
    call = channel.unary_unary(ECHO + "Unary")
    for number in range(count):
        payload = random.randbytes(number * 7)
        assert call(payload, timeout=CALL_TIMEOUT_S) == payload
    return {"calls": count}


def server_streaming(channel, chunks=500):
    messages = channel.unary_stream(ECHO + "Expand")(sized(chunks, 1000), timeout=CALL_TIMEOUT_S)
    sizes = [len(message) for message in messages]
    assert sizes == [1000] * chunks
    return {"messages": len(sizes)}


def client_streaming(channel, chunks=500):
    parts = [random.randbytes(random.randrange(2000)) for _ in range(chunks)]
    answer = channel.stream_unary(ECHO + "Digest")(iter(parts), timeout=CALL_TIMEOUT_S)
    whole = b"".join(parts)
    assert json.loads(answer) == {"count": chunks, "bytes": len(whole), "crc": zlib.crc32(whole)}
    return {"messages": chunks}


def bidi(channel, rounds=200):
    """Ping-pong: each message waits for the echo of the one before."""
    turn = threading.Semaphore(1)
    sent = []

    def speak():
        for _ in range(rounds):
            turn.acquire()
            sent.append(random.randbytes(300))
            yield sent[-1]
    heard = []
    for message in channel.stream_stream(ECHO + "Chat")(speak(), timeout=CALL_TIMEOUT_S):
        heard.append(message)
        turn.release()
    assert heard == sent and len(heard) == rounds
    return {"rounds": rounds}


def deadline(channel, timeout_s=0.5):
    started = time.monotonic()
    try:
        channel.unary_unary(ECHO + "Hang")(b"", timeout=timeout_s)
        raise AssertionError("a call that never ends has ended")
    except grpc.RpcError as error:
        took = time.monotonic() - started
        assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error
        assert timeout_s * 0.9 < took < timeout_s + CALL_TIMEOUT_S, took  # by then the server has not answered
    return {"seconds": took}


def wait_seen(channel, what, number):
    """Until the server has seen so many."""
    end = time.monotonic() + CALL_TIMEOUT_S
    while (seen := seen_by_server(channel))[what] < number:
        assert time.monotonic() < end, f"{number} {what} wanted: {seen}"
        time.sleep(0.02)


def seen_by_server(channel):
    return json.loads(channel.unary_unary(ECHO + "Seen")(b"", timeout=CALL_TIMEOUT_S))


def cancellation(channel, calls=10):
    """The server learns of every cancelled call."""
    before = seen_by_server(channel)
    hanging = [channel.unary_unary(ECHO + "Hang").future(b"") for _ in range(calls)]
    wait_seen(channel, "hanging", before["hanging"] + calls)
    for call in hanging:
        call.cancel()
    wait_seen(channel, "cancelled", before["cancelled"] + calls)
    return {"cancelled": calls}


def big_message(channel, mib=10):
    payload = random.randbytes(mib * MIB)
    assert channel.unary_unary(ECHO + "Unary")(payload, timeout=CALL_TIMEOUT_S + mib) == payload
    return {"bytes": len(payload)}


def metadata(channel):
    """ASCII and binary metadata, repeated keys, trailers: all come back as sent."""
    sent = [("x-echo-text", "a b;c=d, e"), ("x-echo-bin", bytes(range(256))),
            ("x-echo-many", "1"), ("x-echo-many", "2"), ("x-echo-empty-bin", b""),
            ("x-echo-long", "v" * 4000)]
    _, call = channel.unary_unary(ECHO + "Unary").with_call(b"x", metadata=sent,
                                                            timeout=CALL_TIMEOUT_S)
    got = metadata_of(pair for pair in call.trailing_metadata() if pair[0].startswith("x-echo"))
    assert got == sorted(sent), got
    seen = json.loads(channel.unary_unary(ECHO + "Headers")(b"", metadata=sent,
                                                            timeout=CALL_TIMEOUT_S))
    expected = sorted([k, v.hex() if isinstance(v, bytes) else v] for k, v in sent)
    assert sorted(pair for pair in seen if pair[0].startswith("x-echo")) == expected, seen
    return {"pairs": len(sent)}


def blanks(channel):
    """Those at the ends of values are stripped on the way to the backend and back."""
    sent = [("x-echo-first", "  a b"), ("x-echo-last", "c "), ("x-echo-only", " "),
            ("x-echo-pad", "d")]
    _, call = channel.unary_unary(ECHO + "Unary").with_call(b"x", metadata=sent,
                                                            timeout=CALL_TIMEOUT_S)
    got = metadata_of(pair for pair in call.trailing_metadata() if pair[0].startswith("x-echo"))
    assert got == sorted((key, value.strip()) for key, value in sent), got
    seen = json.loads(channel.unary_unary(ECHO + "Headers")(b"", metadata=sent,
                                                            timeout=CALL_TIMEOUT_S))
    assert ["x-echo-first", "a b"] in seen and ["x-echo-only", ""] in seen, seen
    return {"pairs": len(sent)}


def large_headers(channel, sizes=(62_000, 90_000, 200_000)):
    """An answer whose header or trailers are too large fails alone: others on the connection of its
    backend go on."""
    beside = channel.unary_stream(ECHO + "Expand")(sized(40, 100, 0.1), timeout=CALL_TIMEOUT_S)
    next(beside)
    for size in sizes:
        for initial, trailing in ((size, 1), (1, size)):
            wish = json.dumps({"initial": initial, "trailing": trailing}).encode()
            try:
                channel.unary_unary(ECHO + "Large")(wish, timeout=CALL_TIMEOUT_S)
                raise AssertionError(f"{wish} came back as OK")
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, error
                assert "too large" in error.details(), error
            unary(channel, count=3)
    return {"messages": 1 + sum(1 for _ in beside)}


def broken(channel):
    """How a stream ends whose backend dies after a message; it is for the caller to see to that."""
    messages = channel.unary_stream(ECHO + "Expand")(sized(2, 1000, 30), timeout=60)
    next(messages)
    print("one message", flush=True)
    try:
        next(messages)
    except grpc.RpcError as error:
        return {"code": error.code().name, "details": error.details()}
    raise AssertionError("another message")


def statuses(channel):
    """Every status code and its message pass unchanged, as do trailers beside it."""
    details = "50 % of 'ünïcode'\n and a newline"
    for code in list(grpc.StatusCode)[1:]:
        wish = json.dumps({"code": code.value[0], "details": details}).encode()
        try:
            channel.unary_unary(ECHO + "Fail")(wish, metadata=[("x-echo-id", str(code))],
                                               timeout=CALL_TIMEOUT_S)
            raise AssertionError(f"{code} came back as OK")
        except grpc.RpcError as error:
            assert (error.code(), error.details()) == (code, details), error
            assert ("x-echo-id", str(code)) in metadata_of(error.trailing_metadata()), error
    return {"codes": len(grpc.StatusCode) - 1}


def upload(channel, mib=1024):
    """One stream of mib MiB up; the server's CRC equals ours."""
    chunk = random.randbytes(MIB)
    crc = 0

    def parts():
        nonlocal crc
        for _ in range(mib):
            crc = zlib.crc32(chunk, crc)
            yield chunk
    started = time.monotonic()
    answer = json.loads(channel.stream_unary(ECHO + "Digest")(parts(), timeout=240))
    assert answer == {"count": mib, "bytes": mib * MIB, "crc": crc}, answer
    return {"mib_per_s": mib / (time.monotonic() - started)}


def download(channel, mib=1024):
    """One stream of mib MiB down; its CRC is that of the known pattern."""
    started = time.monotonic()
    crc = expected = 0
    pattern = bytes(range(256)) * 4096
    for message in channel.unary_stream(ECHO + "Expand")(sized(mib, MIB), timeout=240):
        crc = zlib.crc32(message, crc)
        expected = zlib.crc32(pattern, expected)
    assert crc == expected and crc != 0
    return {"mib_per_s": mib / (time.monotonic() - started)}


def many(channel, count=20000, parallel=64):
    """count calls with random payloads, `parallel` at a time; every echo is compared."""
    call = channel.unary_unary(ECHO + "Unary")
    room = threading.Semaphore(parallel)
    wrong = []

    def finish(future, payload):
        if future.code() != grpc.StatusCode.OK:
            wrong.append(str(future.code()) + " " + str(future.details()))
        elif future.result() != payload:
            wrong.append("an altered answer")
        room.release()
    for _ in range(count):
        room.acquire()
        payload = random.randbytes(random.randrange(1, 600))
        future = call.future(payload, timeout=60)
        future.add_done_callback(lambda f, p=payload: finish(f, p))
    for _ in range(parallel):
        room.acquire()
    assert not wrong, f"{len(wrong)} of {count}: {wrong[:3]}"
    return {"calls": count}


def held_streams(channel, streams=8, seconds=4.0):
    """Holds open server streams; says "ready" when all are, and tells for each its backend, how many messages came, its
    end and when (CLOCK_MONOTONIC, the same in every namespace)."""
    reports, begun = [], threading.Barrier(streams + 1)
    chunks = int(seconds / 0.02)

    def hold():
        call = channel.unary_stream(ECHO + "Expand")(sized(chunks, 100, 0.02), timeout=60)
        report = {"backend": backend_of(call), "messages": 0, "code": 0}
        begun.wait(CALL_TIMEOUT_S)
        try:
            for _ in call:
                report["messages"] += 1
        except grpc.RpcError as error:
            report["code"] = error.code().value[0]
        report["end"] = time.monotonic()
        report["complete"] = report["messages"] == chunks
        reports.append(report)
    threads = [threading.Thread(target=hold) for _ in range(streams)]
    for thread in threads:
        thread.start()
    begun.wait(CALL_TIMEOUT_S)
    print("ready", flush=True)
    for thread in threads:
        thread.join()
    return reports


def held_chats(channel, stop_file, streams=4, least=0):
    """Ping-pong on open streams until stop_file exists and each has had so many messages; each message comes back, and
    each stream ends well. Says "ready" when all have had one."""
    totals, begun = [], threading.Barrier(streams + 1)

    def hold():
        sent, heard = [], []

        def speak():
            while len(sent) < least or not os.path.exists(stop_file):
                sent.append(random.randbytes(300))
                yield sent[-1]
                time.sleep(0.02)
        for message in channel.stream_stream(ECHO + "Chat")(speak()):
            heard.append(message)
            if len(heard) == 1:
                begun.wait(CALL_TIMEOUT_S)
        assert heard == sent
        totals.append(len(heard))
    threads = [threading.Thread(target=hold) for _ in range(streams)]
    for thread in threads:
        thread.start()
    begun.wait(CALL_TIMEOUT_S)
    print("ready", flush=True)
    for thread in threads:
        thread.join()
    assert len(totals) == streams, "a stream failed"
    return {"rounds": totals}


def steady(channel, stop_file, path=ECHO + "Unary", parallel=4, least=0, pause_s=0):
    """Calls, so far apart in each thread, until stop_file exists and each thread has made so many; every one must
    succeed. Says "ready" when the first one has."""
    totals, longest_s, begun = [], [], threading.Event()

    def run():
        call = channel.unary_unary(path)
        done, longest = 0, 0
        while done < least or not os.path.exists(stop_file):
            began = time.monotonic()
            call(b"steady", timeout=CALL_TIMEOUT_S)
            begun.set()
            longest = max(longest, time.monotonic() - began)
            done += 1
            time.sleep(pause_s)
        totals.append(done)
        longest_s.append(longest)
    threads = [threading.Thread(target=run) for _ in range(parallel)]
    for thread in threads:
        thread.start()
    if begun.wait(CALL_TIMEOUT_S):
        print("ready", flush=True)
    for thread in threads:
        thread.join()
    assert len(totals) == parallel, "a call failed"
    return {"calls": sum(totals), "longest_ms": round(1000 * max(longest_s))}


SCENARIOS = (unary, server_streaming, client_streaming, bidi, deadline, cancellation, big_message,
             metadata, blanks, large_headers, broken, statuses, upload, download, many, held_streams, held_chats,
             steady)


def main():
    target, name, *rest = sys.argv[1:]
    arguments = json.loads(rest[0]) if rest else {}
    scenario = {s.__name__: s for s in SCENARIOS}[name]
    with connect(target, *map(tuple, arguments.pop("options", ()))) as channel:
        print(json.dumps(scenario(channel, **arguments)), flush=True)


if __name__ == "__main__":
    main()
