import subprocess
import sys

import pytest

import amrita_plugin_memory.vectordb as vectordb
from amrita_plugin_memory.kernel.lazy import lazily

ROOMS = ("vectordb", "embedding", "retrieval")


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_a_room_offers_can_be_had(room):
    package = __import__(f"amrita_plugin_memory.{room}", fromlist=["__all__"])
    assert all(getattr(package, name) is not None for name in package.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing"):
        _ = vectordb.nothing
    with pytest.raises(AttributeError):
        lazily("amrita_plugin_memory.kernel", {})("text")


def test_a_glance_at_the_rooms_brings_neither_numpy_nor_chroma():
    code = (
        "import sys\n"
        "import amrita_plugin_memory.vectordb.peek, amrita_plugin_memory.embedding.choose\n"
        "import amrita_plugin_memory.retrieval.fingerprint\n"
        "sys.exit(bool({'numpy', 'chromadb', 'filelock', 'httpx'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
