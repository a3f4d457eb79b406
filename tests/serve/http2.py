"""HTTP/2 frame by frame, for what no client sends: trailers that look like headers, silence, halves of messages."""
import struct

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK, PADDED, HAS_PRIORITY = 1, 4, 1, 8, 32


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def fields(*pairs):
    """HPACK: literals that no table keeps."""
    block = b""
    for name, value in pairs:
        assert len(name) < 127 and len(value) < 127
        block += b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
    return block


class Http2:
    def __init__(self, server, settings=()):
        self.socket = server.connect()
        self.file = self.socket.makefile("rb")
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *one) for one in settings)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def head(self, stream, path, *more, verb="POST", end=False):
        self.socket.sendall(frame(HEADERS, END_HEADERS | end * END_STREAM, stream, fields(
            (":method", verb), (":scheme", "http"), (":path", path), (":authority", "localhost"), *more)))

    def data(self, stream, data, end=False):
        self.socket.sendall(frame(DATA, end * END_STREAM, stream, data))

    def trailers(self, stream, *pairs):
        self.socket.sendall(frame(HEADERS, END_HEADERS | END_STREAM, stream, fields(*pairs)))

    def receive(self):
        """(kind, flags, stream, payload), or None when the server has closed."""
        head = self.file.read(9)
        if len(head) < 9:
            return None
        n = int.from_bytes(head[:3], "big")
        return head[3], head[4], int.from_bytes(head[5:9], "big"), self.file.read(n)

    def until(self, wanted, stream):
        """The first such frame, None if the server closes before."""
        while (got := self.receive()) and got[::2][:2] != (wanted, stream):
            if got[0] == SETTINGS and not got[1] & ACK:
                self.socket.sendall(frame(SETTINGS, ACK, 0))
        return got

    def answer(self, stream):
        """Whether its status is 200, and its body."""
        ok = self.until(HEADERS, stream)[3][0] == 0x88
        body = b""
        while True:
            _, flags, _, part = self.until(DATA, stream)
            body += part
            if flags & END_STREAM:
                return ok, body
