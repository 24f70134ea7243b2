# SPDX-License-Identifier: Apache-2.0
"""An xDS server that knows none of its nodes: refusing_xds.py ADDRESS. Each stream ends with PERMISSION_DENIED."""

import concurrent.futures
import sys

import grpc

import ads_agent


class Refuser(grpc.GenericRpcHandler):
    def service(self, handler_call_details):
        if handler_call_details.method != ads_agent.METHOD:
            return None
        return grpc.stream_stream_rpc_method_handler(self.refuse)

    @staticmethod
    def refuse(requests, context):
        next(requests)
        context.abort(grpc.StatusCode.PERMISSION_DENIED, "no such node here")
        yield b""


def main(address):
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), handlers=[Refuser()])
    assert server.add_insecure_port(address)
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main(*sys.argv[1:])
