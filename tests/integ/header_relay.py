# SPDX-License-Identifier: Apache-2.0
"""Takes connections that begin with a PROXY header, prints it in hexadecimal, a line for each connection, and relays
all bytes, the header's too, to another port. usage: header_relay.py IP PORT TARGET_PORT
"""

import asyncio
import contextlib
import sys

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


async def read_header(reader):
    begin = await reader.readexactly(5)
    if begin == b"PROXY":
        return begin + await reader.readuntil(b"\r\n")
    begin += await reader.readexactly(11)
    assert begin.startswith(SIGNATURE), begin
    return begin + await reader.readexactly(int.from_bytes(begin[14:], "big"))


async def relay(reader, writer):
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()


async def main(ip, port, target):
    async def serve(reader, writer):
        try:
            header = await read_header(reader)
        except asyncio.IncompleteReadError:  # somebody who looks whether we listen
            writer.close()
            return
        print(header.hex(), flush=True)
        behind = await asyncio.open_connection(ip, target)
        behind[1].write(header)
        await asyncio.gather(relay(reader, behind[1]), relay(behind[0], writer))
    server = await asyncio.start_server(serve, ip, port)
    print("listens", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
