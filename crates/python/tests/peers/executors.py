"""Executors, own executors, services and callback groups."""

import threading

import rclpy
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from show import show
from std_msgs.msg import String
from test_msgs.srv import BasicTypes, Empty

MEMBERS = (
    'can_execute', 'wait_for_ready_callbacks', '_wait_for_ready_callbacks', '_make_handler',
    '_take_timer', '_take_subscription', '_take_service', '_take_client', '_take_guard_condition',
    'spin_once', 'add_node', 'remove_node', 'create_task', 'get_nodes',
    'spin_once_until_future_complete', '_spin_once_impl')


def override(base, name, log):
    def member(self, *args, **kwargs):
        log.add(name)
        return getattr(base, name)(self, *args, **kwargs)

    return type('Own', (base,), {name: member})


def serve(request, response):
    seen.add('service')
    response.int32_value = request.int32_value * 2
    return response


rclpy.init()
for base in (SingleThreadedExecutor, MultiThreadedExecutor):
    for name in MEMBERS:
        log, seen = set(), set()
        executor, node = override(base, name, log)(), Node('n')
        executor.add_node(node)
        node.create_timer(0.01, lambda: seen.add('timer'))
        node.create_subscription(String, 'x', lambda _: seen.add('subscription'), 10)
        node.create_service(BasicTypes, 'double', serve)
        guard = node.create_guard_condition(lambda: seen.add('guard'))
        publisher = node.create_publisher(String, 'x', 10)
        client = node.create_client(BasicTypes, 'double')
        client.wait_for_service()
        publisher.publish(String())
        guard.trigger()
        future = client.call_async(BasicTypes.Request(int32_value=21))
        executor.create_task(lambda: seen.add('task'))
        for _ in range(1000):
            executor.spin_once(timeout_sec=0.1)
            if len(seen) == 5 and future.done():
                break
        executor.spin_until_future_complete(future, timeout_sec=1)
        print(base.__name__, name, sorted(seen), future.result().int32_value, log)
        executor.remove_node(node)
        node.destroy_node()
        executor.shutdown(timeout_sec=1)


async def wait(future, number):
    order.append((number, await future))


node, executor, order = Node('n'), SingleThreadedExecutor(), []
print(executor.add_node(node), executor.add_node(node), node.executor is executor)
show('time-out', executor.spin_once, timeout_sec=0.01)
show('time-out', executor.wait_for_ready_callbacks, timeout_sec=0.01)
task = executor.create_task(lambda a, b: (a, b), 1, b=2)
executor.spin_until_future_complete(task, 1)
print(task.result())
task = executor.create_task(lambda: 1 / 0)
show('raises', executor.spin_until_future_complete, task, 1)
show('raises', task.result)
future = Future()
tasks = [executor.create_task(wait, future, number) for number in range(3)]
for _ in range(5):
    executor.spin_once(timeout_sec=0.01)
print(order)
future.set_result('r')
for task in tasks:
    executor.spin_until_future_complete(task, 1)
print(sorted(order))
show('cancelled', lambda: (future.cancel(), executor.spin_until_future_complete(future, 1)))
timer = node.create_timer(0.005, lambda: 1 / 0)
show('timer', lambda: [executor.spin_once(timeout_sec=1) for _ in range(20)])
node.destroy_timer(timer)

seen = set()
service, client = node.create_service(Empty, 'e', serve), node.create_client(Empty, 'e')
show('type', client.call_async, 3)
show('type', client.call, 3)
print(client.wait_for_service(5), client.service_is_ready())
node.destroy_service(service)
double = node.create_service(BasicTypes, 'b', serve)
caller = node.create_client(BasicTypes, 'b')
caller.wait_for_service()
thread = threading.Thread(target=executor.spin)
thread.start()
print(caller.call(BasicTypes.Request(int32_value=4)).int32_value)
executor.shutdown()
thread.join()
print(executor.get_nodes())

exclusive, reentrant = MutuallyExclusiveCallbackGroup(), ReentrantCallbackGroup()
one, other = Future(), Future()
for entity in (one, other):
    exclusive.add_entity(entity)
    reentrant.add_entity(entity)
print(exclusive.can_execute(one), exclusive.beginning_execution(one), exclusive.can_execute(other),
      exclusive.beginning_execution(other), exclusive.ending_execution(one),
      exclusive.can_execute(other), reentrant.beginning_execution(one),
      reentrant.beginning_execution(one), exclusive.has_entity(one))
rclpy.shutdown()
show('again', rclpy.shutdown)
print(rclpy.try_shutdown(), rclpy.ok())
