#: what: a TCP server and several clients on the loopback interface, in one event loop
#: stdout: ['0: HELLO', '1: HELLO', '2: HELLO'] over ipv4 and ipv6
import asyncio
import socket


async def serve(reader, writer):
    while line := await reader.readline():
        writer.write(line.upper())
        await writer.drain()
    writer.close()
    await writer.wait_closed()


async def client(host, port, number):
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(f"{number}: hello\n".encode())
    answer = await asyncio.wait_for(reader.readline(), 5)
    writer.close()
    await writer.wait_closed()
    return answer.decode().strip()


async def main():
    families = {"ipv4": ("127.0.0.1", socket.AF_INET), "ipv6": ("::1", socket.AF_INET6)}
    answers = {}
    for name, (host, family) in families.items():
        server = await asyncio.start_server(serve, host, 0, family=family)
        port = server.sockets[0].getsockname()[1]
        async with server:
            answers[name] = await asyncio.gather(*(client(host, port, n) for n in range(3)))
    assert answers["ipv4"] == answers["ipv6"]
    print(answers["ipv4"], "over", " and ".join(answers))


asyncio.run(main())
