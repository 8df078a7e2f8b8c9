"""A node of rclpy for `cargo xtask ros2 --soak`: the same as soak.cpp, see mod.rs."""

import struct
import sys
import threading

import rclpy
from example_interfaces.action import Fibonacci
from example_interfaces.srv import AddTwoInts
from rclpy.action import ActionClient, ActionServer
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import MultiArrayDimension, String, UInt8MultiArray

FRAME_BYTES = 200_000
TICK = 0.1
# Ticks between frames, goals, and changes of the inner node.
FRAME, GOAL = 10, 10
# rclpy leaks 20 KB and more for each node that was destroyed, on each middleware. So
# this process replaces its inner node less often than those of rclcpp.
INNER = 100
# Requests without an answer at once, see soak.cpp.
PENDING_MAX = 3

KEEP_ALL = QoSProfile(history=HistoryPolicy.KEEP_ALL, reliability=ReliabilityPolicy.RELIABLE)
stopping, ending = threading.Event(), threading.Event()


def say(line):
    print(line, flush=True)


class Sequences:
    """The last number of each source of a topic. Numbers of a source have no gap."""

    def __init__(self, topic):
        self.topic = topic
        self.last = {}

    def add(self, source, number):
        before = self.last.get(source)
        if before is not None and number != before + 1:
            say(f"lost {self.topic} of {source}: {number} came after {before}")
        self.last[source] = number

    def report(self):
        for source, number in self.last.items():
            say(f"got {self.topic} {source} {number}")


class Soak(Node):
    def __init__(self, name, peer, is_guest):
        super().__init__(name)
        self.name, self.is_guest, self.is_reported = name, is_guest, False
        self.numbers, self.frames = Sequences("numbers"), Sequences("frames")
        self.ticks = self.numbers_sent = self.frames_sent = self.calls = self.goals = 0
        self.pending_calls = self.pending_goals = 0
        self.inner = None
        self.number_publisher = self.create_publisher(String, "/soak/numbers", KEEP_ALL)
        self.frame_publisher = self.create_publisher(UInt8MultiArray, "/soak/frames", KEEP_ALL)
        self.create_subscription(String, "/soak/numbers", self.read_number, KEEP_ALL)
        self.create_subscription(UInt8MultiArray, "/soak/frames", self.read_frame, KEEP_ALL)
        self.create_service(AddTwoInts, f"/soak/{name}/add", self.add)
        # rclpy keeps results for 15 min, rclcpp for 10 s. Their memory must not count as growth.
        self.action = ActionServer(
            self, Fibonacci, f"/soak/{name}/fibonacci", self.execute, result_timeout=10
        )
        self.adder = self.create_client(AddTwoInts, f"/soak/{peer}/add")
        self.fibonacci = ActionClient(self, Fibonacci, f"/soak/{peer}/fibonacci")
        self.create_timer(TICK, self.tick)

    def read_number(self, message):
        source, number = message.data.split(" ")
        self.numbers.add(source, int(number))

    def read_frame(self, message):
        (number,) = struct.unpack_from("<Q", message.data)
        label = message.layout.dim[0].label
        rest = message.data[8:]
        if len(message.data) != FRAME_BYTES or any(one != number % 256 for one in rest[::997]):
            say(f"lost frames of {label}: {number} is damaged")
        self.frames.add(label, number)

    def add(self, request, response):
        response.sum = request.a + request.b
        return response

    def execute(self, goal):
        feedback = Fibonacci.Feedback()
        sequence = [0, 1]
        for at in range(goal.request.order):
            sequence.append(sequence[at] + sequence[at + 1])
            feedback.sequence = sequence
            goal.publish_feedback(feedback)
        goal.succeed()
        return Fibonacci.Result(sequence=sequence)

    def tick(self):
        self.ticks += 1
        if self.is_guest and self.calls and self.goals and self.numbers.last and self.frames.last:
            raise ExternalShutdownException
        if not stopping.is_set():
            if not self.is_guest:
                self.numbers_sent += 1
                self.number_publisher.publish(String(data=f"{self.name} {self.numbers_sent}"))
                if self.ticks % FRAME == 0:
                    self.publish_frame()
            self.call()
            if self.ticks % GOAL == 0:
                self.send_goal()
            if self.ticks % INNER == 0:
                self.change_inner_node()
        elif not self.pending_calls and not self.pending_goals:
            if not self.is_reported:
                self.is_reported = True
                say(f"sent numbers {self.numbers_sent}")
                say(f"sent frames {self.frames_sent}")
                say(f"answered calls {self.calls}")
                say(f"answered goals {self.goals}")
            if self.ticks % GOAL == 0:
                self.numbers.report()
                self.frames.report()
        if ending.is_set():
            raise ExternalShutdownException

    def publish_frame(self):
        self.frames_sent += 1
        frame = UInt8MultiArray()
        frame.layout.dim = [MultiArrayDimension(label=self.name)]
        rest = bytes([self.frames_sent % 256]) * (FRAME_BYTES - 8)
        frame.data = struct.pack("<Q", self.frames_sent) + rest
        self.frame_publisher.publish(frame)

    def call(self):
        if not self.adder.service_is_ready() or self.pending_calls >= PENDING_MAX:
            return
        self.pending_calls += 1
        request = AddTwoInts.Request(a=self.ticks, b=7)

        def answered(future):
            self.pending_calls -= 1
            self.calls += 1
            if future.result().sum != request.a + 7:
                say(f"lost calls of {self.name}: a wrong sum")

        self.adder.call_async(request).add_done_callback(answered)

    def send_goal(self):
        if not self.fibonacci.server_is_ready() or self.pending_goals:
            return
        self.pending_goals += 1

        def ended(future):
            self.pending_goals -= 1
            self.goals += 1
            if len(future.result().result.sequence) != 12:
                say(f"lost goals of {self.name}: a wrong result")

        def accepted(future):
            future.result().get_result_async().add_done_callback(ended)

        goal = Fibonacci.Goal(order=10)
        self.fibonacci.send_goal_async(goal).add_done_callback(accepted)

    def change_inner_node(self):
        """Replaces a second node of this process, with an endpoint of each kind."""
        if self.inner is not None:
            self.inner.destroy_node()
        self.inner = rclpy.create_node(f"{self.name}_inner")
        self.inner.create_publisher(String, "/soak/inner", 10)
        self.inner.create_subscription(String, "/soak/inner", lambda _: None, 10)
        self.inner.create_service(AddTwoInts, f"/soak/{self.name}/inner", self.add)
        self.inner.create_client(AddTwoInts, f"/soak/{self.name}/inner")


def read_input():
    for line in sys.stdin:
        {"stop": stopping, "end": ending}[line.strip()].set()


def main():
    words = sys.argv[1:]
    is_guest = words[0] == "--guest"
    name, peer = words[-2:]
    if not is_guest:
        threading.Thread(target=read_input, daemon=True).start()
    rclpy.init()
    node = Soak(name, peer, is_guest)
    say("ready")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        executor.spin()
    except ExternalShutdownException:
        pass
    if node.inner is not None:
        node.inner.destroy_node()
    node.destroy_node()
    rclpy.shutdown()
    say("guest done" if is_guest else "ended")


main()
