"""A real host for tests, and a script that calls exactly the tool a test asks for."""

import json
import re

from amrita_plugin_memory.demo.onebot import Place
from amrita_plugin_memory.demo.script import rules
from amrita_plugin_memory.demo.script.cycle import is_cycle, tidy
from amrita_plugin_memory.demo.script.reading import Reading
from amrita_plugin_memory.demo.script.rules import Call, Reply
from amrita_plugin_memory.demo.stage import Stage

_DIRECTIVE = re.compile(r"^调用 (\w+) (\{.*\})$", re.DOTALL)


def respond(reading: Reading) -> Reply:
    """``调用 tool {json}`` calls that tool and answers with its raw result; all else goes by the demo's table."""
    if is_cycle(reading):
        return tidy(reading)
    found = None if "report" in reading.tools else _DIRECTIVE.match(reading.said)
    if found is None:
        return rules.respond(reading)
    if reading.tools and reading.rounds == 0:
        return Reply("directive", calls=(Call(found[1], json.loads(found[2])),))
    return Reply("directive", reading.result_of(found[1]) or "没有结果")


async def call(bot: Stage, place: Place, tool: str, **arguments) -> dict:
    """Have the model of the running bot call one tool at this place; the tool's result."""
    turn = await bot.say(place, f"调用 {tool} {json.dumps(arguments, ensure_ascii=False)}")
    results = [text for name, text in turn.results if name == tool]
    assert results, (turn.reply, turn.silence)
    return json.loads(results[-1])
