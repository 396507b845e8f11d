"""What joins two unix datagram sockets, such as those of a board and its gateway, and does something to their frames."""
import os
import select
import socket
import threading


class Wire:
    """ends: for each side the path of the wire's socket, and that of the other end. A derived class has carry(side, frame)."""

    def __init__(self, ends):
        self.sockets, self.others = [], [str(other) for _, other in ends]
        for path, _ in ends:
            if os.path.exists(path):
                os.remove(path)
            self.sockets.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            self.sockets[-1].bind(str(path))
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.ended.is_set():
            for ready in select.select(self.sockets, [], [], 0.05)[0]:
                self.carry(self.sockets.index(ready), ready.recv(65536))

    def send(self, side, frame):
        """Sends what came from this side on to the other."""
        try:
            self.sockets[1 - side].sendto(frame, self.others[1 - side])
        except OSError:
            pass  # the receiver has not started, or has ended

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        for each in self.sockets:
            each.close()
