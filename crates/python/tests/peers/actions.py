"""Actions: every end of a goal, and wrong use."""

import threading

import rclpy
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import MultiThreadedExecutor
from rclpy.node import Node
from show import show
from test_msgs.action import Fibonacci

rclpy.init()
node, group, executor = Node('n'), ReentrantCallbackGroup(), MultiThreadedExecutor(4)
executor.add_node(node)
threading.Thread(target=executor.spin, daemon=True).start()
mode, answer, go_on, handles, feedback = 'succeed', GoalResponse.ACCEPT, threading.Event(), [], []


def wait(future):
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    done.wait(10)
    return future.result()


def execute(handle):
    handles.append(handle)
    handle.publish_feedback(Fibonacci.Feedback(sequence=[1, 2]))
    if mode in ('succeed', 'abort'):
        getattr(handle, mode)()
    elif mode == 'raise':
        raise ValueError('an error of the program')
    elif mode == 'wait':
        go_on.wait(10)
        handle.canceled() if handle.is_cancel_requested else handle.succeed()
    elif mode == 'twice':
        handle.succeed()
        show('twice', handle.abort)
    return Fibonacci.Result(sequence=[handle.request.order])


server = ActionServer(
    node, Fibonacci, 'fib', execute, callback_group=group, goal_callback=lambda _: answer,
    cancel_callback=lambda _: CancelResponse.ACCEPT)
client = ActionClient(node, Fibonacci, 'fib', callback_group=group)
print(client.wait_for_server(10), client.server_is_ready())


def send(order):
    return wait(client.send_goal_async(
        Fibonacci.Goal(order=order),
        feedback_callback=lambda one: feedback.append(list(one.feedback.sequence))))


for mode in ('succeed', 'abort', 'nothing', 'raise', 'twice'):
    goal = send(4)
    result = wait(goal.get_result_async())
    print(mode, goal.accepted, result.status, list(result.result.sequence), handles[-1].status,
          handles[-1].is_active)
print(feedback[0])
answer = GoalResponse.REJECT
print('rejected', send(1).accepted)
answer, mode = GoalResponse.ACCEPT, 'wait'
for cancels in (True, False):
    go_on.clear()
    goal = send(2)
    if cancels:
        response = wait(goal.cancel_goal_async())
        print('cancel', response.return_code, len(response.goals_canceling))
    go_on.set()
    result = wait(goal.get_result_async())
    print(result.status, list(result.result.sequence))
print('late', wait(goal.cancel_goal_async()).return_code)
mode = 'succeed'
print(client.send_goal(Fibonacci.Goal(order=9)).status)
show('type', client.send_goal_async, 3)
show('type', client.send_goal, 3)
show('no callback', ActionServer, node, Fibonacci, 'x', None)
show('name', ActionClient, node, Fibonacci, 'x y')
show('no type', ActionClient, node, int, 'x')
executor.shutdown(timeout_sec=5)
rclpy.shutdown()
