#!/usr/bin/python3
"""A remote shell over TCP, for hosts of lab.py whose cables break: as with ssh, the command lives on its host, and its bytes cross the cable.

remote.py serve                                  on each host: runs the commands of its neighbours, until its input ends
remote.py [OPTIONS] ADDRESS%INTERFACE COMMAND    the remote shell
"""
import contextlib
import os
import selectors
import socket
import subprocess
import sys
import threading

PORT = 29760


def copy(source, sink):
    """Copies to the end of a file descriptor or a socket, and passes the end on."""
    try:
        while data := source():
            sink(data)
    except OSError:
        pass


def handle(connection):
    """A command, and then its input; back come its output, and at the end of that nothing more."""
    with connection, connection.makefile("rb") as lines:
        command = lines.readline().decode().rstrip("\n")
        with subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True) as process:
            def feed():
                copy(lambda: lines.read1(65536), lambda data: (process.stdin.write(data), process.stdin.flush()))
                process.stdin.close()
            threading.Thread(target=feed, daemon=True).start()
            copy(lambda: os.read(process.stdout.fileno(), 65536), connection.sendall)
            process.stdout.close()
            with contextlib.suppress(OSError):  # the neighbour is gone
                connection.shutdown(socket.SHUT_WR)


def serve():
    server = socket.create_server(("::", PORT), family=socket.AF_INET6)
    print("ready", flush=True)
    with selectors.DefaultSelector() as selector:
        selector.register(server, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        while all(key.fileobj is server for key, _ in selector.select()):
            threading.Thread(target=handle, args=(server.accept()[0],), daemon=True).start()
    os._exit(0)


def main(words):
    if words == ["serve"]:
        return serve()
    while words[0].startswith("-"):
        words = words[2 if words[0] == "-o" else 1:]
    address, _, interface = words[0].partition("%")
    with socket.socket(socket.AF_INET6) as connection:
        connection.settimeout(3)
        connection.connect((address, PORT, 0, socket.if_nametoindex(interface)))
        connection.settimeout(None)
        connection.sendall((" ".join(words[1:]) + "\n").encode())

        def send():
            copy(lambda: os.read(0, 65536), connection.sendall)
            connection.shutdown(socket.SHUT_WR)
        threading.Thread(target=send, daemon=True).start()
        copy(lambda: connection.recv(65536), lambda data: os.write(1, data))
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
