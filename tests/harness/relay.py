"""A faulty relay in front of a real server."""

import asyncio
import random
import threading

from . import ports

GARBAGE = b"\x00\xffno reply of any server\r\n"


class Relay:
    """Relays between its own `address` and a server's. It works faithfully until a fault is set."""

    def __init__(self, server, host="127.0.0.1"):
        self._server = server
        self._random = random.Random(1)
        self._writers = set()
        self._delay, self._garbage, self._swallow, self._rate = 0.0, False, False, None
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._host, self._port = host, ports.free(host)
        self._do(self._listen())
        self.address = f"{host}:{self._port}"

    def _do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _listen(self):
        self._listener = await asyncio.start_server(self._serve, self._host, self._port)

    def slow(self, most):
        """Delays each answer by up to this many seconds."""
        self._delay = most

    def rate(self, most):
        """Passes on this many bytes of requests in a second, and receives no more than that."""
        self._rate = most

    def garbage(self):
        """Passes requests on, and replaces the answers by nonsense."""
        self._garbage = True

    def swallow(self):
        """Receives requests and passes none of them on."""
        self._swallow = True

    def refuse(self):
        """Refuses connections, and breaks the existing ones. The server behind the relay lives on."""
        self._do(self._refuse())

    async def _refuse(self):
        self._listener.close()
        for writer in self._writers:
            writer.transport.abort()

    def heal(self):
        """Removes every fault."""
        self._delay, self._garbage, self._swallow, self._rate = 0.0, False, False, None
        if not self._listener.is_serving():
            self._do(self._listen())

    def lead_to(self, server):
        """Leads connections that are made from now on to another server."""
        self._server = server

    def stop(self):
        self._do(self._refuse())
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _end(self):
        """Ends the tasks under way."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader, writer):
        try:
            host, port = self._server.rsplit(":", 1)
            server_reader, server_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.transport.abort()
            return
        both = {writer, server_writer}
        self._writers |= both
        requests = asyncio.ensure_future(self._pump(reader, server_writer, self._take))
        replies = asyncio.ensure_future(self._pump(server_reader, writer, self._mistreat))
        await asyncio.wait([requests, replies], return_when=asyncio.FIRST_COMPLETED)
        for end in both:
            end.transport.abort()
        self._writers -= both
        await asyncio.gather(requests, replies)

    async def _pump(self, reader, writer, change):
        try:
            while data := await reader.read(65536):
                writer.write(await change(data))
                await writer.drain()
        except OSError:
            pass

    async def _take(self, data):
        if self._rate:
            await asyncio.sleep(len(data) / self._rate)
        return b"" if self._swallow else data

    async def _mistreat(self, data):
        if self._delay:
            await asyncio.sleep(self._random.uniform(0, self._delay))
        return GARBAGE if self._garbage else data
