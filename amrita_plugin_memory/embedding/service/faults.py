"""What can go wrong with a service, as one error type with a kind; decides the sentence, the retry and the breaker.

Pure: values in, values out. The kinds come from a status code or from an exception's class names, because the
``openai`` client (3.x) stands on ``httpx2`` and the ``ollama`` client on ``httpx``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final, Literal, TypeAlias

from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable
from amrita_plugin_memory.kernel.text import clean, cut, one_line

Kind: TypeAlias = Literal[
    "unreachable", "timeout", "busy", "server", "key", "missing", "moved", "request", "long", "answer", "vectors"
]

_SENTENCES: Final[dict[Kind, str]] = {
    "unreachable": "嵌入服务 {base} 没有应答（{detail}），请检查 EMBEDDING_MODEL_URL，并确认服务已经启动",
    "timeout": "嵌入服务 {base} 没有在限定时间内应答，请稍后再试，或检查它是否卡住",
    "busy": "嵌入服务 {base} 说请求太多（{status}），请稍后再试",
    "server": "嵌入服务 {base} 自己出错（{status}{words}），请稍后再试，或检查它的日志",
    "key": "嵌入服务 {base} 不接受密钥（{status}），请检查 EMBEDDING_MODEL_API_KEY",
    "missing": "嵌入服务 {base} 没有这个模型或接口（{status}{words}），请检查 EMBEDDING_MODEL_NAME 和 URL",
    "moved": "嵌入服务 {base} 要求转到别的地址（{status}），请把 EMBEDDING_MODEL_URL 改为最终地址",
    "request": "嵌入服务 {base} 拒绝了请求（{status}{words}），请检查 EMBEDDING_MODEL_NAME 等嵌入设置",
    "long": "嵌入服务 {base} 说文本太长，缩短也不收（{status}{words}），请调小 EMBEDDING_MAX_CHARS，或换个嵌入模型",
    "answer": "嵌入服务 {base} 的应答不能用（{detail}），请检查 EMBEDDING_MODEL_URL 与 EMBEDDING_PROTOCOL 是否相配",
    "vectors": "嵌入服务 {base} 返回的向量不能用（{detail}），请换一个嵌入模型，或检查它的日志",
}
_RETRY: Final = frozenset[Kind]({"unreachable", "timeout", "busy", "server", "answer", "vectors"})
_OUTAGE: Final = frozenset[Kind]({"unreachable", "timeout", "busy", "server", "key", "missing", "moved"})
_STATUS_KINDS: Final[dict[int, Kind]] = {
    401: "key", 403: "key", 404: "missing", 405: "missing", 408: "timeout", 425: "busy", 429: "busy",
}  # fmt: skip
_WORDS_SHOWN: Final = 120


class ServiceFault(EmbeddingUnavailable):
    """A call to a service that brought no vectors. ``detail`` is the service's own words, scrubbed and bounded."""

    def __init__(
        self,
        kind: Kind,
        *,
        base: str,
        status: int | None = None,
        detail: str = "",
        retry_after: float | None = None,
    ) -> None:
        words = f"：{detail}" if detail else ""
        super().__init__(_SENTENCES[kind].format(base=base, status=status, detail=detail or "没有内容", words=words))
        self.kind: Kind = kind
        self.status = status
        self.detail = detail
        self.retry_after = retry_after

    @property
    def worth_retrying(self) -> bool:
        """True when the same request may succeed a moment later."""
        return self.kind in _RETRY

    @property
    def outage(self) -> bool:
        """True when other requests would fail too, so that it is better not to ask for a while."""
        return self.kind in _OUTAGE


def kind_of_status(status: int) -> Kind:
    """The kind of an HTTP status that is not 200."""
    if status in _STATUS_KINDS:
        return _STATUS_KINDS[status]
    if status >= 500:
        return "server"
    return "request" if status >= 400 else "moved"


def from_exception(error: BaseException, *, base: str) -> ServiceFault:
    """A fault for an exception of the HTTP library, wherever in the chain of causes it is."""
    chain = list(_chain(error))
    names = {cls.__name__ for link in chain for cls in type(link).__mro__}
    if names & {"TimeoutException", "APITimeoutError", "TimeoutError"}:
        return ServiceFault("timeout", base=base)
    return ServiceFault("unreachable", base=base, detail=_reason(" ".join(str(link) for link in chain)))


def scrub(words: object, *, secrets: Sequence[str], texts: Sequence[str] = ()) -> str:
    """The service's words on one line, without keys and without the texts that were sent."""
    plain = words if isinstance(words, str) else str(words)
    for hidden in (*secrets, *texts):
        if len(hidden) >= 2:
            plain = plain.replace(hidden, "…")
    return cut(one_line(clean(plain)), _WORDS_SHOWN)


def seconds_to_wait(header: str | None, *, now: datetime) -> float | None:
    """Read ``Retry-After``: seconds or an HTTP date (RFC 9110 §10.2.3); None when absent or unreadable."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(header) - now).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(seconds, 0.0) if seconds == seconds else None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _reason(words: str) -> str:
    low = words.lower()
    if "refused" in low or "all connection attempts failed" in low:
        return "连接被拒绝"
    if any(sign in low for sign in ("name or service", "getaddrinfo", "nodename", "name resolution")):
        return "找不到这台主机"
    if "certificate" in low or "ssl" in low:
        return "TLS 证书有问题"
    return "连接中断"
