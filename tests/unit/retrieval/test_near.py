import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.retrieval.near import essence


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("用户喜欢喝乌龙茶", "用户喜欢喝乌龙茶。"),
        ("用户喜欢喝乌龙茶", "用户，喜欢喝 乌龙茶！"),
        ("用户喜欢喝乌龙茶", "用户喜欢喝乌龙茶哦~"),
        ("住在北京", "住在北京了"),
        ("He lives in Hangzhou", "he lives in hangzhou."),
        ("He lives in Hangzhou", "He lives in Hangzhou now"),
        ("Ｔｅａ", "tea"),
        ("用户用Rust写程序", "用户用 Rust 写程序"),
        ("👍", " 👍 "),
    ],
)
def test_other_punctuation_and_a_closing_word_say_the_same(one, other):
    assert essence(one) == essence(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("用户喜欢猫", "用户不喜欢猫"),
        ("用户喜欢狗", "用户喜欢狗粮"),
        ("生日是5月3日", "生日是5月13日"),
        ("体重70.5公斤", "体重705公斤"),
        ("每天8:30起床", "每天830起床"),
        ("气温-5度", "气温5度"),
        ("涨了50%", "涨了50"),
        ("他结婚了吗", "他结婚了"),
        ("他住北京吧", "他住北京"),
        ("He likes tea", "He likes tea shops"),
        ("He is not well", "He is well"),
        ("she sells ice cream", "she sells icecream"),
        ("喜欢 C++", "喜欢 C"),
        ("喜欢 C#", "喜欢 C++"),
        ("👍", "👎"),
    ],
)
def test_another_number_name_or_negation_never_says_the_same(one, other):
    assert essence(one) != essence(other)


@given(st.text(max_size=60))
def test_every_text_has_an_essence_and_nothing_is_lost_twice(text):
    assert bool(essence(text)) == bool(text.strip())
