"""
Daemon threads at the end of the interpreter.

CPython before 3.14 ends a daemon thread that asks for the interpreter lock then. It unwinds the
stack of the thread, and a native frame on it aborts the process.
"""

import subprocess
import sys

import pytest

WORKS = {
    'a callback of spin': 'call_back(lambda executor: executor.spin())',
    'a callback of spin_once': 'call_back(lambda executor: executor.spin_once())',
    'a callback of spin_until_future_complete':
        'call_back(lambda executor: executor.spin_until_future_complete(Future()))',
    'work without the lock': 'sleep()',
}

PROGRAM = r'''
import itertools, os, sys, threading, time
import rclpy
from rclpy.clock import Clock
from rclpy.duration import Duration
from rclpy.exceptions import NotInitializedException
from rclpy.executors import SingleThreadedExecutor
from rclpy.task import Future


class Late:
    """
    Lives until the modules are gone, and lets the other thread ask for the lock then.

    That thread asks many times in this time, whatever the load.
    """

    def __del__(self, write=os.write, wait=time.sleep):
        write(1, b'late\n')
        wait(0.5)


def call_back(spin):
    def stay(calls=itertools.count(), wait=time.sleep):
        # The first calls come before the native loop.
        if next(calls) < 5:
            return
        begun.release()
        while True:
            wait(0.001)

    node = rclpy.create_node('left')
    node.create_timer(0.0, stay)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    while True:
        spin(executor)


def sleep(is_over=NotInitializedException, wait=time.sleep):
    clock, span = Clock(), Duration(nanoseconds=1_000_000)
    begun.release()
    while True:
        try:
            clock.sleep_for(span)
        except is_over:
            # The exit of the program has shut the context down. Mostly this thread still waits
            # in native code; on a loaded machine it gets the lock once more.
            wait(0.001)


# The names of this module live as long as the thread does.
sys.late = Late()
begun = threading.Semaphore(0)
rclpy.init(args=[])
threading.Thread(target=lambda: WORK, daemon=True).start()
begun.acquire()
'''


@pytest.mark.parametrize('work', WORKS)
def test_a_daemon_thread_in_native_code_does_not_abort_the_end_of_a_program(work):
    ended = subprocess.run(
        [sys.executable, '-c', PROGRAM.replace('WORK', WORKS[work])],
        capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, 'late\n', '')
