#!/usr/bin/env python3
"""Takes the RTPS datagrams out of capture files.

usage: extract.py CAPTURE.pcap… (writes CAPTURE.rtps here; format: README.md)

Fragmented IP packets are put together; a datagram seen twice is kept once. Of
samples sent in DATA_FRAGs only the first complete one of each writer is kept,
since ten copies of the same array prove no more than one.
"""
import pathlib
import struct
import sys


def datagrams(capture):
    """UDP datagrams of a little endian pcap file with Ethernet frames."""
    raw = pathlib.Path(capture).read_bytes()
    magic, = struct.unpack_from("<I", raw)
    link, = struct.unpack_from("<I", raw, 20)
    if magic != 0xA1B2C3D4 or link != 1:
        sys.exit(f"{capture}: not a little endian pcap file of Ethernet frames")
    at, parts = 24, {}
    while at + 16 <= len(raw):
        secs, micros, length, _ = struct.unpack_from("<IIII", raw, at)
        frame = raw[at + 16:at + 16 + length]
        at += 16 + length
        if frame[12:14] != b"\x08\x00" or frame[23] != 17:
            continue
        ip = frame[14:]
        total, ident, fragment = struct.unpack_from(">HHH", ip, 2)
        body, offset = ip[(ip[0] & 15) * 4:total], (fragment & 0x1FFF) * 8
        key = (ident, ip[12:16], ip[16:20])
        pieces = parts.setdefault(key, {})
        pieces[offset] = body
        if fragment & 0x2000:
            continue
        if sum(map(len, pieces.values())) != offset + len(body):
            continue  # a fragment is still missing
        udp = b"".join(pieces[o] for o in sorted(pieces))
        del parts[key]
        source, destination = struct.unpack_from(">HH", udp)
        yield secs * 1_000_000 + micros, (ip[12:16], source), (ip[16:20], destination), udp[8:]


def submessages(message):
    at = 20
    while at + 4 <= len(message):
        ident, flags = message[at], message[at + 1]
        order = "<" if flags & 1 else ">"
        length, = struct.unpack_from(order + "H", message, at + 2)
        if length == 0 and ident not in (0x01, 0x09):
            length = len(message) - at - 4
        yield ident, order, message[at + 4:at + 4 + length]
        at += 4 + length


def fragments(message):
    """(writer and sequence number, payload size) of each DATA_FRAG."""
    for ident, order, body in submessages(message):
        if ident == 0x16:
            sample = (message[8:20], body[8:12], struct.unpack_from(order + "iI", body, 12))
            first, count, size, total = struct.unpack_from(order + "IHHI", body, 20)
            yield sample, (first - 1) * size, min((first - 1 + count) * size, total), total


def first_samples(found):
    """Of each writer, the first sample of which all bytes were captured."""
    have, kept = {}, {}
    for _, _, _, message in found:
        for sample, start, end, total in fragments(message):
            done = have.setdefault(sample, {})
            done[start] = end
            if sum(e - s for s, e in done.items()) == total:
                kept.setdefault(sample[:2], sample)
    return set(kept.values())


for capture in map(pathlib.Path, sys.argv[1:]):
    found = [d for d in datagrams(capture) if d[3].startswith(b"RTPS")]
    kept, seen, out = first_samples(found), set(), bytearray(b"RTPSVEC1")
    for time, source, destination, message in found:
        of = {sample for sample, *_ in fragments(message)}
        if message in seen or (of and not of & kept):
            continue
        seen.add(message)
        out += struct.pack("<II", len(message), time - found[0][0])
        out += source[0] + destination[0] + struct.pack("<HH", source[1], destination[1])
        out += message
    target = pathlib.Path(__file__).parent / (capture.stem + ".rtps")
    target.write_bytes(out)
    print(f"{target.name}: {len(seen)} of {len(found)} datagrams, {len(out)} bytes")
