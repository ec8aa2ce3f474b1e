import pytest

from amrita_plugin_memory.amos import AMOS


@pytest.fixture
async def open_amos(tmp_path):
    """Open roots below the test's folder and close them all afterwards."""
    opened = []

    async def open_one(folder="root", **settings):
        given = {"root_dir": tmp_path / folder, "actor": "u1", "session_id": "s1", "fsync": False, **settings}
        opened.append(await AMOS.create(**given))
        return opened[-1]

    yield open_one
    for amos in opened:
        await amos.close()


@pytest.fixture
async def amos(open_amos):
    return await open_amos()
