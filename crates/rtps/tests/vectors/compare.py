#!/usr/bin/env python3
"""Holds the .expected lists against what tshark reads in the same datagrams.

usage: compare.py [SCENARIO…] (needs tshark; exits 1 when anything differs)

Compared are: the number of submessages of each kind, the participants, the
endpoints with topic, type, reliability, durability and user data, and the
samples by writer and sequence number.
"""
import collections
import pathlib
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

HERE = pathlib.Path(__file__).parent
KINDS = {
    "01": "PAD", "06": "ACKNACK", "07": "HEARTBEAT", "08": "GAP", "09": "INFO_TS", "0c": "INFO_SRC",
    "0e": "INFO_DST", "0f": "INFO_REPLY", "12": "NACK_FRAG", "13": "HEARTBEAT_FRAG", "15": "DATA",
    "16": "DATA_FRAG", "30": "SEC_BODY", "31": "SEC_PREFIX", "32": "SEC_POSTFIX", "33": "SRTPS_PREFIX",
    "34": "SRTPS_POSTFIX", "80": "0x80",
}
RELIABILITY = {"0x00000001": "best-effort", "0x00000002": "reliable"}
DURABILITY = {None: "Volatile", "0x00000000": "Volatile", "0x00000001": "TransientLocal"}
FIELDS = {
    "rtps.sm.wrEntityId": ("writer", "value"), "rtps.sm.seqNumber": ("sequence", "show"),
    "rtps.param.status_info": ("status", "value"), "rtps.param.endpoint_guid": ("endpoint", "value"),
    "rtps.param.participant_guid": ("participant", "value"), "rtps.param.topicName": ("topic", "show"),
    "rtps.param.typeName": ("type", "show"), "rtps.reliability_kind": ("reliability", "show"),
    "rtps.durability": ("durability", "show"), "rtps.param.userData": ("user_data", "value"),
    "rtps.data.serialize_data": ("payload", "value"), "rtps.issueData": ("payload", "value"),
}


def write_pcap(scenario, target):
    """The datagrams as IP packets without frames (link type 101)."""
    raw = (HERE / f"{scenario}.rtps").read_bytes()
    out, at = bytearray(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 101)), 8
    while at < len(raw):
        length, micros = struct.unpack_from("<II", raw, at)
        source_port, destination_port = struct.unpack_from("<HH", raw, at + 16)
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 28 + length, 0, 0, 64, 17, 0) + raw[at + 8:at + 16]
        ip += struct.pack(">HHHH", source_port, destination_port, 8 + length, 0)
        ip += raw[at + 20:at + 20 + length]
        out += struct.pack("<IIII", micros // 1_000_000, micros % 1_000_000, len(ip), len(ip)) + ip
        at += 20 + length
    target.write(out)
    target.flush()


def submessages(scenario):
    """Every submessage as tshark reads it."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as pcap:
        write_pcap(scenario, pcap)
        # Port 7000, which Fast DDS likes for unique readers, is taken for another protocol's.
        command = ["tshark", "-r", pcap.name, "-T", "pdml", "--disable-protocol", "rx",
                   "-o", "rtps.enable_rtps_reassembly:FALSE"]
        text = subprocess.run(command, check=True, capture_output=True).stdout
    for protocol in xml.fromstring(text).iter("proto"):
        if protocol.get("name") != "rtps":
            continue
        prefix, found = None, []
        for field in protocol.iter("field"):
            name = field.get("name")
            if name == "rtps.guidPrefix" and prefix is None:
                prefix = field.get("value")
            elif name == "rtps.sm.id":
                found.append({"prefix": prefix, "id": field.get("value")[:2]})
            elif name in FIELDS and found:
                key, attribute = FIELDS[name]
                found[-1].setdefault(key, field.get(attribute))
        yield from found


def by_tshark(scenario):
    counts, participants, endpoints, samples = collections.Counter(), set(), {}, set()
    for one in submessages(scenario):
        counts[KINDS.get(one["id"], one["id"])] += 1
        if one["id"] != "15" or "status" in one:
            continue
        if one["writer"] == "000100c2" and "participant" in one:
            participants.add(one["participant"][:24])
        elif "endpoint" in one and "topic" in one:
            endpoints[one["endpoint"]] = (
                one["topic"], one["type"], RELIABILITY.get(one.get("reliability")),
                DURABILITY.get(one.get("durability")), bytes.fromhex(one.get("user_data", "")).decode())
        elif int(one["writer"], 16) & 0xC0 == 0 and "payload" in one:
            samples.add((one["prefix"], one["writer"], one["sequence"]))
    return dict(counts), participants, endpoints, samples


def by_us(scenario):
    counts, participants, endpoints, samples = {}, set(), {}, set()
    for line in (HERE / f"{scenario}.expected").read_text().splitlines():
        kind, *words = line.split()
        plain = words[0].replace(".", "").replace("|", "")
        if kind == "submessages":
            counts[words[0]] = int(words[1])
        elif kind == "participant":
            participants.add(plain)
        elif kind in ("writer", "reader"):
            endpoints[plain] = (*words[1:5], line.split(' data "')[1][:-1])
        elif kind == "sample":
            samples.add((plain[:24], plain[24:], words[1][1:]))
    return counts, participants, endpoints, samples


def main():
    scenarios = sys.argv[1:] or sorted(path.stem for path in HERE.glob("*.rtps"))
    differences = 0
    for scenario in scenarios:
        theirs, ours = by_tshark(scenario), by_us(scenario)
        for what, a, b in zip(("submessages", "participants", "endpoints", "samples"), theirs, ours):
            if a != b:
                differences += 1
                a, b = (set(x.items()) if isinstance(x, dict) else x for x in (a, b))
                print(f"{scenario} {what}: only tshark {sorted(a - b)[:3]}, only ours {sorted(b - a)[:3]}")
        print(f"{scenario}: {sum(theirs[0].values())} submessages, {len(theirs[1])} participants, "
              f"{len(theirs[2])} endpoints, {len(theirs[3])} samples")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
