"""Zenoh peer: keys, tokens and attachments of rmw_zenoh_cpp over PyPI's eclipse-zenoh.

Written from rmw_zenoh_cpp's design document, independently of Pteros. The verbs are
`pub`, `sub`, `server`, `client`, `hostile` and `look`; README.md in the folder above
describes the lines.
"""

import argparse
import struct
import sys
import time

import xxhash
import zenoh
import zenoh.ext

STRING = (
    "std_msgs::msg::dds_::String_",
    "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18",
)
ADD_TWO_INTS = (
    "example_interfaces::srv::dds_::AddTwoInts_",
    "RIHS01_e118de6bf5eeb66a2491b5bda11202e7b68f198d6f67922cf30364858239c81a",
)
VOLATILE = "::,10:,:,:,,"
TRANSIENT_LOCAL = ":1:,10:,:,:,,"


def say(text):
    print(text, flush=True)


class Node:
    """A node with its session, and the numbers of its entities."""

    def __init__(self, arguments):
        config = zenoh.Config()
        config.insert_json5("mode", f'"{arguments.mode}"')
        config.insert_json5("connect/endpoints", f'["{arguments.endpoint}"]')
        config.insert_json5("listen/endpoints", '["tcp/127.0.0.1:0"]')
        config.insert_json5("scouting/multicast/enabled", "false")
        config.insert_json5("timestamping/enabled", "true")
        self.session = zenoh.open(config)
        self.domain = arguments.domain
        self.name = arguments.node
        self.last = 0
        self.tokens = []
        self.token("NN")

    def token(self, kind, endpoint=None):
        """Declares a token and returns its gid."""
        number = self.last
        self.last += 1
        key = f"@ros2_lv/{self.domain}/{self.session.zid()}/0/{number}/{kind}/%/%/{self.name}"
        if endpoint is not None:
            name, (type_name, type_hash), qos = endpoint
            key += f"/%{name.replace('/', '%')}/{type_name}/{type_hash}/{qos}"
        self.tokens.append(self.session.liveliness().declare_token(key))
        return xxhash.xxh3_128(key.encode()).intdigest().to_bytes(16, "little")

    def key(self, name, interface):
        type_name, type_hash = interface
        return f"{self.domain}/{name}/{type_name}/{type_hash}"


def attachment(sequence, gid, named=False):
    """The attachment, in the form of 0.2.4 and later, or with names as before."""
    stamp = time.time_ns()
    if not named:
        return struct.pack("<qqB", sequence, stamp, 16) + gid
    return (
        b"\x0fsequence_number"
        + struct.pack("<q", sequence)
        + b"\x10source_timestamp"
        + struct.pack("<q", stamp)
        + b"\x0asource_gid\x10"
        + gid
    )


def read_attachment(data):
    """Sequence number and gid."""
    sequence, _stamp, length = struct.unpack_from("<qqB", data)
    if len(data) != 33 or length != 16:
        raise ValueError(f"attachment of {len(data)} bytes")
    return sequence, data[17:]


def string(text):
    data = text.encode() + b"\0"
    return b"\x00\x01\x00\x00" + struct.pack("<I", len(data)) + data


def text_of(payload):
    if payload[:4] != b"\x00\x01\x00\x00":
        raise ValueError(f"encapsulation {payload[:4].hex()}")
    (length,) = struct.unpack_from("<I", payload, 4)
    return payload[8 : 8 + length - 1].decode()


def wait_for_reader(publisher):
    """What is published before a reader is known is lost, as everywhere."""
    for _ in range(1000):
        if publisher.matching_status.matching:
            return
        time.sleep(0.01)


def publish(node, arguments):
    key = node.key(arguments.topic, STRING)
    if arguments.durability == "transient_local":
        publisher = zenoh.ext.declare_advanced_publisher(
            node.session,
            key,
            cache=zenoh.ext.CacheConfig(max_samples=10),
            sample_miss_detection=zenoh.ext.MissDetectionConfig(sporadic_heartbeat=0.5),
            publisher_detection=True,
        )
        qos = TRANSIENT_LOCAL
    else:
        publisher = node.session.declare_publisher(key)
        qos = VOLATILE
    gid = node.token("MP", (arguments.topic, STRING, qos))
    say("ready")
    if arguments.start == "stdin":
        sys.stdin.readline()
        wait_for_reader(publisher)
    for number in range(1, arguments.count + 1):
        text = f"Hello World: {number}"
        named = arguments.attachment == "named"
        publisher.put(string(text), attachment=attachment(number, gid, named))
        say(f"sent seq={number} text={text}")
    sys.stdin.readline()


def subscribe(node, arguments):
    key = node.key(arguments.topic, STRING)
    if arguments.durability == "transient_local":
        history = zenoh.ext.HistoryConfig(detect_late_publishers=True, max_samples=10)
        subscriber = zenoh.ext.declare_advanced_subscriber(
            node.session,
            key,
            history=history,
            recovery=zenoh.ext.RecoveryConfig(heartbeat=True),
            subscriber_detection=True,
        )
        qos = TRANSIENT_LOCAL
    else:
        subscriber = node.session.declare_subscriber(key)
        qos = VOLATILE
    if arguments.token == "on":
        node.token("MS", (arguments.topic, STRING, qos))
    say("ready")
    for _ in range(arguments.count):
        sample = subscriber.recv()
        sequence, gid = read_attachment(bytes(sample.attachment))
        text = text_of(bytes(sample.payload))
        say(f"received seq={sequence} gid={gid.hex()} text={text}")
    sys.stdin.readline()


def serve(node, arguments):
    key = node.key(arguments.topic, ADD_TWO_INTS)
    queryable = node.session.declare_queryable(key, complete=True)
    node.token("SS", (arguments.topic, ADD_TWO_INTS, VOLATILE))
    say("ready")
    for _ in range(arguments.count):
        query = queryable.recv()
        data = bytes(query.attachment)
        sequence, gid = read_attachment(data)
        a, b = struct.unpack_from("<qq", bytes(query.payload), 4)
        response = b"\x00\x01\x00\x00" + struct.pack("<q", a + b)
        query.reply(key, response, attachment=attachment(sequence, gid))
        query.drop()
        del query
        say(f"served seq={sequence} a={a} b={b}")
    sys.stdin.readline()


def call(node, arguments):
    key = node.key(arguments.topic, ADD_TWO_INTS)
    querier = node.session.declare_querier(
        key,
        target=zenoh.QueryTarget.ALL_COMPLETE,
        consolidation=zenoh.ConsolidationMode.NONE,
        timeout=30,
    )
    gid = node.token("SC", (arguments.topic, ADD_TWO_INTS, VOLATILE))
    say("ready")
    if arguments.start == "stdin":
        sys.stdin.readline()
    for number in range(1, arguments.count + 1):
        request = b"\x00\x01\x00\x00" + struct.pack("<qq", number, 10 * number)
        replies = querier.get(payload=request, attachment=attachment(number, gid))
        for reply in replies:
            sample = reply.ok
            sequence, owner = read_attachment(bytes(sample.attachment))
            (total,) = struct.unpack_from("<q", bytes(sample.payload), 4)
            say(f"reply seq={sequence} own={owner == gid} sum={total}")
            break
    sys.stdin.readline()


def attack(node, arguments):
    """Announces and sends what no node of ROS 2 does."""
    key = node.key(arguments.topic, STRING)
    live = node.session.liveliness()
    zid = node.session.zid()
    begin = f"@ros2_lv/{node.domain}"
    ending = "/".join([STRING[0], STRING[1], VOLATILE])
    tokens = [
        f"{begin}/nonsense",
        f"{begin}/{zid}/0/1/XX/%/%/evil",
        f"{begin}/{zid}/x/1/MP/%/%/evil/%chatter/{ending}",
        f"{begin}/{zid}/0/99999999999999999999999/MP/%/%/evil/%chatter/{ending}",
        f"{begin}/{zid}/0/2/MP/%/%/e vil/%chatter/{ending}",
        f"{begin}/{zid}/0/3/MP/%/%/evil/%{'c' * 3000}/{ending}",
        f"{begin}/{zid}/0/4/MP/%/%/evil/%chatter/{STRING[0]}/{STRING[1]}/:::::",
        f"{begin}/{zid}/0/5/MP/%/%/evil/%chatter/{STRING[0]}/{STRING[1]}/::,x:,:,:,,",
        f"{begin}/{'f' * 40}/0/6/NN/%/%/evil",
    ]
    kept = [live.declare_token(token) for token in tokens]
    publisher = node.session.declare_publisher(key)
    gid = node.token("MP", (arguments.topic, STRING, VOLATILE))
    say("ready")
    sys.stdin.readline()
    wait_for_reader(publisher)
    good = attachment(1, gid)
    for data in [None, b"", good[:-1], good + b"x", attachment(-1, gid), attachment(-5, gid)]:
        publisher.put(string("evil"), attachment=data)
    publisher.put(b"", attachment=good)
    publisher.put(b"\x00\x01", attachment=good)
    publisher.delete()
    publisher.put(string("unknown"), attachment=attachment(1, bytes(16)))
    # Decodable by nobody: the length is a lie.
    lie = b"\x00\x01\x00\x00" + struct.pack("<I", 0xFFFFFFF0) + b"abc"
    publisher.put(lie, attachment=attachment(1, gid))
    publisher.put(string("end"), attachment=attachment(2, gid))
    say("sent")
    sys.stdin.readline()
    del kept


def look(node, _arguments):
    found = node.session.liveliness().get(f"@ros2_lv/{node.domain}/**", timeout=5)
    for reply in found:
        say(f"token {reply.ok.key_expr}")
    say("done")


VERBS = {
    "pub": publish,
    "sub": subscribe,
    "server": serve,
    "client": call,
    "hostile": attack,
    "look": look,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--mode", default="peer", choices=["peer", "client"])
    parser.add_argument("--domain", type=int, default=0)
    parser.add_argument("--node", default="zenoh_peer")
    parser.add_argument("--topic", default="chatter")
    parser.add_argument("--count", type=int, default=3)
    parser.add_argument("--durability", default="volatile")
    parser.add_argument("--attachment", default="bare", choices=["bare", "named"])
    parser.add_argument("--token", default="on", choices=["on", "off"])
    parser.add_argument("--start", default="now", choices=["now", "stdin"])
    arguments = parser.parse_args()
    node = Node(arguments)
    VERBS[arguments.verb](node, arguments)
    node.session.close()


main()
