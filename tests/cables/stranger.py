#!/usr/bin/python3
"""Someone on a cable who does not know the secret.

stranger.py record INTERFACE PORT SECONDS FILE     writes the packets that arrive into a file, one per line, in hexadecimal
stranger.py flood INTERFACE PORT SECONDS FILE      sends random bytes, the recorded packets, whole and changed, and reflects what arrives, as fast as it can
Each prints "ready" first, and flood the number of packets sent last.
"""
import pathlib
import random
import socket
import sys
import time


def opened(interface, port):
    end = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
    end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)
    end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
    end.bind(("::", port))
    return end


def arrived(end, seconds):
    end.settimeout(seconds)
    try:
        return end.recvfrom(65536)[0]
    except (TimeoutError, BlockingIOError):
        return None


def record(end, until, path):
    with open(path, "w", encoding="ascii") as file:
        while time.monotonic() < until:
            if (packet := arrived(end, 0.05)) is not None:
                file.write(packet.hex() + "\n")


def changed(packet, chance):
    bytes_ = bytearray(packet)
    for _ in range(chance.randint(1, 4)):
        bytes_[chance.randrange(len(bytes_))] = chance.randrange(256)
    return bytes(bytes_[:chance.randint(1, len(bytes_))]) if chance.random() < 0.3 else bytes(bytes_)


def flood(end, until, path, to):
    chance = random.Random(1)
    old = [bytes.fromhex(line) for line in pathlib.Path(path).read_text().split()]
    sent = 0
    while time.monotonic() < until:
        for _ in range(50):
            way = chance.randrange(3)
            packet = chance.randbytes(chance.randint(0, 1400)) if way == 0 else chance.choice(old)
            try:
                end.sendto(changed(packet, chance) if way == 1 else packet, to)
                sent += 1
            except OSError:
                pass  # the queue is full
        while (packet := arrived(end, 0)) is not None:
            end.sendto(packet, to)
    print(sent)


if __name__ == "__main__":
    action, name, udp, seconds, path = sys.argv[1:]
    socket_end, last = opened(name, int(udp)), time.monotonic() + float(seconds)
    print("ready", flush=True)
    if action == "record":
        record(socket_end, last, path)
    else:
        flood(socket_end, last, path, ("ff02::1", int(udp), 0, socket.if_nametoindex(name)))
