"""Ogg pages, one packet each (RFC 3533)."""

import struct
import zlib

FIRST, LAST = 2, 4  # page flags
SERIAL = 0x74757474  # constant, so that the same speech gives the same bytes
REVERSED_BITS = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


class OggStream:
    """Numbers the pages of one logical stream and adds their checksums."""

    def __init__(self) -> None:
        self._n_pages = 0

    def page(self, packet: bytes, *, granule: int, flags: int = 0) -> bytes:
        """The page of this packet; `granule` is the stream's length up to its end, at 48 kHz."""
        n_full, rest = divmod(len(packet), 255)
        if n_full >= 255:
            raise ValueError(f"a packet of {len(packet)} bytes does not fit into one Ogg page")
        lacing = b"\xff" * n_full + bytes([rest])
        head = struct.pack("<4sBBqII", b"OggS", 0, flags, granule, SERIAL, self._n_pages)
        tail = bytes([len(lacing)]) + lacing + packet
        self._n_pages += 1
        return head + struct.pack("<I", checksum(head + bytes(4) + tail)) + tail


def checksum(page: bytes) -> int:
    """Ogg's CRC-32: zlib's polynomial with the bit order reversed, initial value zero, not inverted."""
    reversed_crc = zlib.crc32(page.translate(REVERSED_BITS), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{reversed_crc:032b}"[::-1], 2)
