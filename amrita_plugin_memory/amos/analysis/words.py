"""The vocabulary of the local rules: patterns and word lists for Chinese and English. Pure data."""

from __future__ import annotations

import re
from typing import Final


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _any(*alternatives: str) -> re.Pattern[str]:
    """One pattern out of several, blind to case."""
    return re.compile("|".join(alternatives), re.IGNORECASE)


SENTENCE: Final = re.compile(r"[^。！？!?；;\n]+[。！？!?；;]*")
CLAUSE: Final = re.compile(r"[，,、]|\.\s|(?:\s(?:and|but)\s(?=I\b))")
QUESTION: Final = _any(
    r"[？?]",
    r"[吗呢]$",
    r"^(?:what|how|why|who|where|when|which|can|could|do|does|is|are)\b",
    r"什么|怎么|为什么|谁|哪",
)
CONDITION: Final = _any(r"如果|要是|假如|假设|万一", r"\bif\b|\bsuppose\b|\bwould\b")
SELF: Final = _any(r"[我咱]", r"\bI\b|\bI'm\b|\bmy\b")
NOT_SELF: Final = _any(r"^(?:他|她|它|你|朋友|同事)", r"^(?:he|she|they|you)\b")

FACT: Final = _any(
    r"[我咱]们?(?:是|叫|姓|住|在|来自|今年|属|有|没有|养|做|当|从事|毕业|就职|工作|结婚|离婚|怀孕|出生)",
    r"我的?(?:名字|生日|职业|工作|公司|电话|邮箱|家|老婆|老公|妻子|丈夫|女儿|儿子|孩子|爸|妈|猫|狗|车|手机|城市|专业|身高)",
    r"我(?:爸|妈|老婆|老公|女儿|儿子|女朋友|男朋友).{0,6}(?:是|叫|在|有)",
    r"\bI(?:'m| am| was| have| live| work| come| own| study)\b",
    r"\bmy (?:name|job|birthday|wife|husband|son|daughter|cat|dog|car|company|home)\b",
)
ELIDED: Final = _any(r"^(?:住|养|来自|在.{1,10}(?:工作|上班|上学|读书)|今年|从事|做.{1,8}的|有.{0,3}[个只条位])")
PREFERENCE: Final = _any(
    r"喜欢|喜爱|偏好|偏爱|讨厌|不爱|最爱|爱吃|爱喝|爱看|爱听|不吃|不喝|忌口|过敏|习惯|受不了|不能吃|更想|倾向|宁愿",
    r"\bI (?:really )?(?:like|love|prefer|hate|enjoy|dislike|can't stand|don't like|don't eat|don't drink)\b",
    r"\ballergic\b|\bmy favou?rite\b",
)
TODO: Final = _any(
    r"提醒我|记得|别忘|待办",
    r"帮我(?:订|买|查|约|写|做|记|安排|整理|预订|预约)",
    r"(?:今天|明天|后天|下周|周[一二三四五六日天末]|月底|\d+[号日点]).{0,8}(?:要|得|需要|必须)",
    r"我(?:要|得|需要|必须|打算|计划)",
    r"\bremind me\b|\bdon't forget\b|\bI (?:need|have|want|plan) to\b|\btodo\b|\bdeadline\b",
)
WORKFLOW: Final = _any(
    r"工作流|流程|步骤|以后都?按|每次都",
    r"\bSOP\b|\bworkflow\b|\bstep by step\b",
    r"先.{1,30}(?:再|然后).{1,30}(?:最后|再|然后)",
)
ASSET: Final = _any(
    r"(?:做|写|建|生成|创建|开发|弄).{0,8}(?:工具|页面|网页|脚本|小程序|插件|应用)",
    r"\b(?:build|make|create|write)\b.{0,30}\b(?:tool|page|script|app|website)\b",
)
ASK: Final = _any(
    r"^请|帮我|帮忙|麻烦|能不能|可以.{0,10}吗|给我|查一下|写一|翻译|推荐",
    r"\bplease\b|^(?:can|could|would) you\b|\bhelp me\b",
)
UNSURE: Final = _any(
    r"不确定|不清楚|无法|暂时不能|没有找到|稍后|抱歉",
    r"需要.{0,6}(?:确认|提供|补充)|请(?:问|告诉|提供|确认)",
    r"\bnot sure\b|\bsorry\b|\bcan't\b|\bunable\b|\bcould you\b",
)
NEGATION: Final = _any(r"(?:不|没|没有|别|not |n't |never )(?:太|很|是|怎么|so |very |really )?$")

GOOD: Final = _set("""
    开心 高兴 喜欢 谢谢 感谢 太好 太棒 不错 满意 完美 期待 幸福 放心 顺利 成功 厉害 赞 哈哈
    great good thanks thank love happy perfect nice awesome excellent glad wonderful
""")
BAD: Final = _set("""
    难过 生气 讨厌 失望 糟糕 烦 累 崩溃 不满 投诉 退款 错误 失败 坏了 太差 差劲 垃圾 焦虑 担心 害怕 后悔 郁闷 难受 无语
    bad terrible angry sad hate awful disappointed refund broken wrong fail failed worried upset frustrated
""")
COMMON: Final = _set("""
    我们 你们 他们 什么 怎么 这个 那个 可以 一下 已经 就是 不是 没有 知道 觉得 现在 今天 明天 时候 如果 因为 所以 但是
    还是 需要 谢谢 好的 请问 帮我 一个 推荐 告诉 喜欢 应该 可能 比较 的是 我的 你的 了吗 是的
""")
STARTERS: Final = _set("""
    The This That What How Why When Where Who Please Thanks Thank Yes No Can Could Would Is Are Do Does And But So If It
    We You They He She My Your OK Hi Hello Sure Sorry Also Then In On At I I'm
""")
INTENTS: Final = {
    name: _set(words)
    for name, words in {
        "出行": "旅行 旅游 机票 酒店 行程 高铁 签证 景点 travel trip hotel flight",
        "购物": "买 购 价格 下单 优惠 快递 退货 退款 buy price order refund",
        "工作": "会议 项目 报告 客户 老板 同事 加班 周报 邮件 meeting project report deadline",
        "学习": "学习 考试 作业 课程 论文 老师 复习 study exam homework course",
        "技术": "代码 报错 程序 部署 数据库 接口 服务器 bug code error deploy server api python",
        "健康": "医院 生病 感冒 吃药 减肥 运动 睡眠 过敏 doctor sick exercise sleep",
        "饮食": "餐厅 做饭 菜谱 外卖 火锅 咖啡 好吃 recipe restaurant coffee food",
        "情感": "心情 分手 男朋友 女朋友 孤独 难过 吵架 mood lonely relationship",
    }.items()
}
EVERYDAY: Final = "日常"
TRENDS: Final = {"positive": "积极", "negative": "消极", "neutral": "平稳", "improving": "好转", "declining": "变差"}
ENTITY: Final = re.compile(
    r"[「『《“\"](?P<quoted>[^「」『』《》“”\"]{2,20})[」』》”\"]"
    r"|(?P<place>(?:(?![的去在了到我你他她是和把被给])[\u4e00-\u9fff]){2,6}?(?:市|省|区|县|镇|路|街|山|湖|岛|站|机场|酒店|公司|大学|医院|银行|学校|餐厅))"
    r"|(?P<name>\b[A-Z][A-Za-z0-9+#.-]{1,20}(?: [A-Z][A-Za-z0-9+#.-]{1,20}){0,2})"
)
HAN: Final = re.compile(r"[\u4e00-\u9fff]+")
