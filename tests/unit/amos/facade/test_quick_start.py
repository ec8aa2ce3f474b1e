"""The quick-start code of the protocol's document, as it is written there but for the name of the package."""

import asyncio
import tarfile

import pytest
from support.amos import shared_folder

from amrita_plugin_memory.amos import AMOS

CODE = """
async def main():
    # 1. 初始化（AMOS 为唯一主入口；可选 agent 启用 Agent 作用域）
    amos = await AMOS.create(
        root_dir="./amos_root",
        actor="user_zhangsan",            # 用户身份（默认取 AMOS_ACTOR 环境变量）
        agent="assistant",                # 可选：该用户下的 Agent（独立人格与会话）
        session_id="2026-08-22-demo",     # 默认会话（build_messages / add_turn 可省略）
        # summarize_fn 是压缩流程必需的，真实场景调用 DeepSeek
        summarize_fn=lambda text, instruction: text[:200],
    )

    # 2. 设定 AI 人格 + 用户画像（构成稳定前缀）
    #    有 agent → 写 agents/{agent}/soul.md；无 agent → 写 users/{actor}/soul.md
    await amos.replace_soul("# AI 人格\\n你是小深，温暖简洁的助手")
    await amos.replace_profile("# 用户画像\\n偏好简洁回答，旅行偏好经济型酒店")

    # 3. 多轮对话（自动追加，超过阈值自动压缩）
    await amos.add_turn("2026-08-22-demo", "计划去杭州旅行", "好的，确认日期和人数？")
    await amos.add_turn("2026-08-22-demo", "9月10日，2人", "已记录")

    # 4. 组装 prompt（缓存友好顺序，稳定前缀 = agent soul > 用户 soul > shared soul + 画像）
    messages = await amos.build_messages("2026-08-22-demo", "帮我推荐酒店")
    # → 直接送入 DeepSeek chat 接口即可命中前缀缓存

    # 5. 切换上下文（多用户 / 多 Agent）
    amos.set_context("user_lisi", None, "2026-08-22-demo")

    # 6. 后台任务 + 安全执行工具 + 可移植性
    task_id = await amos.submit_task("reflect", {"session_id": "2026-08-22-demo"})
    weather = await amos.execute_asset("tool", "weather", {"city": "上海"})
    await amos.export_agent("./agent.amos")
"""


def lines(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def test_the_quick_start_runs_as_it_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"AMOS": AMOS}
    exec(CODE + "\n    await amos.close()\n    return messages, task_id, weather", names)
    messages, task_id, weather = asyncio.run(names["main"]())
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert len(task_id) == 16
    assert not weather.ok
    with tarfile.open(tmp_path / "agent.amos") as package:
        names = package.getnames()
    assert [name for name in names if task_id in name]
    assert not [name for name in names if "zhangsan" in name]
    assert (tmp_path / "amos_root/users/user_zhangsan/agents/assistant/soul.md").exists()


def test_the_code_here_is_the_code_of_the_document():
    folder = shared_folder()
    if folder is None:
        pytest.skip("the document is not here")
    document = lines((folder / "seeds/amos-protocol.md").read_text("utf-8"))
    assert [line for line in lines(CODE) if line not in document] == []
