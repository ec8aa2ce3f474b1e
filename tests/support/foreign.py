"""Another program that uses a Chroma directory or server with plain chromadb, knowing nothing of us."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


class ForeignProgram:
    """A process of its own; each call of ``run`` is one statement over ``client`` and ``collection(name)``."""

    def __init__(self, *, path: Path | None = None, port: int | None = None) -> None:
        where = {"path": str(path)} if path is not None else {"port": port}
        self._process = subprocess.Popen(
            [sys.executable, __file__, json.dumps(where)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, statement: str) -> Any:
        """Evaluate an expression there; what JSON can carry of its value."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(statement) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["value"]

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()


def serve(where: dict[str, Any]) -> None:
    import chromadb
    from chromadb.config import Settings

    settings = Settings(anonymized_telemetry=False)
    if "path" in where:
        client = chromadb.PersistentClient(where["path"], settings)
    else:
        client = chromadb.HttpClient("127.0.0.1", where["port"], settings=settings)

    def collection(name: str) -> Any:
        return client.get_collection(name, embedding_function=None)

    for line in sys.stdin:
        try:
            value = eval(json.loads(line), {"client": client, "collection": collection})
            answer = json.dumps({"value": value}, default=str)
        except Exception as error:
            answer = json.dumps({"error": repr(error)})
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
