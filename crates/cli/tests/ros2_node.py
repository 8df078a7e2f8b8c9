# A node of rclpy that serves or asks: topics, latched messages of 0 B to 8 MB, service,
# action, parameter, type description and the states of a managed node. Arguments: `serve`
# or `ask`. `ask` ends after each was answered, and says so.
import array
import sys
import threading
import time

import rclpy
from rclpy._rclpy_pybind11 import RCLError
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import GetParameters
from rclpy.action import ActionClient, ActionServer
from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String, UInt8MultiArray
from test_msgs.action import Fibonacci
from test_msgs.srv import BasicTypes
from type_description_interfaces.srv import GetTypeDescription

LIMIT = 30.0
SIZES = [0, 1, 1000, 100000, 8000000]
LATCHED = QoSProfile(depth=len(SIZES), durability=DurabilityPolicy.TRANSIENT_LOCAL)


def array_of(size):
    return array.array('B', (bytes(range(251)) * (size // 251 + 1))[:size])


def serve(node):
    publisher = node.create_publisher(String, 'words', 10)
    node.create_timer(0.1, lambda: publisher.publish(String(data='from the server')))
    latched = node.create_publisher(UInt8MultiArray, 'sizes', LATCHED)
    for size in SIZES:
        latched.publish(UInt8MultiArray(data=array_of(size)))
    node.declare_parameter('number', 42)

    def add(request, response):
        response.int64_value = request.int64_value + 1
        response.string_value = request.string_value + ' and back'
        return response

    def count(goal):
        feedback = Fibonacci.Feedback(sequence=[0, 1])
        goal.publish_feedback(feedback)
        goal.succeed()
        return Fibonacci.Result(sequence=list(range(goal.request.order)))

    node.create_service(BasicTypes, 'add', add)
    node.actions = ActionServer(node, Fibonacci, 'count', count)
    print('serving', flush=True)


def until(condition, what):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            sys.exit(f'no {what} in time')
        time.sleep(0.02)


def ask(node):
    heard = []
    node.create_subscription(String, 'words', lambda message: heard.append(message.data), 10)
    until(lambda: heard, 'message')
    print(f'topic: {heard[0]}', flush=True)

    def call(client, request):
        until(client.service_is_ready, client.srv_name)
        future = client.call_async(request)
        until(future.done, f'answer of {client.srv_name}')
        return future.result()

    client = node.create_client(BasicTypes, 'add')
    answer = call(client, BasicTypes.Request(int64_value=41, string_value='there'))
    print(f'service: {answer.int64_value} {answer.string_value}', flush=True)

    client = node.create_client(GetParameters, '/server/get_parameters')
    answer = call(client, GetParameters.Request(names=['number']))
    print(f'parameter: {answer.values[0].integer_value}', flush=True)

    feedback = []
    client = ActionClient(node, Fibonacci, 'count')
    until(client.server_is_ready, 'action server')
    goal = Fibonacci.Goal(order=5)
    future = client.send_goal_async(goal, feedback_callback=feedback.append)
    until(future.done, 'acceptance')
    future = future.result().get_result_async()
    until(future.done, 'result')
    until(lambda: feedback, 'feedback')
    print(f'action: {list(future.result().result.sequence)}', flush=True)
    until(lambda: 'server' in node.get_node_names(), 'name of the server')
    infos = node.get_publishers_info_by_topic('/words')
    print(f'info: {len(infos)} {infos[0].node_name} {infos[0].topic_type}', flush=True)

    taken = []
    node.create_subscription(UInt8MultiArray, 'sizes', taken.append, LATCHED)
    until(lambda: len(taken) == len(SIZES), 'latched messages')
    whole = all(message.data == array_of(len(message.data)) for message in taken)
    print(f'latched: {[len(message.data) for message in taken]} {whole}', flush=True)

    client = node.create_client(ChangeState, '/managed/change_state')
    transition = Transition(id=Transition.TRANSITION_CONFIGURE)
    answer = call(client, ChangeState.Request(transition=transition))
    client = node.create_client(GetState, '/managed/get_state')
    state = call(client, GetState.Request()).current_state
    print(f'lifecycle: {answer.success} {state.label}', flush=True)

    client = node.create_client(GetTypeDescription, '/server/get_type_description')
    request = GetTypeDescription.Request(type_name='std_msgs/msg/String')
    request.type_hash = str(infos[0].topic_type_hash)
    answer = call(client, request)
    described = answer.type_description.type_description
    print(f'description: {described.type_name} {described.fields[0].name}', flush=True)


def main():
    rclpy.init()
    name = {'serve': 'server', 'ask': 'asker'}[sys.argv[1]]
    node = Node(name)
    executor = MultiThreadedExecutor(4)
    executor.add_node(node)
    if name == 'server':
        executor.add_node(LifecycleNode('managed'))
        serve(node)
        try:
            executor.spin()
        except (KeyboardInterrupt, ExternalShutdownException):
            pass
        except RCLError:
            # rclpy makes a wait set even just after a signal has ended the context.
            if rclpy.ok():
                raise
        return
    thread = threading.Thread(target=executor.spin, daemon=True)
    thread.start()
    ask(node)
    print('all answered', flush=True)
    executor.shutdown()
    thread.join()
    node.destroy_node()
    rclpy.shutdown()


main()
