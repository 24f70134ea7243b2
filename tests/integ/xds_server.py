# SPDX-License-Identifier: Apache-2.0
"""shunt-xds on loopback, without shuntd and without namespaces: the server's process and folder,
backends that answer with their name, and clients that speak ADS themselves."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import threading
import time

import grpc
from envoy.config.core.v3 import base_pb2
from envoy.service.discovery.v3 import discovery_pb2
from google.rpc import status_pb2

import resources

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SHUNT_BUILD", ROOT / "build"))
SHUNT_XDS = BUILD / "tools" / "shunt-xds" / "shunt-xds"
BOOTSTRAP_ARG = "grpc.TEST_ONLY_DO_NOT_USE_IN_PROD.xds_bootstrap_config"
SERVICE = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
WAIT_S = 30  # for a process that starts, or a call
QUIET_S = 0.5  # longer than a change of the folder waits


class Backend(grpc.GenericRpcHandler):
    """Answers every method with its name."""

    def __init__(self, name):
        self.name = name
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2), handlers=[self])
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def service(self, handler_call_details):
        return grpc.unary_unary_rpc_method_handler(lambda *_: self.name.encode())

    def resources(self):
        cluster = resources.cluster(self.name)
        return cluster, resources.endpoints(self.name, ("127.0.0.1", self.port))


class Server:
    """A running shunt-xds. It keeps its address when it is started again."""

    def __init__(self, log):
        self.log = log
        self.address = "127.0.0.1:0"  # until the server says which port it has taken
        self.process = None
        self.start()

    def start(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.command(), stderr=log)
        try:
            port = self.wait_match(r'msg="serving" .* port=(\d+)\n')[1]
        except BaseException:
            self.kill()
            raise
        self.address = f"127.0.0.1:{port}"

    def kill(self):
        self.process.kill()
        self.process.wait(WAIT_S)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(WAIT_S) == 0

    def wait_log(self, text):
        self.wait_match(re.escape(text))

    def wait_match(self, pattern):
        """Until the log has it: the match."""
        deadline = time.monotonic() + WAIT_S
        while True:
            ended = self.process.poll() is not None
            text = self.log.read_text()
            if found := re.search(pattern, text):
                return found
            assert not ended, f"the server has ended: {text}"
            assert time.monotonic() < deadline, text
            time.sleep(0.01)

    def bootstrap(self, node="test"):
        server = {"server_uri": self.address, "channel_creds": [{"type": "insecure"}],
                  "server_features": ["xds_v3"]}
        return {"xds_servers": [server], "node": {"id": node}}

    def channel(self):
        return grpc.insecure_channel("xds:///web", [(BOOTSTRAP_ARG, json.dumps(self.bootstrap()))])


class Serve(Server):
    """It serves a folder."""

    def __init__(self, path, *initial, has_descriptors=True, words=()):
        self.folder = resources.Folder(path / "xds")
        self.folder.set(*initial)
        none = path / "none.pb"  # a set without files
        none.touch()
        self.options = [*([] if has_descriptors else ["--descriptors", none]), *words]
        super().__init__(path / "log")

    def command(self):
        return [SHUNT_XDS, "serve", self.folder.path, "--listen", self.address, *self.options]

    def change(self, *resources_):
        """The folder holds exactly these from now on. The server sleeps meanwhile: files are
        written one by one, and it must not see some without the others."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            state = os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            assert state.si_code == os.CLD_STOPPED, self.log.read_text()
            self.folder.set(*resources_)
        finally:
            self.process.send_signal(signal.SIGCONT)


class Proxy(Server):
    """It stands before another one."""

    def __init__(self, path, upstream, protocol="sotw", grace_s=60, max_request_mib=4, words=()):
        self.options = ["--protocol", protocol, "--grace", str(grace_s),
                        "--max-request", str(max_request_mib), "--verbose", *words]
        self.file = path / "upstream.json"
        self.file.write_text(json.dumps(upstream.bootstrap("proxy")))
        super().__init__(path / "proxy.log")

    def command(self):
        return [SHUNT_XDS, "proxy", "--upstream", self.file, "--listen", self.address,
                *self.options]


class Stream:
    """One ADS call. take() gives the next response and accepts it. credentials: of the channel; None = in the
    clear."""

    def __init__(self, address, method, request, response, node=None, credentials=None):
        options = [("grpc.use_local_subchannel_pool", 1)]
        self.channel = (grpc.secure_channel(address, credentials, options) if credentials
                        else grpc.insecure_channel(address, options))
        self.node = node or base_pb2.Node(id="test")
        self.requests = queue.Queue()
        self.responses = queue.Queue()
        call = self.channel.stream_stream(
            SERVICE + method, request_serializer=request.SerializeToString,
            response_deserializer=response.FromString)
        self.request = request
        self.call = call(iter(self.requests.get, None))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with contextlib.suppress(grpc.RpcError):
            for response in self.call:
                self.responses.put(response)
        self.responses.put(None)

    def send(self, type_url, **fields):
        self.requests.put(self.request(type_url=type_url, node=self.node, **fields))

    def next(self):
        """The next response, unanswered; None = the call has ended."""
        return self.responses.get(timeout=WAIT_S)

    def assert_quiet(self):
        with contextlib.suppress(queue.Empty):
            response = self.responses.get(timeout=QUIET_S)
            raise AssertionError("the call has ended" if response is None
                                 else f"no response was due: {response}")

    def close(self):
        self.requests.put(None)
        self.call.cancel()
        self.channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def locators(names, params):
    return [discovery_pb2.ResourceLocator(name=n, dynamic_parameters=params) for n in names]


class Sotw(Stream):
    def __init__(self, address, params=None, credentials=None):
        super().__init__(address, "StreamAggregatedResources", discovery_pb2.DiscoveryRequest,
                         discovery_pb2.DiscoveryResponse, credentials=credentials)
        self.params = params
        self.lists = {}

    def subscribe(self, type_url, *names):
        self.lists[type_url] = ({"resource_locators": locators(names, self.params)}
                                if self.params else {"resource_names": names})
        self.send(type_url, **self.lists[type_url])

    def take(self):
        response = self.next()
        self.send(response.type_url, version_info=response.version_info,
                  response_nonce=response.nonce, **self.lists[response.type_url])
        return response

    def refuse(self, response, text):
        self.send(response.type_url, response_nonce=response.nonce,
                  error_detail=status_pb2.Status(code=3, message=text),
                  **self.lists[response.type_url])

    @staticmethod
    def wrapped(response):
        """The entries of the response, of which each is in a Resource."""
        found = []
        for entry in response.resources:
            found.append(discovery_pb2.Resource())
            assert entry.Unpack(found[-1])
        return found


class Delta(Stream):
    """What it holds outlives the stream, as a client's cache would."""

    def __init__(self, address, params=None, held=None):
        super().__init__(address, "DeltaAggregatedResources", discovery_pb2.DeltaDiscoveryRequest,
                         discovery_pb2.DeltaDiscoveryResponse)
        self.params = params
        self.held = {} if held is None else held  # (type, name, constraints): version

    def subscribe(self, type_url, *names):
        lists = ({"resource_locators_subscribe": locators(names, self.params)}
                 if self.params else {"resource_names_subscribe": names})
        versions = {name: version for (url, name, _), version in self.held.items()
                    if url == type_url}
        self.send(type_url, initial_resource_versions=versions, **lists)

    def take(self):
        response = self.next()
        url = response.type_url
        for name in response.removed_resources:
            self.held.pop((url, name, b""), None)
        for name in response.removed_resource_names:
            constraints = name.dynamic_parameter_constraints
            del self.held[url, name.name, constraints.SerializeToString()]
        for entry in response.resources:
            constraints = entry.resource_name.dynamic_parameter_constraints
            name = entry.resource_name.name or entry.name
            self.held[url, name, constraints.SerializeToString()] = entry.version
        self.send(url, response_nonce=response.nonce)
        return response

    def refuse(self, response, text):
        self.send(response.type_url, response_nonce=response.nonce,
                  error_detail=status_pb2.Status(code=3, message=text))


def world(backends, weights):
    """All resources of a frontend that spreads calls by these weights."""
    clusters = [{"name": name, "weight": weight} for name, weight in weights.items()]
    action = {"weighted_clusters": {"clusters": clusters, "total_weight": sum(weights.values())}}
    route = {"match": {"prefix": "/"}, "route": action}
    found = [resources.listener("web", "r"),
             resources.route_config("r", resources.virtual_host("all", ["*"], route))]
    for name in weights:
        found += backends[name].resources()
    return found
