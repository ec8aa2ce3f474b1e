"""Ways to the network: sockets, and the broker talked into loopback."""

from __future__ import annotations

from .model import tried

_FETCH = "import urllib.request\nreturn str(urllib.request.urlopen('%s'.replace('PORT', str(params['port'])), timeout=1).read())"
_SPELLINGS = {
    "plain": "http://127.0.0.1:PORT/",
    "by_name": "http://localhost:PORT/",
    "mapped": "http://[::ffff:127.0.0.1]:PORT/",
    "as_a_number": "http://2130706433:PORT/",
    "shortened": "http://127.1:PORT/",
    "as_zero": "http://0.0.0.0:PORT/",
    "behind_a_user": "http://example.com@127.0.0.1:PORT/",
}

OUTWARD = (
    tried("tcp_socket", "import socket\ns = socket.create_connection(('127.0.0.1', params['port']), 1)\ns.send(b'x')\nreturn 'sent'", quick=True),
    tried("udp_socket", "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.sendto(b'x', ('127.0.0.1', params['port']))\nreturn 'sent'"),
    tried("abstract_socket", "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('\\0arena-%d' % params['port'])\ns.send(b'x')\nreturn 'sent'"),
    tried("fetch_while_closed", _FETCH % _SPELLINGS["plain"]),
    *(tried(f"fetch_loopback_{name}", _FETCH % url, network=True, quick=name in ("plain", "as_a_number")) for name, url in _SPELLINGS.items()),
    tried("fetch_a_file", "import urllib.request\nreturn urllib.request.urlopen('file://' + params['secret']).read().decode()", network=True, quick=True),
    tried("raw_socket_while_open", "import socket\nsocket.create_connection(('127.0.0.1', params['port']), 1).send(b'x')\nreturn 'sent'", network=True),
)  # fmt: skip
