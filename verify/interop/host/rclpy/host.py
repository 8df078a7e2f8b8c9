"""Program of ROS 2's rclpy for `pteros lab`: the options and lines of host.h, of its
verbs pub, sub, intra, meet and nodes. Other verbs and loans are unsupported (exit 5).
Further verbs: `serve` and `call` (round trips of a service), `callbacks` (the cost of an
empty callback). Further values of --type: image, cloud, tf (into a tf2_ros.Buffer), clock
(ten timers in simulated time).

RMW_IMPLEMENTATION names the middleware below it. Nodes have rclpy's default options,
and the main thread spins a SingleThreadedExecutor. `pub` and `intra` publish from it.
Its --executor has the value single alone.
"""

import array
import os
import struct
import sys
import time

UNSUPPORTED, USAGE, LATE = 5, 2, 3
VERBS = ("pub", "sub", "intra", "meet", "nodes", "serve", "call", "callbacks")
CHOICES = {
    "--type": ("bytes", "string", "image", "cloud", "tf", "clock"),
    "--history": ("keep_last", "keep_all"),
    "--reliability": ("reliable", "best_effort"),
    "--durability": ("volatile", "transient_local"),
    "--loan": ("no", "yes"),
    "--lock-memory": ("no", "yes"),
    "--serialize": ("no", "yes"),
    "--wait": ("block", "poll"),
    "--executor": ("single",),
}
NUMBERS = {
    "--size": 64, "--count": 1000, "--warmup": 100, "--rate": 0, "--depth": 10, "--deadline": 0,
    "--settle": 200, "--subscribers": 1, "--nodes": 1, "--first": 0, "--of": 1, "--timeout": 20,
}
TEXTS = {"--topic": "host", "--to": "host_on", "--samples": ""}
SIZE_MIN = 32
SIM_TIMERS, SIM_PERIOD_S = 10, 0.01


def fail(code, text):
    print(text, file=sys.stderr, flush=True)
    os._exit(code)


def parse(words):
    if not words or len(words) % 2 == 0:
        fail(USAGE, "usage: VERB [--OPTION VALUE]..., see verify/interop/README.md")
    if words[0] not in VERBS:
        fail(UNSUPPORTED, f"unsupported: the program of rclpy has no verb {words[0]}")
    options = {**NUMBERS, **TEXTS, **{name: values[0] for name, values in CHOICES.items()}}
    for name, value in zip(words[1::2], words[2::2]):
        if name not in options:
            fail(USAGE, f"{name}: no such option")
        if name in CHOICES and value not in CHOICES[name]:
            fail(USAGE, f"{name} {value}: expected {' or '.join(CHOICES[name])}")
        if name in NUMBERS and not value.isdigit():
            fail(USAGE, f"{name} {value}: expected a number")
        options[name] = int(value) if name in NUMBERS else value
    for name, value in (("--type", "string"), ("--loan", "yes"), ("--lock-memory", "yes")):
        if options[name] == value:
            fail(UNSUPPORTED, f"unsupported: the program of rclpy has no {name} {value}")
    options["--size"] = max(options["--size"], SIZE_MIN)
    return words[0], options


def say(text):
    print(text, flush=True)


class Traffic:
    """What was sent and received, and when; nanoseconds of the monotonic clock."""

    def __init__(self, options):
        self.options = options
        self.total = options["--warmup"] + options["--count"]
        self.goal = self.total
        self.sent = self.last = self.last_at = self.lost = self.torn = 0
        self.took, self.all = [], []
        self.start = self.end = None
        self.path = "none"

    def next(self):
        self.sent += 1
        return self.sent, time.monotonic_ns()

    def receive(self, data, path):
        now = time.monotonic_ns()
        if len(data) != self.options["--size"]:
            self.torn += 1
            return
        number, stamp = struct.unpack_from("=QQ", data, 0)
        if struct.unpack_from("=Q", data, len(data) - 8)[0] != number:
            self.torn += 1
            return
        self.take(number, stamp, now, path)

    def take(self, number, stamp, now, path):
        warmup = self.options["--warmup"]
        self.path = path
        if number > warmup and self.options["--samples"]:
            self.all.append((number - warmup, now - stamp))
        if number <= self.last:
            return
        self.lost += number - self.last - 1
        self.last, self.last_at = number, now
        if number > warmup:
            self.start = self.start or moment()
            self.took.append(now - stamp)
        if number == self.total:
            self.end = moment()

    def is_over(self):
        return self.last >= self.goal

    def report(self):
        if self.options["--samples"]:
            with open(self.options["--samples"], "w", encoding="ascii") as file:
                file.write("sequence,latency_ns\n")
                file.writelines(f"{number},{took}\n" for number, took in self.all)
        took = sorted(self.took) or [0]
        end = self.end or (self.last_at, moment()[1])
        start = self.start or end
        at = lambda share: took[min(len(took) * share // 100, len(took) - 1)] / 1e3
        lost = self.lost + self.total - self.last
        say(f"took count={len(self.took)} min={at(0):.3f} p50={at(50):.3f} p95={at(95):.3f} "
            f"p99={at(99):.3f} max={at(100):.3f} lost={lost} torn={self.torn} "
            f"{since(start, end)} path={self.path}")


class Data:
    """A message with a field `data` of bytes, which carry number and time."""

    def __init__(self, cls, options, **fields):
        self.type = cls
        self.message = cls(**fields)
        self.message.data = array.array("B", bytes(options["--size"]))

    def fill(self, number, stamp):
        data = self.message.data
        struct.pack_into("=QQ", data, 0, number, stamp)
        struct.pack_into("=Q", data, len(data) - 8, number)

    def listen(self, node, topic, qos, traffic, path):
        received = lambda message: traffic.receive(message.data, path)
        return node.create_subscription(self.type, topic, received, qos)


class Transforms:
    """One transform per message, into a Buffer. The translation carries number and time."""

    def __init__(self):
        from geometry_msgs.msg import TransformStamped
        from tf2_msgs.msg import TFMessage

        self.type = TFMessage
        transform = TransformStamped(child_frame_id="base")
        transform.header.frame_id = "map"
        transform.transform.rotation.w = 1.0
        self.message = TFMessage(transforms=[transform])

    def fill(self, number, stamp):
        transform = self.message.transforms[0]
        transform.header.stamp.sec, transform.header.stamp.nanosec = divmod(stamp, 10**9)
        transform.transform.translation.x = float(number)
        transform.transform.translation.y = float(stamp)

    def listen(self, node, topic, qos, traffic, path):
        from tf2_ros import Buffer, TransformListener

        class Measured(Buffer):
            def set_transform(self, transform, authority):
                super().set_transform(transform, authority)
                at = transform.transform.translation
                traffic.take(int(at.x), int(at.y), time.monotonic_ns(), path)

        return TransformListener(Measured(), node)


class Clock:
    """Simulated time that is the monotonic clock's. Timers tell how late they are."""

    def __init__(self):
        from rosgraph_msgs.msg import Clock as Message

        self.type, self.message = Message, Message()

    def fill(self, number, stamp):
        self.message.clock.sec, self.message.clock.nanosec = divmod(stamp, 10**9)

    def listen(self, node, topic, qos, traffic, path):
        from rclpy.parameter import Parameter

        node.set_parameters([Parameter("use_sim_time", value=True)])
        clock = node.get_clock()

        def fire():
            now = time.monotonic_ns()
            traffic.total = traffic.last + 2
            traffic.goal = 1 << 62
            traffic.take(traffic.last + 1, clock.now().nanoseconds, now, path)
            traffic.total = traffic.last

        return [node.create_timer(SIM_PERIOD_S, fire) for _ in range(SIM_TIMERS)]


def carrier(options):
    what = options["--type"]
    if what == "tf":
        return Transforms()
    if what == "clock":
        return Clock()
    if what == "image":
        from sensor_msgs.msg import Image
        return Data(Image, options, encoding="mono8", height=1, width=options["--size"])
    if what == "cloud":
        from sensor_msgs.msg import PointCloud2
        return Data(PointCloud2, options, height=1, width=options["--size"], point_step=1)
    from std_msgs.msg import UInt8MultiArray
    return Data(UInt8MultiArray, options)


def moment():
    return time.monotonic_ns(), time.process_time_ns()


def since(start, end):
    return f"wall_ms={(end[0] - start[0]) / 1e6:.3f} cpu_ms={(end[1] - start[1]) / 1e6:.3f}"


class Program:
    def __init__(self, verb, options):
        # After the options, because rclpy takes a while to import.
        import rclpy
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
        from rclpy.duration import Duration

        rclpy.init(args=[])
        self.verb, self.options, self.traffic = verb, options, Traffic(options)
        self.create_node = rclpy.create_node
        try:
            self.carrier = carrier(options)
        except ImportError as error:
            fail(UNSUPPORTED, f"unsupported: {error}")
        self.path = rclpy.get_rmw_implementation_identifier()
        self.executor = SingleThreadedExecutor()
        self.qos = QoSProfile(
            depth=options["--depth"],
            history=getattr(HistoryPolicy, options["--history"].upper()),
            reliability=getattr(ReliabilityPolicy, options["--reliability"].upper()),
            durability=getattr(DurabilityPolicy, options["--durability"].upper()),
        )
        if options["--deadline"]:
            self.qos.deadline = Duration(nanoseconds=options["--deadline"] * 1_000_000)
        self.publishers, self.subscriptions = [], []

    def node(self, number):
        node = self.create_node(f"host_{os.getpid()}_{number}")
        self.executor.add_node(node)
        return node

    def add(self, node, out, into):
        if out:
            self.publishers.append(node.create_publisher(self.carrier.type, out, self.qos))
        if into:
            self.subscriptions.append(
                self.carrier.listen(node, into, self.qos, self.traffic, self.path))

    def publish(self):
        number, stamp = self.traffic.next()
        self.carrier.fill(number, stamp)
        self.publishers[-1].publish(self.carrier.message)
        return time.monotonic_ns() - stamp

    def spin_until(self, moment_ns, is_over=lambda: False):
        while not is_over():
            left = moment_ns - time.monotonic_ns()
            if left <= 0:
                return
            self.executor.spin_once(timeout_sec=left / 1e9)

    def wait_matched(self, readers, writers, until):
        def matched():
            of_writer = self.publishers[-1].get_subscription_count() if self.publishers else readers
            of_reader = self.subscriptions[-1].get_publisher_count() if self.subscriptions else writers
            return of_writer >= readers and of_reader >= writers

        while not matched():
            if time.monotonic_ns() >= until:
                fail(LATE, f"not matched with {readers} and {writers} in time")
            self.spin_until(time.monotonic_ns() + 4_000_000)

    def run(self):
        options, topic = self.options, self.options["--topic"]
        if self.verb == "nodes":
            for index in range(options["--first"], options["--first"] + options["--nodes"]):
                of = max(options["--of"], 1)
                name = lambda number: f"{topic}_node{number % of}"
                self.add(self.node(index), name(index), name(index + 1))
            say("ready")
            self.executor.spin()
            return
        until = time.monotonic_ns() + options["--timeout"] * 10**9
        flow = {"tf": "/tf", "clock": "/clock"}.get(options["--type"], f"{topic}_flow")
        node = self.node(0)
        if self.verb in ("serve", "call", "callbacks"):
            return getattr(self, self.verb)(node, f"{topic}_service", until)
        self.add(node, flow if self.verb != "sub" else None, None)
        if self.verb != "pub":
            # Two nodes share a composed process.
            self.add(self.node(1) if self.verb == "intra" else node, None, flow)
        say("ready")
        if self.verb == "meet":
            self.wait_matched(options["--of"], options["--of"], until)
            say(f"met at={time.monotonic_ns()}")
        elif self.verb == "sub":
            self.listen(until)
        else:
            self.wait_matched(options["--subscribers"], 1, until)
            self.spin_until(time.monotonic_ns() + options["--settle"] * 1_000_000)
            if self.verb == "intra":
                return self.inside(until)
            self.send()
        # The other side may still need a retransmission.
        self.executor.spin()

    def serve(self, node, name, until):
        from std_srvs.srv import Trigger

        self.service = node.create_service(Trigger, name, lambda request, response: response)
        say("ready")
        self.executor.spin()

    def call(self, node, name, until):
        from std_srvs.srv import Trigger

        client, traffic = node.create_client(Trigger, name), self.traffic
        while not client.service_is_ready():
            if time.monotonic_ns() >= until:
                fail(LATE, "the service is not there in time")
            self.spin_until(time.monotonic_ns() + 4_000_000)
        for _ in range(traffic.total):
            number, stamp = traffic.next()
            future = client.call_async(Trigger.Request())
            # spin_until_future_complete of ROS 2's rclpy keeps its finished tasks, so each
            # call of it takes longer than the one before.
            while not future.done():
                if time.monotonic_ns() >= until:
                    fail(LATE, f"request {number} was not answered in time")
                self.executor.spin_once(timeout_sec=10)
            traffic.take(number, stamp, time.monotonic_ns(), self.path)
        traffic.report()

    def callbacks(self, node, name, until):
        total = self.traffic.total

        class Over(Exception):
            """Enough callbacks."""

        count = 0

        def called():
            nonlocal count
            count += 1
            if count == total:
                raise Over

        def loop():
            while True:
                called()

        def timed(run):
            nonlocal count
            count = 0
            begin = time.monotonic_ns()
            try:
                run()
            except Over:
                return (time.monotonic_ns() - begin) / total / 1e3
            return fail(LATE, "the executor ended")

        # A timer of period 0 is always due.
        node.create_timer(0.0, called)
        spun = timed(self.executor.spin)
        say(f"callbacks count={total} overhead={spun - timed(loop):.3f}")

    def paced(self):
        begin, rate = time.monotonic_ns(), self.options["--rate"]
        for number in range(self.traffic.total):
            if rate:
                self.spin_until(begin + number * 10**9 // rate)
            yield number

    def send(self):
        start, took = moment(), []
        for number in self.paced():
            if number == self.options["--warmup"]:
                start = moment()
            took.append(self.publish())
        took = sorted(took[self.options["--warmup"]:]) or [0]
        say(f"sent count={self.options['--count']} {since(start, moment())} "
            f"publish={took[len(took) // 2] / 1e3:.3f}")

    def inside(self, until):
        for number in self.paced():
            self.traffic.goal = number + 1
            self.publish()
            self.spin_until(until, self.traffic.is_over)
            if not self.traffic.is_over():
                fail(LATE, f"message {number + 1} did not come")
        self.traffic.report()

    def listen(self, until):
        """Ends with the last message, or after a while without any."""
        least = 1 if self.options["--reliability"] == "best_effort" else 3
        quiet = max(least, 3 / self.options["--rate"] if self.options["--rate"] else 0) * 1e9
        before = -1
        while before != self.traffic.last or (before == 0 and time.monotonic_ns() < until):
            before = self.traffic.last
            self.spin_until(time.monotonic_ns() + int(quiet), self.traffic.is_over)
            if self.traffic.is_over():
                break
        self.traffic.report()


def main():
    verb, options = parse(sys.argv[1:])
    if verb == "nodes" and options["--nodes"] == 0:
        say("ready")
        while True:
            time.sleep(3600)
    Program(verb, options).run()


main()
