# SPDX-License-Identifier: Apache-2.0
"""A gRPC server (C-core) that an xDS server of its own, in this process, tells whom to let in.

    rbac_server.py FOLDER PORT

FOLDER/server.json has its listener, whose name LISTENER names. A method that is let in waits for its message."""

import json
import os
import pathlib
import sys
from concurrent import futures

import grpc

import ads_agent

ADS = "127.0.0.1:18500"
LISTENER = "grpc/server?listener={}"
STREAMS = 200


class Anything(grpc.GenericRpcHandler):
    def service(self, handler_call_details):
        return grpc.unary_unary_rpc_method_handler(lambda _request, _context: b"")


def main():
    folder, port = pathlib.Path(sys.argv[1]), sys.argv[2]
    ads = ads_agent.Server()
    told = grpc.server(futures.ThreadPoolExecutor(STREAMS))
    told.add_generic_rpc_handlers((ads_agent.Handler(ads),))
    told.add_insecure_port(ADS)
    told.start()
    ads.publish({"put": [json.loads((folder / "server.json").read_text())]})
    bootstrap = folder / "server-bootstrap.json"
    bootstrap.write_text(json.dumps({
        "xds_servers": [{"server_uri": ADS, "channel_creds": [{"type": "insecure"}],
                         "server_features": ["xds_v3"]}],
        "node": {"id": "rbac"}, "server_listener_resource_name_template": LISTENER.format("%s")}))
    os.environ["GRPC_XDS_BOOTSTRAP"] = str(bootstrap)
    server = grpc.server(futures.ThreadPoolExecutor(8), xds=True)
    server.add_generic_rpc_handlers((Anything(),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
