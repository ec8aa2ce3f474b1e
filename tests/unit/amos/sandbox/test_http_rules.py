from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.amos.errors import HttpRefused
from amrita_plugin_memory.amos.sandbox.http.rules import (
    HttpPolicy,
    Target,
    headers_across_origins,
    headers_to_send,
    objection,
)

NOT_PUBLIC = [
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "100.100.100.200", "168.63.129.16", "192.0.0.192", "192.88.99.1", "198.18.0.1", "203.0.113.9", "224.0.0.1",
    "239.255.255.250", "240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1",
    "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001::1", "2001:db8::1", "fe80::1",
    "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "100::1", "5f00::1", "3fff::1", "nonsense", "",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "1.1.1.1", "223.5.5.5", "2400:3200::1", "2606:4700:4700::1111", "::ffff:8.8.8.8"]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert objection(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_let_through(address: str) -> None:
    assert objection(address) == ""


@given(st.ip_addresses())
def test_nothing_the_standard_library_calls_private_is_ever_let_through(ip: object) -> None:
    assert isinstance(ip, ipaddress.IPv4Address | ipaddress.IPv6Address)
    if ip.is_private or ip.is_loopback or ip.is_link_local or ip.is_multicast:
        mapped = getattr(ip, "ipv4_mapped", None)
        assert objection(str(ip)) or (mapped is not None and mapped.is_global)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "ftp://a.test/x", "gopher://a.test", "http://", "http:///x", "//a.test/x", "a.test", "",
        "http://user@a.test/", "http://user:pw@a.test/", "http://a.test@127.0.0.1/", "http://a.test\\@127.0.0.1/",
        "http://a.test:99999/", "http://a.test:x/", "http://[::1/", "http://a.test/\r\nHost: b", "http://a test/",
        "http://a.test/\x00", "javascript:alert(1)", "http://a.test/ x", "http://" + "a" * 9000,
        "http://" + "a." * 200 + "test/",
    ],
)  # fmt: skip
def test_a_url_that_is_not_plain_http_is_refused(url: str) -> None:
    with pytest.raises(HttpRefused):
        Target.parse(url)


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("http://A.Test", "http://a.test/"),
        ("https://a.test:443/x?y=1#frag", "https://a.test/x?y=1"),
        (
            "http://a.test:8080/中文?城市=上海",
            "http://a.test:8080/%E4%B8%AD%E6%96%87?%E5%9F%8E%E5%B8%82=%E4%B8%8A%E6%B5%B7",
        ),
        ("http://[2400:3200::1]/x", "http://[2400:3200::1]/x"),
        ("http://例子.test./", "http://xn--fsqu00a.test/"),
        ("http://a.test/a%20b", "http://a.test/a%20b"),
    ],
)
def test_a_url_is_sent_in_one_ascii_form(url: str, sent: str) -> None:
    assert Target.parse(url).url == sent


@given(st.text(max_size=60))
def test_no_text_ever_becomes_a_url_with_signs_that_could_split_a_request(text: str) -> None:
    try:
        target = Target.parse("http://a.test/" + text)
    except HttpRefused:
        return
    assert target.host == "a.test"
    assert target.path.isascii()
    assert target.path.isprintable()
    assert " " not in target.path


def test_a_host_must_be_on_the_list_and_the_empty_list_is_nobody() -> None:
    with pytest.raises(HttpRefused, match="allow_hosts"):
        HttpPolicy().target("http://a.test/")
    with pytest.raises(HttpRefused, match="allow_hosts"):
        HttpPolicy(hosts=("*.good.test",)).target("http://good.test.evil.test/")
    assert HttpPolicy(hosts=("*.Good.test",)).target("https://api.good.test/").host == "api.good.test"
    assert HttpPolicy(hosts=("*",)).target("https://any.test/").port == 443


def test_a_port_must_be_on_the_list() -> None:
    with pytest.raises(HttpRefused, match="端口"):
        HttpPolicy(hosts=("*",)).target("http://a.test:6379/")
    assert HttpPolicy(hosts=("*",), ports=frozenset((8443,))).target("https://a.test:8443/").port == 8443


def test_headers_of_the_connection_are_not_the_callers() -> None:
    sent = headers_to_send({"Authorization": "k", "HOST": "evil", "Content-Length": "0", "Cookie": "a", "X-A": "中"})
    assert sent == {"Authorization": "k", "X-A": "中"}


@pytest.mark.parametrize(
    "headers", [{"X": "a\r\nY: b"}, {"X Y": "a"}, {"X:": "a"}, {"": "a"}, {"X": "a" * 20_000}, {"X中": "a"}]
)
def test_a_header_that_could_split_a_request_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(HttpRefused):
        headers_to_send(headers)


def test_nothing_that_could_hold_a_secret_crosses_to_another_origin() -> None:
    kept = headers_across_origins({"Authorization": "k", "X-Api-Key": "k", "Accept": "text/plain"})
    assert kept == {"Accept": "text/plain"}
