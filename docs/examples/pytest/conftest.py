"""One server for the whole run, and an isolated sandbox for each test."""

import json
import os
import re
import subprocess
import time
import urllib.request

import pytest


def send(method, url, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, method=method), timeout=10) as answer:
        return answer.read()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    ready = tmp_path_factory.mktemp("serve") / "ready"
    program = os.environ.get("CONFORMANT", "conformant")
    process = subprocess.Popen([program, "serve", "--ready-file", ready, "--exit-with-parent"], stdout=subprocess.DEVNULL)
    until = time.monotonic() + 30
    while not ready.exists():
        assert process.poll() is None and time.monotonic() < until, "serve does not begin"
        time.sleep(0.05)
    yield ready.read_text().strip()
    process.terminate()
    process.wait()


@pytest.fixture
def world(server, request):
    """The address of a new sandbox, which is deleted afterwards."""
    base = f"{server}/_world/{re.sub('[^A-Za-z0-9_-]', '-', request.node.name)[:64]}"
    send("POST", f"{base}/_control/reset")
    yield base
    send("DELETE", base)


@pytest.fixture
def script(world):
    """Says what calls get: script("chat/create-service", "429:1", calls="1")."""
    return lambda on, answer, calls="1": send("POST", f"{world}/_control/script", {"on": on, "answer": answer, "calls": calls})
