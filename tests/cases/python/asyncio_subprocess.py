#: what: asynchronous child processes, a time-out, cancellation and a task group
#: stdout: 3 lines, cancelled, timed out, [1, 4, 9]
import asyncio
import sys


async def lines_of_child():
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "for n in range(3): print('line', n, flush=True)", stdout=asyncio.subprocess.PIPE)
    lines = [line async for line in child.stdout]
    assert await child.wait() == 0
    return len(lines)


async def cancel_one():
    task = asyncio.create_task(asyncio.sleep(60))
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return "cancelled"
    return "not cancelled"


async def late():
    try:
        async with asyncio.timeout(0.05):
            await asyncio.sleep(60)
    except TimeoutError:
        return "timed out"
    return "in time"


async def square(number):
    # In a thread, as blocking libraries are called from asynchronous code.
    return await asyncio.to_thread(pow, number, 2)


async def main():
    async with asyncio.TaskGroup() as group:
        squares = [group.create_task(square(n)) for n in (1, 2, 3)]
    count = await lines_of_child()
    print(f"{count} lines, {await cancel_one()}, {await late()}, {[task.result() for task in squares]}")


asyncio.run(main())
