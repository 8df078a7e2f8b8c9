"""Zenoh peer: keys, tokens and attachments of rmw_zenoh_cpp over PyPI's eclipse-zenoh.

Written from rmw_zenoh_cpp's design document, independently of Pteros. README.md in the
folder above describes the verbs and lines.
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
FIBONACCI = "example_interfaces::action::dds_::Fibonacci_"
# The services of an action.
SEND_GOAL = (
    f"{FIBONACCI}SendGoal_",
    "RIHS01_d1a57fb2a4afe8c21e34fb10db206f16ce6729b28531141472df92277c55b557",
)
GET_RESULT = (
    f"{FIBONACCI}GetResult_",
    "RIHS01_1b0de0d5d29dc955d92f546706568428632771db13ec84c15ec1c1a59f424a57",
)
CANCEL_GOAL = (
    "action_msgs::srv::dds_::CancelGoal_",
    "RIHS01_573d8b0a534451d7bc2ac8c5ffde8ac14b8593b7001175d0cd6516dcbeb8689a",
)
# Its topics.
FEEDBACK = (
    f"{FIBONACCI}FeedbackMessage_",
    "RIHS01_c1de71afd52e49a89c53d8262366884185bc0a02f78ce051c4e46b0a7fe59bb2",
)
STATUS = (
    "action_msgs::msg::dds_::GoalStatusArray_",
    "RIHS01_6c1684b00f177d37438febe6e709fc4e2b0d4248dca4854946f9ed8b30cda83e",
)
VOLATILE = "::,10:,:,:,,"
TRANSIENT_LOCAL = ":1:,10:,:,:,,"
LAST_VALUE = ":1:,1:,:,:,,"
# The encapsulation header of CDR, little endian.
HEADER = b"\x00\x01\x00\x00"
# action_msgs/msg/GoalStatus
EXECUTING, SUCCEEDED, CANCELED = 2, 4, 5


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


class Service:
    """The server of a service."""

    def __init__(self, node, name, interface):
        self.key = node.key(name, interface)
        self.queryable = node.session.declare_queryable(self.key, complete=True)
        node.token("SS", (name, interface, VOLATILE))

    def serve(self, respond):
        """Answers the next request. `respond` gets its bytes without the header."""
        query = self.queryable.recv()
        sequence, gid = read_attachment(bytes(query.attachment))
        response = respond(bytes(query.payload)[4:])
        query.reply(self.key, HEADER + response, attachment=attachment(sequence, gid))
        query.drop()
        del query


class Client:
    """The client of a service."""

    def __init__(self, node, name, interface):
        self.querier = node.session.declare_querier(
            node.key(name, interface),
            target=zenoh.QueryTarget.ALL_COMPLETE,
            consolidation=zenoh.ConsolidationMode.NONE,
            timeout=30,
        )
        self.gid = node.token("SC", (name, interface, VOLATILE))
        self.last = 0

    def ask(self, request):
        """The bytes of the first response without the header."""
        self.last += 1
        data = attachment(self.last, self.gid)
        for reply in self.querier.get(payload=HEADER + request, attachment=data):
            sequence, gid = read_attachment(bytes(reply.ok.attachment))
            if (sequence, gid) != (self.last, self.gid):
                raise ValueError(f"the reply of {sequence}, {gid.hex()}")
            return bytes(reply.ok.payload)[4:]
        raise ValueError("no reply")


def numbers(data, at):
    """A sequence of int32, and its text."""
    (count,) = struct.unpack_from("<I", data, at)
    return ",".join(str(n) for n in struct.unpack_from(f"<{count}i", data, at + 4))


def packed(sequence):
    return struct.pack(f"<I{len(sequence)}i", len(sequence), *sequence)


def serve_action(node, arguments):
    """Goals one after the other. Every second one ends when it is canceled."""
    part = lambda name: f"{arguments.topic}/_action/{name}"
    goals = Service(node, part("send_goal"), SEND_GOAL)
    results = Service(node, part("get_result"), GET_RESULT)
    cancels = Service(node, part("cancel_goal"), CANCEL_GOAL)
    feedback = node.session.declare_publisher(node.key(part("feedback"), FEEDBACK))
    of_feedback = node.token("MP", (part("feedback"), FEEDBACK, VOLATILE))
    status = zenoh.ext.declare_advanced_publisher(
        node.session,
        node.key(part("status"), STATUS),
        cache=zenoh.ext.CacheConfig(max_samples=1),
        sample_miss_detection=zenoh.ext.MissDetectionConfig(sporadic_heartbeat=0.5),
        publisher_detection=True,
    )
    of_status = node.token("MP", (part("status"), STATUS, LAST_VALUE))
    say("ready")
    taken = []
    published = 0

    def accept(request):
        taken.append(request)
        # Padded to the time stamp's alignment.
        return struct.pack("<B3xiI", 1, 1, 2)

    for number in range(1, arguments.count + 1):
        goals.serve(accept)
        goal = taken[-1][:16]
        (order,) = struct.unpack_from("<i", taken[-1], 16)
        say(f"goal order={order}")

        def report(state):
            info = goal + struct.pack("<iIb", 1, 2, state)
            data = HEADER + struct.pack("<I", 1) + info
            status.put(data, attachment=attachment(2 * number - (state == EXECUTING), of_status))

        report(EXECUTING)
        wait_for_reader(feedback)
        sequence = [0, 1]
        while len(sequence) < order:
            sequence.append(sequence[-1] + sequence[-2])
            published += 1
            data = HEADER + goal + packed(sequence)
            feedback.put(data, attachment=attachment(published, of_feedback))
        state = SUCCEEDED
        if number % 2 == 0:
            state = CANCELED
            # The goals that are canceling: this one.
            found = struct.pack("<b3xI", 0, 1) + goal + struct.pack("<iI", 1, 2)
            cancels.serve(lambda request: found if request[:16] == goal else struct.pack("<b3xI", 2, 0))
        report(state)
        results.serve(lambda request: struct.pack("<b3x", state) + packed(sequence))
        say(f"result status={state}")
    sys.stdin.readline()


def send_goals(node, arguments):
    """Goals one after the other. It cancels every second one."""
    part = lambda name: f"{arguments.topic}/_action/{name}"
    goals = Client(node, part("send_goal"), SEND_GOAL)
    results = Client(node, part("get_result"), GET_RESULT)
    cancels = Client(node, part("cancel_goal"), CANCEL_GOAL)
    feedback = node.session.declare_subscriber(node.key(part("feedback"), FEEDBACK))
    node.token("MS", (part("feedback"), FEEDBACK, VOLATILE))
    status = zenoh.ext.declare_advanced_subscriber(
        node.session,
        node.key(part("status"), STATUS),
        history=zenoh.ext.HistoryConfig(detect_late_publishers=True, max_samples=1),
        recovery=zenoh.ext.RecoveryConfig(heartbeat=True),
        subscriber_detection=True,
    )
    node.token("MS", (part("status"), STATUS, LAST_VALUE))
    say("ready")
    if arguments.start == "stdin":
        sys.stdin.readline()
    for number in range(1, arguments.count + 1):
        goal = bytes([number]) * 16
        accepted = goals.ask(goal + struct.pack("<i", 2 + number))[0]
        say(f"goal accepted={accepted}")
        while True:
            data = bytes(feedback.recv().payload)[4:]
            if data[:16] == goal:
                break
        say(f"feedback sequence={numbers(data, 16)}")
        if number % 2 == 0:
            response = cancels.ask(goal + bytes(8))
            (found,) = struct.unpack_from("<I", response, 4)
            say(f"cancel code={response[0]} goals={found} own={response[8:24] == goal}")
        response = results.ask(goal)
        say(f"result status={response[0]} sequence={numbers(response, 4)}")
        wait_for_status(status, goal, response[0])
        say("status")
    sys.stdin.readline()


def wait_for_status(status, goal, wanted):
    """Reads the lists of goals until one has that status."""
    while True:
        data = bytes(status.recv().payload)[4:]
        (count,) = struct.unpack_from("<I", data)
        for at in range(4, 4 + 28 * count, 28):
            if data[at : at + 16] == goal and data[at + 24] == wanted:
                return


def attack_service(node, arguments):
    """Sends requests that no node of ROS 2 sends, and then one that is right."""
    key = node.key(arguments.topic, ADD_TWO_INTS)
    gid = node.token("SC", (arguments.topic, ADD_TWO_INTS, VOLATILE))
    of_publisher = node.token("MP", ("chatter", STRING, VOLATILE))
    say("ready")
    sys.stdin.readline()
    good = HEADER + struct.pack("<qq", 1, 2)
    right = attachment(1, gid)
    malformed = [
        (None, right),
        (b"", right),
        (HEADER[:2], right),
        (good, None),
        (good, b""),
        (good, right[:-1]),
        (good, right + b"x"),
        (good, attachment(-1, gid)),
    ]
    # Of nobody, and of an endpoint that is no client.
    unannounced = [(good, attachment(1, bytes(16))), (good, attachment(1, of_publisher))]
    for payload, data in [*malformed, *unannounced, (good, right)]:
        replies = node.session.get(
            key,
            target=zenoh.QueryTarget.ALL_COMPLETE,
            consolidation=zenoh.ConsolidationMode.NONE,
            payload=payload,
            attachment=data,
            timeout=30,
        )
        found = [struct.unpack_from("<q", bytes(reply.ok.payload), 4)[0] for reply in replies]
        say(f"ended sums={found}")
    sys.stdin.readline()


def attack_client(node, arguments):
    """Replies to a request as no node of ROS 2 does, and then right."""
    key = node.key(arguments.topic, ADD_TWO_INTS)
    queryable = node.session.declare_queryable(key, complete=True)
    node.token("SS", (arguments.topic, ADD_TWO_INTS, VOLATILE))
    say("ready")
    query = queryable.recv()
    sequence, gid = read_attachment(bytes(query.attachment))
    right = attachment(sequence, gid)
    good = HEADER + struct.pack("<q", 3)
    query.reply_err(b"evil")
    for payload, data in [
        (good, None),
        (good, right[:-1]),
        (good, attachment(-1, gid)),
        (b"", right),
        (HEADER[:2], right),
        (good, right),
    ]:
        query.reply(key, payload, attachment=data)
    query.drop()
    del query
    say("sent")
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


def route(arguments):
    """A router of eclipse-zenoh, which listens at the endpoint until a line comes."""
    config = zenoh.Config()
    config.insert_json5("mode", '"router"')
    config.insert_json5("listen/endpoints", f'["{arguments.endpoint}"]')
    config.insert_json5("scouting/multicast/enabled", "false")
    session = zenoh.open(config)
    say("ready")
    sys.stdin.readline()
    session.close()


VERBS = {
    "pub": publish,
    "sub": subscribe,
    "server": serve,
    "client": call,
    "action_server": serve_action,
    "action_client": send_goals,
    "hostile": attack,
    "hostile_client": attack_service,
    "hostile_server": attack_client,
    "look": look,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=[*VERBS, "router"])
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
    if arguments.verb == "router":
        return route(arguments)
    node = Node(arguments)
    VERBS[arguments.verb](node, arguments)
    node.session.close()


main()
