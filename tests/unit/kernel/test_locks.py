import asyncio

from amrita_plugin_memory.kernel.locks import KeyedLocks


async def test_callers_of_one_key_never_overlap_and_the_pool_forgets_the_key():
    locks, inside, most = KeyedLocks(), 0, 0

    async def enter():
        nonlocal inside, most
        async with locks.hold("k"):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(enter() for _ in range(20)))
    assert most == 1
    assert len(locks) == 0


async def test_another_key_is_not_kept_waiting():
    locks = KeyedLocks()
    async with locks.hold("a"), asyncio.timeout(1), locks.hold("b"):
        assert len(locks) == 2


async def test_a_cancelled_waiter_leaves_nothing_behind():
    locks = KeyedLocks()
    async with locks.hold("a"):
        waiter = asyncio.create_task(locks.hold("a").__aenter__())
        await asyncio.sleep(0)
        waiter.cancel()
        await asyncio.gather(waiter, return_exceptions=True)
    assert len(locks) == 0
