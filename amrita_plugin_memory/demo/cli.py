"""`amrita-memory demo`: the command, the play and the prompt."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

import click

from amrita_plugin_memory.kernel.errors import AmritaMemoryError

from . import silence
from .checks import Check, Scene, Turn
from .folder import LLM_KEY_VARIABLE, Endpoint
from .screen import Screen
from .stage import Stage
from .story import IN_GROUP, ME, STORY, Step

_HELP = """\
直接打字就是私聊；/memory 等命令照常；「群 内容」在群里 @ 机器人，「群 /memory group list」在群里发命令；/quit 退出。"""


@click.command(short_help="不要密钥、不连 QQ，看一遍记忆如何工作")
@click.option(
    "--dir", "folder", type=click.Path(path_type=Path), default=Path(".demo"), show_default=True, help="机器人文件夹"
)
@click.option("--port", type=click.IntRange(1, 65535), help="机器人的端口，默认选一个空闲的")
@click.option("--script", is_flag=True, help="演完故事就退出；每一步都真的发生了，退出码才是 0")
@click.option("--keep", is_flag=True, help="保留上次的记忆，不演故事，直接进入对话")
@click.option("--llm-base-url", help="改用真实模型：OpenAI 兼容接口的地址，如 https://…/v1")
@click.option(
    "--llm-key", envvar=LLM_KEY_VARIABLE, help="真实模型的密钥，只经环境变量传给机器人；它出错时可能写进自己的日志"
)
@click.option("--llm-model", help="真实模型的名字")
def demo(*, folder: Path, port: int | None, script: bool, keep: bool, **llm: str | None) -> None:
    """一条命令看到一个真的机器人记住、想起、忘掉。

    启动真实的 AmritaBot（带上记忆插件）、一个照表行事的聊天接口（脚本，不是模型）和一个模拟的 OneBot v11
    客户端，在终端里演一遍故事，然后可以自己和它说话。
    """
    endpoint = _endpoint(**llm)
    if script and (endpoint or keep):
        raise click.UsageError("--script 要求每一步都可验证，不能和 --keep 或真实模型（--llm-*）一起用。")
    screen = Screen()
    screen.opening(scripted=endpoint is None)
    stage = Stage(folder.expanduser().resolve(), llm=endpoint, port=port, keep=keep, progress=screen.progress)
    try:
        good = asyncio.run(_run(stage, screen, talk=not script, tell=endpoint is None and not keep))
    except AmritaMemoryError as error:
        screen.failure(error)
        sys.exit(1)
    except ModuleNotFoundError as error:
        screen.failure(AmritaMemoryError(f"缺少依赖包 {error.name}。请用 uv run amrita-memory demo 启动。"))
        sys.exit(1)
    except KeyboardInterrupt:
        screen.note("已中断，机器人已停下。")
        sys.exit(130)
    sys.exit(0 if good else 1)


def _endpoint(llm_base_url: str | None, llm_key: str | None, llm_model: str | None) -> Endpoint | None:
    if llm_base_url and llm_model:
        return Endpoint(llm_base_url, llm_key or "none", llm_model)
    if llm_base_url or llm_model:
        raise click.UsageError("--llm-base-url 和 --llm-model 要一起给出。")
    return None


async def _run(stage: Stage, screen: Screen, *, talk: bool, tell: bool) -> bool:
    async with stage:
        assert stage.settings is not None
        screen.place(stage.settings, str(stage.folder))
        good = await play(stage, screen) if tell else True
        if talk:
            await _converse(stage, screen)
        screen.note(f"机器人日志 {stage.log}" + (f"，模型请求 {stage.request_log}" if stage.model else ""))
        return good


async def play(stage: Stage, screen: Screen, story: tuple[Step, ...] = STORY) -> bool:
    """Play the story to its end, whatever fails on the way; True when every check of every step held."""
    captured: dict[str, str] = {}
    outcomes: list[tuple[Step, bool]] = []
    for number, step in enumerate(story, 1):
        screen.step(number, len(story), step)
        if step.action == "restart":
            await stage.restart()
            outcomes.append((step, True))
            continue
        text, missing = _filled(step.say, captured)
        if missing:
            screen.note(f"前面没有得到 {missing}，这一步做不了。")
            outcomes.append((step, False))
            continue
        if step.action == "silence":
            await silence.shorten(stage.folder)
        turn = await stage.say(step.place, text)
        screen.turn(turn)
        good = _judge(stage, screen, step=step, turn=turn)
        if step.action == "silence":
            good = await _fall_silent(stage, screen, step) and good
        outcomes.append((step, good))
        captured |= step.captured_from(turn.reply or "")
    screen.verdict(outcomes)
    return all(ok for _, ok in outcomes)


async def _fall_silent(stage: Stage, screen: Screen, step: Step) -> bool:
    """Say nothing until the background has tidied, and show what it left in the files."""
    with screen.progress("安静地等着"):
        record = await silence.finished_run(stage.folder, step.place.user)
    seen = await asyncio.to_thread(silence.findings, stage.folder, step.place.user, record)
    for what, finding in seen:
        screen.finding(Check(what, lambda _, seen=finding: seen), finding)
    return all(finding.ok for _, finding in seen)


def _judge(stage: Stage, screen: Screen, *, step: Step, turn: Turn) -> bool:
    scene = Scene(turn, tuple(stage.client.heard) if stage.client else ())
    good = True
    for check in step.checks:
        finding = check.look(scene)
        screen.finding(check, finding)
        good = good and finding.ok
    return good


def _filled(text: str, captured: dict[str, str]) -> tuple[str, str | None]:
    try:
        return text.format_map(captured), None
    except KeyError as missing:
        return text, str(missing.args[0])


async def _converse(stage: Stage, screen: Screen) -> None:
    screen.console.print()
    screen.note(_HELP)
    while True:
        line = await _ask("你> ")
        if line is None or line.strip() in ("/quit", "/exit", "/退出"):
            return
        if not line.strip():
            continue
        place, text = (IN_GROUP, line.strip()[1:].strip()) if line.strip().startswith("群 ") else (ME, line.strip())
        screen.turn(await stage.say(place, text), typed=True)
        if stage.host and (dead := await stage.host.failure_if_dead()):
            raise dead


async def _ask(prompt: str) -> str | None:
    """One line from the keyboard; None at its end. A thread that still waits never holds up the exit."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str | None] = loop.create_future()

    def deliver(line: str | None) -> None:
        if not answer.done():
            answer.set_result(line)

    def wait() -> None:
        try:
            line = input(prompt)
        except (EOFError, OSError, UnicodeDecodeError):
            line = None
        try:
            loop.call_soon_threadsafe(deliver, line)
        except RuntimeError:
            return  # the loop ended while we waited

    threading.Thread(target=wait, daemon=True).start()
    return await answer
