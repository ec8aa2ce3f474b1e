"""One real host for all tests of this folder. They run in one worker (``xdist_group``) on one event loop."""

import pytest
import pytest_asyncio
from support.host import respond
from support.subconscious import enable

from amrita_plugin_memory.demo.stage import Stage


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/host" in item.path.as_posix():
            item.add_marker(pytest.mark.host)
            item.add_marker(pytest.mark.xdist_group("host"))
            item.add_marker(pytest.mark.timeout(900))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def bot(tmp_path_factory):
    """The running bot with our plugin, the directed script and the simulated client."""
    async with Stage(tmp_path_factory.mktemp("host") / "bot", respond=respond, prepare=enable) as stage:
        yield stage
