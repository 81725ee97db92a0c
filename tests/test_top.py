"""The terminal: `proxima top`, and `proxima events`."""

import contextlib
import http.server
import json
import signal
import socket
import subprocess
import threading

import pytest

from harness import PATIENCE, ports, until
from harness.asking import asking
from harness.proxy import BINARY, config, environment
from harness.terminal import Terminal

pytestmark = pytest.mark.either_io

POOL = {"eject": {"failures": 1, "probe_initial": "20ms"}}
COLOUR = b"\x1b[38;5;"


@pytest.fixture
def server(memcached):
    return memcached()


@pytest.fixture
def proxy(server, proxima):
    """A proxy with two servers, one of which is not there."""
    servers = [{"address": server.address, "name": "here"}, {"address": ports.address(), "name": "away"}]
    started = proxima(config("cache", {"cache": {"servers": servers, **POOL}}))
    with started.raw() as client:
        for number in range(50):
            client.ask(b"get k%d\r\n" % number)
    until(lambda: "ejected" in started.http("/members")[1], "the missing server is ejected")
    return started


@pytest.fixture
def top(cleanup):
    """Starts `proxima top` on a terminal."""

    def start(proxy, *arguments, **options):
        terminal = Terminal([BINARY, "top", "--admin", proxy.admin, *arguments], **options)
        cleanup.callback(terminal.stop)
        return terminal

    return start


def test_keys_show_each_view_and_the_terminal_is_given_back(proxy, top):
    terminal = top(proxy)
    lines = terminal.until("serving; 1 of 2 servers of `cache`")
    assert lines[0].startswith("proxima ") and proxy.admin in lines[0]
    assert any(line.startswith("!") and "health" in line for line in lines)
    terminal.press("2")
    terminal.until("[2 servers]")
    lines = terminal.until("Connection refused")
    assert lines[3].startswith(">away") and lines[4].startswith(" here"), lines
    terminal.press("\x1b[B")
    terminal.until(">here")
    terminal.press("/awa")
    terminal.until("show only rows with: awa_")
    terminal.press("\r")
    lines = terminal.until("only rows with: awa")
    assert not any("here" in line for line in lines)
    terminal.press("/x\r")
    terminal.until("no row has this text")
    terminal.press("3")
    terminal.until(proxy.address)
    terminal.press("5")
    terminal.until("[5 events]")
    terminal.press("?")
    terminal.until("pause: nothing moves")
    terminal.press("q")
    assert terminal.ended() == 0
    assert terminal.is_restored()


def test_servers_stay_in_place_while_paused(proxy, server, top):
    terminal = top(proxy)
    terminal.until("1 of 2 servers")
    terminal.press(" ")
    before = terminal.until("PAUSED")
    server.kill()
    with proxy.raw() as client:
        client.ask(b"get k\r\n")
    until(lambda: proxy.http("/members")[1].count("ejected") == 2, "both servers are out")
    assert terminal.until("PAUSED")[:3] == before[:3]
    terminal.press(" ")
    terminal.until("2 of 2 servers")


def test_any_size_of_the_terminal_is_used(proxy, top):
    terminal = top(proxy)
    terminal.until("1 of 2 servers")
    terminal.resize(30, 10)
    terminal.press("2")
    lines = terminal.until(">away")
    assert max(map(len, lines)) <= 30
    terminal.resize(80, 24)
    terminal.until("[2 servers] 3 pools")
    terminal.resize(3, 2)
    terminal.press("1")
    terminal.resize(120, 40)
    terminal.until("requests/s, at most")


def test_a_proxy_that_ends_is_asked_until_it_is_back(proxy, top, proxima):
    terminal = top(proxy)
    terminal.until("1 of 2 servers")
    proxy.kill()
    terminal.until("LOST, and asked again")
    again = proxima(proxy.config)
    terminal.until("? help")
    until(lambda: not any("LOST" in line for line in terminal.lines()), "the new process is shown")
    assert again.admin == proxy.admin
    terminal.press("q")
    assert terminal.ended() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_it_and_the_terminal_is_given_back(proxy, top, number):
    terminal = top(proxy)
    terminal.until("1 of 2 servers")
    terminal.process.send_signal(number)
    assert terminal.ended() == 0
    assert terminal.is_restored()


def test_it_ends_with_its_terminal(proxy, top):
    terminal = top(proxy)
    terminal.until("1 of 2 servers")
    terminal.hang_up()
    terminal.process.wait(PATIENCE)


def test_colours_are_used_only_where_they_are_wanted(proxy, top):
    written = {}
    for name, value in (("TERM", "xterm-256color"), ("NO_COLOR", "1"), ("TERM", "vt100")):
        terminal = top(proxy, **{name: value})
        terminal.until("1 of 2 servers")
        written[name, value] = terminal.written
    coloured = {options for options, text in written.items() if COLOUR in text}
    assert coloured == {("TERM", "xterm-256color")}


def test_five_hundred_servers_are_scrolled_and_filtered(proxima, top):
    servers = [f"127.0.{number // 250}.{number % 250 + 1}:1" for number in range(500)]
    started = proxima(config("cache", {"cache": {"servers": servers, **POOL}}))
    terminal = top(started)
    terminal.press("2")
    terminal.until(">127.0.0.100:1")
    terminal.press("\x1b[F")
    terminal.until(">127.0.1.9:1")
    terminal.press("/0.1.77:1\r")
    lines = terminal.until("only rows with: 0.1.77:1")
    assert lines[3].startswith((">127.0.1.77:1 ", "!127.0.1.77:1 ")) and not lines[4], lines


def asked(*arguments):
    return subprocess.run(
        [BINARY, *arguments], capture_output=True, text=True, timeout=PATIENCE, env=environment()
    )


def test_one_state_is_printed_as_text_and_as_json(proxy):
    text = asked("top", "--once", "--admin", proxy.admin)
    assert (text.returncode, text.stderr) == (0, "")
    assert "health" in text.stdout and "away" in text.stdout and "Connection refused" in text.stdout
    answer = asked("top", "--once", "--json", "--admin", proxy.admin)
    assert (answer.returncode, answer.stderr) == (0, "")
    document = json.loads(answer.stdout)
    assert document["members"]["cache/away"]["state"] == "ejected"
    assert document["rates"]["requests"] >= 0, "it waits until rates are known"


def test_a_closed_pipe_is_no_failure(proxy):
    for arguments in (["top", "--json"], ["events", "-f"], ["events", "-f", "--json"]):
        command = [BINARY, *arguments, "--admin", proxy.admin]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout.readline(), arguments
            process.stdout.close()
            # The next line finds that nobody reads any more.
            proxy.write("nonsense")
            assert proxy.reload()[0] == 422
            proxy.write(proxy.config)
            assert (process.wait(PATIENCE), process.stderr.read()) == (0, b""), arguments


def test_without_a_terminal_the_remedy_is_said(proxy):
    answer = asked("top", "--admin", proxy.admin)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "`proxima top --once`" in answer.stderr and "--json" in answer.stderr
    answer = asked("top", "--once", "--admin", ports.address())
    assert answer.returncode == 1 and "nobody answers at the admin port" in answer.stderr


def test_events_tell_what_has_happened_and_go_on_behind_a_restart(proxy, proxima):
    told = asked("events", "--kind", "ejected", "--admin", proxy.admin)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.splitlines()[0].split()[2:4] == ["warn", "ejected"] and "away" in told.stdout
    unknown = asked("events", "--kind", "ejectd", "--admin", proxy.admin)
    assert unknown.returncode == 1 and "ejected" in unknown.stderr, "the known ones are listed"
    command = [BINARY, "events", "-f", "--json", "--admin", proxy.admin]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        with contextlib.closing(process.stdout):

            def next_of(kind):
                for line in process.stdout:
                    event = json.loads(line)
                    if event["kind"] == kind:
                        return event
                return None

            first = next_of("ejected")
            proxy.write("nonsense")
            assert proxy.reload()[0] == 422
            refused = next_of("refused")
            assert refused["seq"] > first["seq"]
            proxy.write(proxy.config)
            proxy.kill()
            proxima(proxy.config)
            assert next_of("configuration")["seq"] < refused["seq"], "a new process counts anew"
        process.kill()


def test_a_hot_key_is_shown_whatever_its_name_does_to_a_terminal(server, proxima, top):
    started = proxima(config("cache", {"cache": {"servers": [server.address]}}))
    terminal = top(started)
    terminal.press("4")
    with asking(started, b"get evil\x1b[2J\xff\r\n"):
        lines = terminal.until(r">evil\x1b[2J\xff")
    assert lines[1].startswith(" 1 overview") and "100.0 %" in lines[3], lines


def test_a_tap_tells_requests_and_ends_after_so_many(server, proxima):
    started = proxima(config("cache", {"cache": {"servers": [server.address]}}))
    with asking(started, b"get user:1\r\n"):
        told = asked("tap", "--prefix", "user:", "--class", "read", "--limit", "3", "--admin", started.admin)
        one = asked("tap", "--json", "--limit", "1", "--listener", "0", "--admin", started.admin)
    assert (told.returncode, told.stderr) == (0, "")
    rows = [line.split() for line in told.stdout.splitlines()]
    assert [row[1:6] for row in rows if row[0] != "(and"] == 3 * [
        [started.address, "127.0.0.1", "get", "user:1", f"cache/{server.address}"]
    ]
    assert json.loads(one.stdout.splitlines()[0])["key"] == "user:1"


class Hostile(http.server.BaseHTTPRequestHandler):
    """An admin port that sends what none should: what stands in `watch`, and then the end, which may wait."""

    watch, until_end = b"", threading.Event()

    def log_message(self, *_):
        """Tests print nothing."""

    def do_GET(self):
        body = b'{"version":1,"process":"p","next":0,"events":[]}'
        if self.path.startswith("/watch"):
            body = self.watch
        with contextlib.suppress(OSError):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)
            if self.path.startswith("/watch"):
                self.until_end.wait(PATIENCE)


@pytest.fixture
def hostile(cleanup):
    """Starts such a port."""

    def start(watch, ends=True):
        until_end = threading.Event()
        cleanup.callback(until_end.set)
        if ends:
            until_end.set()
        handler = type("Port", (Hostile,), {"watch": watch, "until_end": until_end})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cleanup.callback(server.server_close)
        cleanup.callback(server.shutdown)
        server.admin = f"127.0.0.1:{server.server_address[1]}"
        return server

    return start


def state(**more):
    document = {"version": 1, "process": {"id": "p"}, "rates": {"requests": 1.0}, **more}
    return b"event: state\ndata: " + json.dumps(document).encode() + b"\n\n"


EVIL = "a\x1b[2J\x1b]0;owned\x07\x9b31m\u202e<b>\u9375"


def test_hostile_texts_do_nothing_to_the_terminal(hostile, top):
    member = {"pool": EVIL, "name": EVIL, "state": EVIL, "why": EVIL}
    keys = [{"key": EVIL + "k" * (1 << 20), "rate": 1.0}]
    named = {EVIL: {"protocol": EVIL}}
    health = {"state": EVIL, "sentence": EVIL}
    evil = state(members={"a": member}, hot_keys={EVIL: keys}, pools=named, listeners=named, health=health)
    event = b"event: log\ndata: " + json.dumps({"seq": 1, "text": EVIL, "kind": EVIL}).encode() + b"\n\n"
    port = hostile(evil + event)
    terminal = top(port)
    shown = r"a\x1b[2J\x1b]0;owned\x07\xc2\x9b31m\xe2\x80\xae<b>"
    terminal.until(shown)
    for view in "2345":
        terminal.press(view)
        terminal.until(f"[{view} ")
        terminal.until(shown[:10])
    terminal.press("q")
    assert terminal.ended() == 0
    assert b"owned\x07" not in terminal.written and "\x9b".encode() not in terminal.written
    once = asked("top", "--once", "--admin", port.admin)
    assert shown in once.stdout and "\x1b" not in once.stdout and "\x9b" not in once.stdout


def test_five_hundred_servers_that_come_and_go_hold_up_no_key(hostile, top):
    names = [f"s{number}" for number in range(500)]

    def members(step):
        words = ("up", "ejected")
        return {name: {"name": name, "state": words[(at + step) % 2]} for at, name in enumerate(names)}

    flood = [state(members=members(0))]
    for step in range(1, 20):
        change = json.dumps({"members": members(step), "health": {"sentence": f"step {step}"}})
        flood.append(b"event: change\ndata: " + change.encode() + b"\n\n")
        for seq in range(500):
            event = {"seq": step * 500 + seq, "kind": "ejected", "subject": names[seq], "text": f"at {step}"}
            flood.append(b"event: log\ndata: " + json.dumps(event).encode() + b"\n\n")
    terminal = top(hostile(b"".join(flood), ends=False))
    terminal.press("2")
    terminal.until("[2 servers]")
    terminal.press("1")
    terminal.until("step 19")
    terminal.press("2")
    terminal.until(">s0 ")
    terminal.press("5")
    terminal.until("at 19")
    terminal.press("q")
    assert terminal.ended() == 0


@pytest.mark.parametrize(
    ("watch", "said"),
    [
        (b"event: state\ndata: {", "ended the stream"),
        (b"event: state\ndata: nonsense\n\n", "cannot be read"),
        (b"event: change\ndata: {}\n\n", "begins with a change"),
        (b"data: " + b"x" * (17 << 20), "longer than 16 MiB"),
        (b'event: end\ndata: {"why": "it ends"}\n\n', "it ends"),
    ],
    ids=["cut", "nonsense", "change first", "endless", "end"],
)
def test_a_stream_that_is_none_is_an_error_in_words(hostile, watch, said):
    answer = asked("top", "--once", "--admin", hostile(watch).admin)
    assert answer.returncode == 1 and answer.stdout == ""
    assert said in answer.stderr and answer.stderr.startswith("proxima: ")


def test_a_port_that_is_no_admin_port_is_an_error_in_words():
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            client, _ = listener.accept()
            with client:
                client.recv(100)
                client.sendall(b"ERROR\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        told = asked("events", "--admin", f"127.0.0.1:{listener.getsockname()[1]}")
        thread.join(PATIENCE)
    assert told.returncode == 1 and "does not answer as one" in told.stderr
