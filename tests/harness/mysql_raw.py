"""A client of MySQL's protocol that keeps every byte."""

import hashlib
import struct

from .raw import Raw

LONG_PASSWORD, FOUND_ROWS, LONG_FLAG, WITH_SCHEMA = 1, 2, 4, 8
PROTOCOL_41, TLS, TRANSACTIONS, SECURE = 1 << 9, 1 << 11, 1 << 13, 1 << 15
MULTI_STATEMENTS, MULTI_RESULTS, PS_MULTI_RESULTS, PLUGIN = 1 << 16, 1 << 17, 1 << 18, 1 << 19
SESSION_TRACK, DEPRECATE_EOF = 1 << 23, 1 << 24

PLAIN = (
    LONG_PASSWORD
    | LONG_FLAG
    | PROTOCOL_41
    | TRANSACTIONS
    | SECURE
    | MULTI_STATEMENTS
    | MULTI_RESULTS
    | PS_MULTI_RESULTS
    | PLUGIN
)
"""As drivers ask for, without what changes the bytes of replies."""

MORE_RESULTS, CURSOR, STATE_CHANGED = 8, 64, 0x4000

QUIT, INIT_DB, QUERY, FIELD_LIST, STATISTICS, PING = 1, 2, 3, 4, 9, 14
CHANGE_USER, PREPARE, EXECUTE, LONG_DATA, CLOSE, RESET = 17, 22, 23, 24, 25, 26
SET_OPTION, FETCH, RESET_CONNECTION = 27, 28, 31

LARGEST = 0xFFFFFF
"""Bytes of the largest packet. One behind it goes on."""


def native(password, salt):
    """The proof of mysql_native_password."""
    once = hashlib.sha1(password.encode()).digest()
    twice = hashlib.sha1(once).digest()
    mask = hashlib.sha1(salt + twice).digest()
    return bytes(a ^ b for a, b in zip(once, mask))


def sha2(password, salt):
    """The proof of caching_sha2_password."""
    once = hashlib.sha256(password.encode()).digest()
    mask = hashlib.sha256(hashlib.sha256(once).digest() + salt).digest()
    return bytes(a ^ b for a, b in zip(once, mask))


def said(password, _):
    """The password itself."""
    return password.encode() + b"\0"


PROOFS = {
    "mysql_native_password": native,
    "caching_sha2_password": sha2,
    "mysql_clear_password": said,
    "": native,
}


def proof(method, password, salt):
    """The proof by a method. One that is not known here proves nothing."""
    if not password:
        return b""
    return PROOFS[method](password, salt) if method in PROOFS else b"no proof"


def packets(payload, sequence=0):
    """A message as it is sent: a packet, or several if it is large."""
    parts = []
    for start in range(0, len(payload) + 1, LARGEST):
        part = payload[start : start + LARGEST]
        parts.append(struct.pack("<I", len(part) | (sequence & 255) << 24) + part)
        sequence += 1
    return b"".join(parts)


class Greeting:
    """What a server says first."""

    def __init__(self, payload):
        self.payload = payload
        self.version, rest = payload[1:].split(b"\0", 1)
        self.number = int.from_bytes(rest[:4], "little")
        self.capabilities = (
            int.from_bytes(rest[13:15], "little") | int.from_bytes(rest[18:20], "little") << 16
        )
        self.collation = rest[15]
        self.salt = rest[4:12] + rest[31:43]


def number(payload, at):
    """A number of variable length, and where it ends."""
    first = payload[at]
    if first < 0xFB:
        return first, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(payload[at + 1 : at + 1 + size], "little"), at + 1 + size


class Error(Exception):
    """A server has answered an error: its number and its text."""

    def __init__(self, payload):
        super().__init__(int.from_bytes(payload[1:3], "little"), payload[9:].decode(errors="replace"))


class Connection(Raw):
    """A connection that has logged in, unless `login` is false."""

    def __init__(
        self, address, user="app", password="secret", schema="", capabilities=PLAIN, collation=45, login=True
    ):
        super().__init__(address)
        self._parts = []
        # The number of the packet by which the client says who it is.
        self.sequence = 1
        _, payload = self.packet()
        if payload[:1] == b"\xff":
            raise Error(payload)
        self.greeting = Greeting(payload)
        self.capabilities = capabilities | (WITH_SCHEMA if schema else 0)
        self._collation = collation
        if login:
            self.login(user, password, schema)

    def secure(self, context):
        """Goes on within TLS."""
        self.capabilities |= TLS
        asks = struct.pack("<IIB23x", self.capabilities, 1 << 30, self._collation)
        self.send(packets(asks, self.sequence))
        self.sequence += 1
        self.sock = context.wrap_socket(self.sock)

    def login(self, user, password, schema=""):
        """Logs in, and returns the bytes of what the server has said to it."""
        self._parts = []
        self.send(packets(self.hello(user, password, schema), self.sequence))
        payload = self.proved(password)
        if payload[:1] == b"\xff":
            raise Error(payload)
        return b"".join(self._parts)

    def hello(self, user, password, schema="", method="mysql_native_password"):
        """What a client says first."""
        proved = proof(method, password, self.greeting.salt)
        said = struct.pack("<IIB23x", self.capabilities, 1 << 30, self._collation)
        said += user.encode() + b"\0" + bytes([len(proved)]) + proved
        return said + (schema.encode() + b"\0" if schema else b"") + method.encode() + b"\0"

    def proved(self, password):
        """Proves the password by the methods that are asked for, and returns the last answer."""
        while True:
            sequence, payload = self.packet()
            if payload[:1] == b"\xfe" and len(payload) > 9:
                method, salt = payload[1:].split(b"\0", 1)
                self.send(packets(proof(method.decode(), password, salt[:20]), sequence + 1))
            elif payload != b"\1\3":
                return payload

    def packet(self):
        """The number and the payload of the next message, which may come in several packets."""
        payload = b""
        while True:
            head = self.exactly(4)
            size = int.from_bytes(head[:3], "little")
            part = self.exactly(size)
            self._parts.append(head + part)
            payload = payload + part if payload else part
            if size < LARGEST:
                return head[3], payload

    def ask(self, command, payload=b""):
        """The bytes of the whole reply to a command."""
        self.write(command, payload)
        return self.reply(command)

    def write(self, command, payload=b""):
        self.send(packets(bytes([command]) + (payload.encode() if isinstance(payload, str) else payload)))

    def query(self, text):
        """The bytes of the whole reply to a text."""
        return self.ask(QUERY, text)

    def reply(self, command=QUERY):
        self._parts = []
        if command == STATISTICS:
            self.packet()
        elif command == PREPARE:
            self._prepared()
        elif command == FIELD_LIST:
            self._until_end()
        elif command == FETCH:
            self._until_end()
        else:
            while self._result():
                pass
        return b"".join(self._parts)

    def _eof(self):
        return not self.capabilities & DEPRECATE_EOF

    def _prepared(self):
        _, payload = self.packet()
        if payload[0] == 0xFF:
            return
        columns, parameters = struct.unpack_from("<HH", payload, 5)
        for count in (parameters, columns):
            for _ in range(count):
                self.packet()
            if count and self._eof():
                self.packet()

    def _until_end(self):
        """Reads rows up to their end, and returns whether another result follows."""
        while True:
            _, payload = self.packet()
            if payload[0] == 0xFF:
                return False
            if payload[0] == 0xFE and len(payload) < (9 if self._eof() else LARGEST):
                if self._eof():
                    return bool(int.from_bytes(payload[3:5], "little") & MORE_RESULTS)
                return self._is_followed(payload)

    @staticmethod
    def _is_followed(payload):
        _, at = number(payload, 1)
        _, at = number(payload, at)
        return bool(int.from_bytes(payload[at : at + 2], "little") & MORE_RESULTS)

    def _result(self):
        _, payload = self.packet()
        if payload[0] == 0xFF:
            return False
        if payload[0] == 0x00:
            return self._is_followed(payload)
        if payload[0] == 0xFE and len(payload) < 9:
            return False
        columns, _ = number(payload, 0)
        for _ in range(columns):
            self.packet()
        if self._eof():
            _, payload = self.packet()
            if int.from_bytes(payload[3:5], "little") & CURSOR:
                return False
        return self._until_end()


def login_by(client, user, password, method, whole=False):
    """Logs in by this method, and returns the last answer, or the `whole` reply."""
    client._parts = []
    client.send(packets(client.hello(user, password, method=method), client.sequence))
    payload = client.proved(password)
    return b"".join(client._parts) if whole else payload


def say(client, user, password):
    """Logs in by the method in which the password itself is said, and returns the first answer."""
    client.send(packets(client.hello(user, password, method="mysql_clear_password"), client.sequence))
    return client.packet()[1]


def change_user(client, user, password, schema=""):
    """Becomes another user, and returns the last answer."""
    said = user.encode() + b"\0\0" + schema.encode() + b"\0" + b"\x2d\0mysql_native_password\0"
    client.write(CHANGE_USER, said)
    return client.proved(password)


def split(reply):
    """The packets of a reply: their numbers and payloads."""
    found, at = [], 0
    while at < len(reply):
        size = int.from_bytes(reply[at : at + 3], "little")
        found.append((reply[at + 3], reply[at + 4 : at + 4 + size]))
        at += 4 + size
    return found


def shown(reply):
    """The end of a reply, for people."""
    found = split(reply) if isinstance(reply, bytes) else reply
    return (
        f"{len(found)} packets, the last: {[(sequence, payload[:200]) for sequence, payload in found[-8:]]}"
    )


def numbers(reply):
    """The numbers of the errors in a reply."""
    return [int.from_bytes(part[1:3], "little") for _, part in split(reply) if part[:1] == b"\xff"]


def _without_hint(payload):
    """An EOF packet without the flag that something of the session has changed: it cannot say what."""
    return payload[:4] + bytes([payload[4] & ~(STATE_CHANGED >> 8)])


def _in_order(payload):
    """An OK packet with what it tells of the session in one order: a server has none."""
    _, at = number(payload, 1)
    _, at = number(payload, at)
    if not int.from_bytes(payload[at : at + 2], "little") & STATE_CHANGED:
        return payload
    size, at = number(payload, at + 4)
    size, start = number(payload, at + size)
    parts, at = [], start
    while at < start + size:
        length, behind = number(payload, at + 1)
        parts.append(payload[at : behind + length])
        at = behind + length
    return payload[:start] + b"".join(sorted(parts))


def in_order(reply, capabilities):
    """The packets of a reply as they are compared: what they tell of the session has one order."""
    found = split(reply)
    for place, (sequence, payload) in enumerate(found):
        if payload[:1] == b"\xfe" and len(payload) == 5:
            found[place] = sequence, _without_hint(payload)
        elif capabilities & SESSION_TRACK and payload[:1] in (b"\0", b"\xfe") and len(payload) > 6:
            if place + 1 == len(found) or payload[:1] == b"\0":
                found[place] = sequence, _in_order(payload)
    return found


class Twins:
    """Two connections with the same capabilities: through the proxy to one server, and to a server that is
    its twin. They are told the same, and must answer the same."""

    def __init__(self, proxied, direct, **options):
        self._places, self._options = (proxied, direct), options
        self.history = []
        self._connect()

    def _connect(self):
        self.ours, self.theirs = (Connection(place, **self._options) for place in self._places)
        # The numbers that each of the two has given to a prepared statement.
        self._statements = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.ours.close()
        self.theirs.close()

    def again(self):
        """Leaves, and comes back."""
        self.history.append("comes back")
        for one in (self.ours, self.theirs):
            one.write(QUIT)
            one.rest()
        self.close()
        self._connect()

    def _same(self, what, ours, theirs):
        self.history.append(what[:300])
        if ours != theirs:
            ours, theirs = (in_order(reply, self.ours.capabilities) for reply in (ours, theirs))
        assert ours == theirs, "\n".join(
            ["these differ behind", *(f"    {one}" for one in self.history[-30:])]
            + [f"ours:   {shown(ours)}", f"theirs: {shown(theirs)}"]
        )
        return ours

    def ask(self, command, payload=b""):
        ours, theirs = (one.ask(command, payload) for one in (self.ours, self.theirs))
        return self._same(f"{command} {payload!r}", ours, theirs)

    def query(self, text):
        ours, theirs = (one.query(text) for one in (self.ours, self.theirs))
        return self._same(text if isinstance(text, str) else repr(text), ours, theirs)

    def prepare(self, name, text):
        """Prepares a text, which has this name from then on."""
        replies = [one.ask(PREPARE, text) for one in (self.ours, self.theirs)]
        self._statements[name] = [reply[5:9] for reply in replies]
        masked = [reply[:5] + b"...." + reply[9:] if reply[4] == 0 else reply for reply in replies]
        is_error = replies[1][4] != 0
        if is_error:
            del self._statements[name]
        self._same(f"prepare {name}: {text}", *masked)
        return not is_error

    def told(self, name, command, payload=b"", answered=True):
        """Asks for something that is done with a prepared statement."""
        found = []
        numbers = self._statements.get(name, [b"\xee\xee\0\0"] * 2)
        for one, number in zip((self.ours, self.theirs), numbers):
            one.write(command, number + payload)
            if answered:
                found.append(one.reply(command))
        if command == CLOSE:
            self._statements.pop(name, None)
        if answered:
            return self._same(f"{command} of {name} {payload!r}", *found)
        self.history.append(f"{command} of {name} {payload!r}")

    def execute(self, name, payload=b"", cursor=0):
        return self.told(name, EXECUTE, bytes([cursor, 1, 0, 0, 0]) + payload)
