import hashlib

from amrita_plugin_memory.embedding.ports import VectorSpace
from amrita_plugin_memory.retrieval import match, recorded, stamp

SPACE = VectorSpace("ollama-embed", "auto", "http://127.0.0.1:28434", resolved_model="bge-m3", dimension=64)


def test_the_fingerprint_is_the_one_of_the_specification():
    raw = b"ollama-embed|auto|http://127.0.0.1:28434"
    assert SPACE.legacy_fingerprint == hashlib.sha256(raw).hexdigest()
    assert SPACE.legacy_fingerprint.startswith("65b91b18cf18")  # as the published plugin was seen to write it


def test_what_was_stamped_reads_back():
    assert recorded(stamp(SPACE)) == SPACE
    assert recorded({}) is None


def test_a_collection_of_the_published_plugin_matches_the_same_settings():
    old = {"embed_fingerprint": SPACE.legacy_fingerprint, "key_schema_version": 2}
    assert match(old, SPACE) == "same"


def test_another_model_address_or_dimension_is_another_space():
    marks = stamp(SPACE)
    for other in (
        VectorSpace("ollama-embed", "nomic", SPACE.base_url, resolved_model="nomic", dimension=64),
        VectorSpace("openai", "auto", SPACE.base_url, resolved_model="bge-m3", dimension=64),
        VectorSpace("ollama-embed", "auto", SPACE.base_url, resolved_model="bge-m3", dimension=32),
        VectorSpace("ollama-embed", "auto", SPACE.base_url, resolved_model="nomic-embed", dimension=64),
    ):
        assert match(marks, other) == "different"
    assert match({}, SPACE) == "unmarked"
