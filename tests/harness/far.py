"""A long way between two nodes."""

import asyncio

from .relay import Relay


class Far(Relay):
    """Relays what a node is sent, and its answers. While it is far, bytes take `seconds` in each direction,
    however many are under way."""

    def __init__(self, server):
        self.seconds = 0.0
        super().__init__(server)

    async def _pump(self, reader, writer, change):
        loop = asyncio.get_running_loop()
        under_way = asyncio.Queue()

        async def arrive():
            while True:
                due, data = await under_way.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                if not data:
                    return
                writer.write(data)
                await writer.drain()

        arriving = asyncio.ensure_future(arrive())
        try:
            data = True
            while data and not arriving.done():
                data = await reader.read(65536)
                under_way.put_nowait((loop.time() + self.seconds, data))
            await arriving
        except OSError:
            arriving.cancel()
