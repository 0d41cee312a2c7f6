"""Both clients of sdk/python under one interface: each test that uses `twin` runs for Client and for AsyncClient."""

import asyncio

import caisson


class Sync:
    name = 'sync'

    def __init__(self, *args, **options):
        self.client = caisson.Client(*args, **options)

    def call(self, name, *args, **fields):
        """The value of a method, such as run or files.read."""
        return method(self.client, name)(*args, **fields)

    def list(self, name, *args, **fields):
        return list(method(self.client, name)(*args, **fields))

    def stream(self, *args, **fields):
        """All events, and the result."""
        with self.client.stream(*args, **fields) as stream:
            events = list(stream)
            return events, stream.result()

    def sandbox(self, use, **fields):
        """use() gets a sandbox whose methods are called by do()."""
        with self.client.sandbox(**fields) as sandbox:
            return use(lambda name, *args, **more: method(sandbox, name)(*args, **more))


class Async:
    name = 'async'

    def __init__(self, *args, **options):
        self.client = caisson.AsyncClient(*args, **options)

    def call(self, name, *args, **fields):
        async def call():
            return await method(self.client, name)(*args, **fields)
        return asyncio.run(call(), debug=True)

    def list(self, name, *args, **fields):
        async def call():
            return [one async for one in method(self.client, name)(*args, **fields)]
        return asyncio.run(call(), debug=True)

    def stream(self, *args, **fields):
        async def call():
            async with self.client.stream(*args, **fields) as stream:
                events = [event async for event in stream]
                return events, await stream.result()
        return asyncio.run(call(), debug=True)

    def sandbox(self, use, **fields):
        """Each call of do() has an event loop of its own: a client belongs to none."""
        sandbox = asyncio.run(made(self.client.sandbox(**fields)), debug=True)
        try:
            return use(lambda name, *args, **more: asyncio.run(made(method(sandbox, name)(*args, **more)), debug=True))
        finally:
            asyncio.run(sandbox.kill(), debug=True)


async def made(value):
    return await value


def method(owner, name):
    for part in name.split('.'):
        owner = getattr(owner, part)
    return owner
