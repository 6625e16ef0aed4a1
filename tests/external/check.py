"""Runs the program of this folder as its users would: on a capture, and between two hosts as root.

check.py PROGRAM FOLDER    FOLDER takes the files that it writes
"""

import ast
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
here = pathlib.Path(__file__).parent
TOO_MANY = "synlimit.too_many"


def run(*arguments, status=0):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done


def on_a_capture():
    scan = folder / "scan.pcap"
    run("gen", "--traffic", "attack", "--attack", "scan", "--packets", "40k", "--output", scan)
    config = here / "synlimit.toml"
    summaries = []
    for lanes in 1, 8:
        done = run("run", config, "--input", scan, "--lanes", lanes, "--json")
        summaries.append(json.loads(done.stdout))
    one, eight = summaries
    assert one["invariants"] == eight["invariants"] == "ok"
    for field in "received", "sent", "dropped":
        assert one[field] == eight[field], (field, one[field], eight[field])
    for counter in "synlimit_opened", "synlimit_refused", "monitor_packets":
        assert one["functions"][counter] == eight["functions"][counter], (one, eight)
    refused = one["dropped"][TOO_MANY]
    assert refused > 1_000 and refused == one["functions"]["synlimit_refused"], one
    assert one["functions"]["synlimit_opened"] > 0
    text = run("run", config, "--input", scan).stdout
    assert f"{refused} {TOO_MANY}: The host has opened as many TCP connections" in text, text
    print(f"capture: {refused} of {one['received']} packets dropped for {TOO_MANY}, on 1 lane as on 8")


def bench():
    """What a chain with the function of this program costs: nothing is asserted about how much."""
    text = (here / "synlimit.toml").read_text().replace("connections = 10", "connections = 1000000")
    config = folder / "bench.toml"
    config.write_text(text.replace('"outside"', '"inside"'))
    load = "--flows", "1k", "--spread", "uniform", "--lanes", "1", "--windows", "1", "--window", "10ms", "--json"
    rows = [json.loads(line) for line in run("bench", "nf", "--config", config, *load).stdout.splitlines()]
    assert [row["chain"] for row in rows[1:]] == ["monitor+firewall+synlimit"], rows
    assert rows[1]["ns_per_packet"] > 0, rows
    wrong = run("bench", "nf", "--chain", "firewall+synlimt", *load, status=2).stderr
    assert "synlimit" in wrong and "monitor" in wrong, wrong
    print("bench: a row of monitor+firewall+synlimit")


def mistakes():
    wrong = folder / "wrong.toml"
    text = (here / "synlimit.toml").read_text()
    text = text.replace('connections = 10', 'conections = 10').replace('"1h"', "10").replace('"outside"', '"outsid"')
    wrong.write_text(text)
    found = json.loads(run("check", wrong, "--offline", "--json", status=2).stdout)["diagnostics"]
    messages = [diagnostic["message"] for diagnostic in found]
    assert len(found) == 4, messages
    for part in "unknown key `conections`", "has no `connections`", "`window` must be", "`outsid` is not a value":
        assert any(part in message for message in messages), (part, messages)
    text = run("check", wrong, "--offline", status=2).stderr
    assert "did you mean `connections`?" in text and "wrong.toml:" in text, text
    assert run("--version").stdout.startswith("synlimit 1.0.0 (rheostat "), "the version"
    print("mistakes: all four, each with its place")


def compiler_messages():
    """Programs with the mistakes of newcomers do not compile, and the message names the fix."""
    sources = [path for path in sorted((here / "mistakes").glob("*.rs")) if "fn main" in path.read_text()]
    assert len(sources) >= 4, sources
    for source in sources:
        expected = [line[len("//! - ") :] for line in source.read_text().splitlines() if line.startswith("//! - ")]
        assert expected, source
        command = ["cargo", "check", "--quiet", "--features", "mistakes", "--bin", source.stem]
        done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=600)
        # The compiler breaks no line.
        missing = [text for text in expected if text not in done.stderr]
        assert done.returncode != 0 and not missing, (source.stem, missing, done.stderr)
    print(f"compiler: {len(sources)} programs with mistakes, each with its fix")


def ip(*words):
    subprocess.run(["ip", *words], check=True)


CONNECT = """
import socket, sys
done = 0
for number in range(15):
    end = socket.socket()
    # A segment that is sent again opens a connection, too.
    end.settimeout(3 if number < 10 else 0.3)
    try:
        end.connect(("10.77.0.2", 7))
        done += 1
    except OSError:
        pass
    finally:
        end.close()
print(done)
"""

LISTEN = """
import socket
end = socket.create_server(("10.77.0.2", 7), backlog=64)
print("listening", flush=True)
while True:
    end.accept()[0].close()
"""


def between_hosts():
    if os.geteuid() != 0:
        print("hosts: not run (needs root)")
        return
    names = [f"ext-{host}-{os.getpid()}" for host in ("client", "server")]
    started = []
    try:
        for number, name in enumerate(names):
            ip("netns", "add", name)
            ip("link", "add", f"ext{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"ext{number}", "up")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "address", "add", f"10.77.0.{number + 1}/24", "dev", "eth0")
            # Checksums are complete on a link.
            subprocess.run(["ip", "netns", "exec", name, "ethtool", "-K", "eth0", "tx", "off"], capture_output=True)
        config, control = folder / "hosts.toml", folder / "synlimit.sock"
        config.write_text(
            '[run]\nuser = "nobody"\n'
            '[[device]]\nname = "lan"\nkind = "af_packet"\ninterface = "ext0"\nside = "inside"\n'
            '[[device]]\nname = "wan"\nkind = "af_packet"\ninterface = "ext1"\nside = "outside"\n'
            '[chain]\nfunctions = ["monitor", "synlimit"]\n'
            '[function.synlimit]\nconnections = 10\nwindow = "1h"\n'
        )
        netns = lambda name: ["ip", "netns", "exec", name, sys.executable, "-c"]
        server = subprocess.Popen([*netns(names[1]), LISTEN], stdout=subprocess.PIPE, text=True)
        started.append(server)
        assert server.stdout.readline() == "listening\n"
        own = subprocess.Popen(
            [program, "run", config, "--control", control, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append(own)
        deadline = time.monotonic() + 30
        while not control.exists():
            assert own.poll() is None, own.stderr.read()
            assert time.monotonic() < deadline, "no control socket"
            time.sleep(0.05)
        client = subprocess.run([*netns(names[0]), CONNECT], capture_output=True, text=True, timeout=60)
        assert 1 <= int(client.stdout) <= 10, (client.stdout, client.stderr)
        state = json.loads(run("status", "--control", control, "--json").stdout)
        assert state["dropped"][TOO_MANY] >= 5, state
        counts = state["functions"]
        assert counts["synlimit_opened"] == 10 and counts["synlimit_refused"] >= 5, state
        assert counts["monitor_other_packets"] > 0 and "missing_shards" not in state, state
        text = run("status", "--control", control).stdout
        assert "synlimit_opened 10" in text, text
        threads = pathlib.Path(f"/proc/{own.pid}/task").iterdir()
        for thread in threads:
            fields = dict(line.split(":\t", 1) for line in (thread / "status").read_text().splitlines() if ":\t" in line)
            assert int(fields["CapEff"], 16) == 0 and fields["Uid"].split()[1] != "0", (thread, fields["CapEff"])
        own.send_signal(signal.SIGINT)
        out, errors = own.communicate(timeout=60)
        assert own.returncode == 0, (own.returncode, errors)
        summary = json.loads(out)
        assert summary["invariants"] == "ok" and summary["functions"]["synlimit_opened"] == 10, summary
        assert summary["dropped"][TOO_MANY] == summary["functions"]["synlimit_refused"] >= 5, summary
        print(f"hosts: {client.stdout.strip()} of 15 connections made, {summary['dropped'][TOO_MANY]} packets dropped for {TOO_MANY}")
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
            process.wait()
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def ask(address, port, question, replies):
    with socket.create_connection((address, port), timeout=30) as end:
        end.sendall(question)
        reader = end.makefile("rb")
        return [reader.readline() for _ in range(replies)]


def serve(started, *arguments):
    """The program while it serves, and where it listens."""
    own = subprocess.Popen([program, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    started.append(own)
    line = own.stdout.readline()
    assert line.startswith("listening "), (line, own.stderr.read() if own.poll() is not None else "")
    return own, line.split()[1].rpartition(":")


def end(own):
    own.send_signal(signal.SIGINT)
    out, errors = own.communicate(timeout=60)
    assert own.returncode == 0, (own.returncode, errors)
    return json.loads(out.splitlines()[-1])


QUESTION, REPLIES = b"a\nb\na\nc\na\n", [b"1\n", b"1\n", b"2\n", b"no counter is left\n", b"3\n"]
COUNTERS = {"counted": 4, "counters": 2}


def link_of_clients(name):
    ip("link", "add", "ext0", "type", "veth", "peer", "name", "eth0", "netns", name)
    ip("link", "set", "ext0", "up")
    ip("-n", name, "link", "set", "eth0", "up")
    ip("-n", name, "address", "add", "10.78.0.2/24", "dev", "eth0")
    subprocess.run(["ip", "netns", "exec", name, "ethtool", "-K", "eth0", "tx", "off"], capture_output=True)


def ask_from(name):
    client = "import socket; end = socket.create_connection(('10.78.0.1', 7000), timeout=30); "
    client += f"end.sendall({QUESTION!r}); reader = end.makefile('rb'); print([reader.readline() for _ in range(5)])"
    command = ["ip", "netns", "exec", name, sys.executable, "-c", client]
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip()


def own_scheduler(started, name):
    """A scheduler of its own serves by flag and by configuration, and its name is among those that mistakes list."""
    flags = ["--device", "lan=af_packet:ext0", "--address", "10.78.0.1/24", "--port", 7000, "--counters", 2, "--json"]
    own, _ = serve(started, "serve", "counter", "--scheduler", "front", "--share-cores", *flags)
    # Lines of one connection are with several workers at a time, so which name gets which count is open.
    replies = ast.literal_eval(ask_from(name))
    assert len(replies) == 5 and all(reply.endswith(b"\n") for reply in replies), replies
    summary = end(own)
    assert summary["requests"] == 5 and summary["unanswered"] == 0 and summary["violations"] == [], summary
    assert summary["application"]["counters"] == 2, summary
    text = (here / "counter.toml").read_text()
    config = folder / "front.toml"
    config.write_text(text.replace("counters = 2", 'counters = 2\nscheduler = "frnt"'))
    (wrong,) = json.loads(run("check", config, "--offline", "--json", status=2).stdout)["diagnostics"]
    assert "`frnt` is not a value of `scheduler`" in wrong["message"] and "`front`" in json.dumps(wrong), wrong
    config.write_text(text.replace("counters = 2", 'counters = 2\nscheduler = "front"'))
    assert "port 7000; front;" in run("check", config, "--offline").stdout, "the scheduler of the description"
    assert "dispatcher-D:A, front]" in " ".join(run("serve", "counter", "--help").stdout.split()), "help lists the scheduler"
    print("own scheduler: serves over a link")


def own_interface(started, name):
    """A kind of device of its own serves as those that come along, and is opened anew when its interface returns."""
    flags = ["--device", "lan=wire:ext0", "--address", "10.78.0.1/24", "--port", 7000, "--counters", 2, "--json"]
    own, _ = serve(started, "serve", "counter", *flags)
    assert ask_from(name) == str(REPLIES)
    summary = end(own)
    assert summary["requests"] == 5 and summary["violations"] == [], summary
    text = (here / "counter.toml").read_text().replace("af_packet", "wire")
    config, control = folder / "wire.toml", folder / "wire.sock"
    config.write_text(text.replace('interface = "ext0"', 'interface = "ext0"\non_loss = "wait"'))
    found = run("check", config, "--offline").stdout
    assert "wire at ext0, waited for when lost" in found, found
    own, _ = serve(started, "run", config, "--control", control, "--json")
    assert ask_from(name) == str(REPLIES)
    ip("link", "delete", "ext0")
    link = lambda: json.loads(run("status", "--control", control, "--json").stdout)["links"][0]
    until(lambda: link()["vanished"] == 1, "the interface is gone")
    link_of_clients(name)
    until(lambda: link()["returned"] == 1, "the interface is back")
    again = ask_from(name)
    assert again == str([b"4\n", b"2\n", b"5\n", b"no counter is left\n", b"6\n"]), again
    summary = end(own)
    assert summary["requests"] == 10 and summary["violations"] == [], summary
    print("own kind of device: serves over a link, which was deleted and returned")


def until(condition, what):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def a_service():
    """Over the kernel's sockets, without privileges, and as root from a configuration over a link."""
    started = []
    name = f"ext-clients-{os.getpid()}"
    try:
        control = folder / "host.sock"
        flags = ["--device", "lan=host:127.0.0.1", "--port", 0, "--counters", 2, "--control", control, "--json"]
        own, (_, _, port) = serve(started, "serve", "counter", *flags)
        assert ask("127.0.0.1", int(port), QUESTION, 5) == REPLIES
        state = json.loads(run("status", "--control", control, "--json").stdout)
        assert state["service"]["requests"] == 5 and state["application"] == COUNTERS, state
        text = run("status", "--control", control).stdout
        assert text.startswith("TCP       by the kernel, for ") and "own       counted 4" in text, text
        refused = run("connections", "--control", control, status=2).stderr
        assert "the kernel does TCP for this service" in refused, refused
        busy = folder / "busy.toml"
        busy.write_text(f'[[device]]\nname = "lan"\nkind = "host"\naddress = "127.0.0.1"\n[serve]\nservice = "counter"\nport = {port}\n')
        (wrong,) = json.loads(run("check", busy, "--json", status=2).stdout)["diagnostics"]
        assert f"127.0.0.1:{port} is in use" in wrong["message"] and (wrong["key"], wrong["line"]) == ("serve.port", 7), wrong
        run("stop", "--control", control)
        out, errors = own.communicate(timeout=60)
        assert own.returncode == 0 and not control.exists(), (own.returncode, errors)
        summary = json.loads(out.splitlines()[-1])
        assert summary["requests"] == 5 and summary["tcp_by"] == "kernel" and summary["violations"] == [], summary
        assert summary["application"] == COUNTERS, summary
        found = run("check", here / "counter.toml", "--offline").stdout
        assert "counter, counters 2, port 7000" in found, found
        if os.geteuid() != 0:
            print("service: over the kernel's sockets; not over a link (needs root)")
            return
        ip("netns", "add", name)
        link_of_clients(name)
        control = folder / "counter.sock"
        own, _ = serve(started, "run", here / "counter.toml", "--control", control, "--json")
        client = "import socket; end = socket.create_connection(('10.78.0.1', 7000), timeout=30); "
        client += f"end.sendall({QUESTION!r}); reader = end.makefile('rb'); print([reader.readline() for _ in range(5)], flush=True); input()"
        asking = subprocess.Popen(
            ["ip", "netns", "exec", name, sys.executable, "-c", client], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(asking)
        answer = asking.stdout.readline().strip()
        assert answer == str(REPLIES), answer
        listed = json.loads(run("connections", "--control", control, "--state", "established", "--json").stdout)
        assert len(listed) == 1 and "7000" in json.dumps(listed[0]), listed
        state = json.loads(run("status", "--control", control, "--json").stdout)
        assert state["service"]["requests"] == 5 and state["application"] == COUNTERS, state
        text = run("status", "--control", control).stdout
        assert "own       counted 4" in text, text
        asking.communicate("\n", timeout=30)
        summary = end(own)
        assert summary["requests"] == 5 and summary["violations"] == [], summary
        assert summary["application"] == COUNTERS, summary
        print("service: 5 requests over the kernel's sockets, and 5 over a link")
        own_scheduler(started, name)
        own_interface(started, name)
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
            process.wait()
        subprocess.run(["ip", "netns", "delete", name], capture_output=True)


on_a_capture()
bench()
mistakes()
compiler_messages()
between_hosts()
a_service()
