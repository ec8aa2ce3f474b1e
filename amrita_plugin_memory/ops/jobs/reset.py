"""The escape hatch: say that the vectors are this model's, without embedding them again."""

from __future__ import annotations

from amrita_plugin_memory.kernel.errors import SpaceMismatch
from amrita_plugin_memory.retrieval import SpaceGuard
from amrita_plugin_memory.retrieval.fingerprint import REBUILDING

from .place import Place


async def reset(place: Place, name: str) -> bool:
    """Mark a collection with the model at hand; False when there is no such collection.

    Raises:
        SpaceMismatch: the stored vectors have another dimension, so that they cannot be this model's.
        EmbeddingUnavailable: the model does not answer.

    """
    collection = await place.store.open(name, create=False)
    if collection is None:
        return False
    size = (await place.embedder.space()).dimension
    async for page in collection.pages(size=1, vectors=True):
        vector = page[0].vector
        if vector is not None and size and vector.size != size:
            raise SpaceMismatch(
                f"已存向量是 {vector.size} 维，现在的模型是 {size} 维，不可能是同一个模型，请运行 ambot memory reindex"
            )
        break
    await SpaceGuard(place.embedder).mark(collection)
    await collection.annotate({REBUILDING: None})
    return True
