"""Stands between relay-mesh and a harness, and kills somebody after a number of frames.

    frame_gate.py FOLDER PROGRAM ARGUMENTS…

The file FOLDER/armed says after how many frames from now on, and who: `harness`, or process ids. It is renamed to `killed`
before anybody is. Frames are lines of standard input and output, or messages of a WebSocket if the program is to listen at
one.
"""

import os
import signal
import socket
import subprocess
import sys
import threading

FOLDER, PROGRAM, WORDS = sys.argv[1], sys.argv[2], sys.argv[3:]
ARMED, KILLED = os.path.join(FOLDER, "armed"), os.path.join(FOLDER, "killed")
LISTEN = next((at for at, word in enumerate(WORDS) if word.startswith("unix://")), None)
lock, count = threading.Lock(), 0


def passed():
    """Counts a frame that was passed on."""
    global count
    with lock:
        try:
            with open(ARMED) as armed:
                at, *victims = armed.read().split()
        except (OSError, ValueError):
            count = 0
            return
        count += 1
        if count < int(at):
            return
        os.rename(ARMED, KILLED)
        for victim in victims:
            try:
                os.kill(child.pid if victim == "harness" else int(victim), signal.SIGKILL)
            except ProcessLookupError:
                # It has ended with another one already.
                pass
        if "harness" in victims:
            os.kill(os.getpid(), signal.SIGKILL)


def lines(source, target):
    for line in iter(source.readline, b""):
        target.write(line)
        target.flush()
        passed()
    target.close()


def exactly(source, number):
    data = b""
    while len(data) < number:
        more = source.recv(number - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def messages(source, target):
    try:
        greeting = b""
        while not greeting.endswith(b"\r\n\r\n"):
            greeting += exactly(source, 1)
        target.sendall(greeting)
        while True:
            head = exactly(source, 2)
            length = head[1] & 0x7F
            further = exactly(source, {126: 2, 127: 8}.get(length, 0))
            length = int.from_bytes(further, "big") if further else length
            mask = exactly(source, 4) if head[1] & 0x80 else b""
            target.sendall(head + further + mask + exactly(source, length))
            if head[0] & 0x80 and head[0] & 0x0F < 3:
                passed()
    except (EOFError, OSError):
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def connections(path, real):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    while True:
        ours, _ = listener.accept()
        theirs = socket.socket(socket.AF_UNIX)
        try:
            theirs.connect(os.path.realpath(real))
        except OSError:
            ours.close()
            continue
        threading.Thread(target=messages, args=(ours, theirs), daemon=True).start()
        threading.Thread(target=messages, args=(theirs, ours), daemon=True).start()


if LISTEN is None:
    child = subprocess.Popen([PROGRAM, *WORDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    threading.Thread(target=lines, args=(sys.stdin.buffer, child.stdin), daemon=True).start()
    reader = threading.Thread(target=lines, args=(child.stdout, sys.stdout.buffer), daemon=True)
    reader.start()
else:
    path = WORDS[LISTEN].removeprefix("unix://")
    WORDS[LISTEN] += ".real"
    child = subprocess.Popen([PROGRAM, *WORDS])
    reader = None
    threading.Thread(target=connections, args=(path, path + ".real"), daemon=True).start()
for name in (signal.SIGTERM, signal.SIGINT):
    signal.signal(name, lambda number, _: child.send_signal(number))
code = child.wait()
if reader:
    reader.join()
sys.exit(code if code >= 0 else 128 - code)
