"""Arguments of a tool that cannot be used are answered in one Chinese sentence that names the argument."""

import re
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from amrita_plugin_memory.kernel.errors import InvalidInput
from amrita_plugin_memory.kernel.toolspec import describe


async def tool(
    *,
    content: Annotated[str, Field(min_length=1, max_length=9)],
    top_k: Annotated[int, Field(ge=1, le=50)] = 5,
    weight: Annotated[float, Field(gt=0, lt=1)] = 0.5,
    scope: Literal["user", "group"] = "user",
    sure: bool = False,
    ids: Annotated[list[str], Field(min_length=1, max_length=2)] = ["a"],  # noqa: B006 - never changed
    extra: dict[str, int] | None = None,
    code: Annotated[str, Field(pattern="^[a-f]+$")] = "a",
) -> Any:
    """Do it."""


@pytest.mark.parametrize(
    ("given", "field", "reason"),
    [
        ({}, "content", "缺少这个参数"),
        ({"content": 1}, "content", "应为文本"),
        ({"content": ""}, "content", "至少要 1 个字"),
        ({"content": "1234567890"}, "content", "最多 9 个字"),
        ({"top_k": 51}, "top_k", "不能大于 50"),
        ({"top_k": 0}, "top_k", "不能小于 1"),
        ({"top_k": "many"}, "top_k", "应为整数"),
        ({"top_k": 1.5}, "top_k", "应为整数"),
        ({"top_k": []}, "top_k", "应为整数"),
        ({"weight": "heavy"}, "weight", "应为数字"),
        ({"weight": 0}, "weight", "必须大于 0.0"),
        ({"weight": 1}, "weight", "必须小于 1.0"),
        ({"scope": "all"}, "scope", "只能是 user、group 之一"),
        ({"sure": "perhaps"}, "sure", "应为 true 或 false"),
        ({"sure": []}, "sure", "应为 true 或 false"),
        ({"ids": "a"}, "ids", "应为列表"),
        ({"ids": []}, "ids", "至少要 1 项"),
        ({"ids": ["a", "b", "c"]}, "ids", "最多 2 项"),
        ({"ids": [1]}, "ids.0", "应为文本"),
        ({"extra": "x"}, "extra", "应为键值对象"),
        ({"code": "zz"}, "code", "值或格式不对，请照说明改写"),
    ],
)
def test_each_complaint_is_one_chinese_sentence(given: dict[str, Any], field: str, reason: str) -> None:
    whole = {"content": "好", **given} if given else given
    with pytest.raises(InvalidInput) as caught:
        describe(tool).arguments(whole)
    assert str(caught.value) == f"工具 tool 的参数 {field} 不可用：{reason}"
    assert not re.search(r"[Ii]nput|should|must", str(caught.value))


def test_what_can_be_used_is_handed_on_with_the_defaults() -> None:
    done = describe(tool).arguments({"content": "好", "top_k": "7", "scope": None, "unknown": 1})
    assert (done["content"], done["top_k"], done["scope"]) == ("好", 7, "user")
