"""Interface packages that have definition files and no Python modules.

Each test runs a program of its own, because a process loads a package once.
"""

import os
import subprocess
import sys
import textwrap

import pytest


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(program, **variables):
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    environment.setdefault('PTEROS_INTERFACE_PATH', '')
    done = subprocess.run(
        [sys.executable, '-c', textwrap.dedent(program)], env=environment,
        capture_output=True, text=True, timeout=60)
    return done


def passes(program, **variables):
    done = run(program, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def workspace(tmp_path):
    write(tmp_path, {
        'arm_msgs/msg/Joint.msg': 'string name "elbow"\nfloat64 angle  # rad\nuint8 LEFT=1\n',
        'arm_msgs/msg/Arm.msg': 'std_msgs/Header header\nJoint[] joints\nhand_msgs/Grip grip\n',
        'arm_msgs/srv/Move.srv': 'Arm target\n---\nbool success\n',
        'arm_msgs/action/Reach.action': 'Arm goal\n---\nbool done\n---\nfloat32 distance\n',
        'hand_msgs/msg/Grip.msg': 'uint8[<=5] fingers\n',
    })
    return tmp_path


ALL = '''\
# Two of "them".
# And more.

uint8 LIMIT=7  # of all
float64[2] ends [0.5, -1]  # [m]
Joint[2] joints
int32[<=4] numbers [1, 2]
string<=9 text "a \'b"
wstring wide
string[] names ["x", "y,z"]
bool flag true
byte[] data
'''

PROGRAM = '''
    import rclpy
    from arm_msgs.msg import Arm, Joint
    from arm_msgs.srv import Move
    from arm_msgs.action import Reach
    from hand_msgs.msg import Grip
    from rclpy.serialization import deserialize_message, serialize_message
    assert Joint.LEFT == 1 and Joint().name == 'elbow'
    arm = Arm(joints=[Joint(angle=1.5)], grip=Grip(fingers=b'123'))
    assert deserialize_message(serialize_message(arm), Arm) == arm
    assert Move.Request().target == Arm()
    assert Reach.Feedback(distance=0.5).distance == 0.5
    from arm_msgs.msg._arm import Arm as again
    assert again is Arm
    print(Arm.__module__)
'''


def test_packages_in_a_folder_of_the_variable(workspace):
    assert passes(PROGRAM, PTEROS_INTERFACE_PATH=workspace) == 'arm_msgs.msg._arm\n'


def test_definitions_converted_to_idl_have_the_same_hashes(workspace):
    from rosidl_adapter import convert_to_idl
    write(workspace, {'arm_msgs/msg/All.msg': ALL})
    idl = workspace / 'idl'
    for package in ('arm_msgs', 'hand_msgs'):
        for file in (workspace / package).glob('*/*'):
            folder = workspace / package
            written = convert_to_idl(folder, package, file.relative_to(folder), idl / package)
            assert written == idl / package / file.parent.name / f'{file.stem}.idl'
    program = '''
        from pteros import _native
        from arm_msgs.msg import All
        print(All().numbers, All().text, All.LIMIT, All().flag, All().ends)
        for name in ('msg/Arm', 'msg/All', 'srv/Move_Request', 'action/Reach_Feedback'):
            print(_native.get_type_hash(_native.get_message_class(f'arm_msgs/{name}')))
    '''
    # The first of the path wins, and an IDL file comes after a definition file.
    hashes = passes(program, PTEROS_INTERFACE_PATH=idl)
    assert hashes == passes(program, PTEROS_INTERFACE_PATH=workspace) and 'RIHS01_' in hashes
    text = (idl / 'arm_msgs' / 'msg' / 'All.idl').read_text()
    for part in ('typedef arm_msgs__msg__Joint arm_msgs__msg__Joint__2[2];',
                 'const uint8 LIMIT = 7;', '@unit (value="m")', 'sequence<int32, 4> numbers;',
                 '"Two of \\"them\\"." "\\n"\n      "And more.")', 'string<9> text;'):
        assert part in text, part


def test_packages_of_an_ament_prefix(workspace):
    prefix = workspace / 'prefix'
    prefix.mkdir()
    for name in ('arm_msgs', 'hand_msgs'):
        (prefix / 'share' / name).parent.mkdir(exist_ok=True)
        (workspace / name).rename(prefix / 'share' / name)
    passes(PROGRAM, AMENT_PREFIX_PATH=prefix)


def test_python_packages_that_ship_definitions(workspace):
    (workspace / 'arm_msgs' / '__init__.py').write_text('VERSION = 3\n')
    path = f'{workspace}{os.pathsep}{os.environ.get("PYTHONPATH", "")}'
    passes(f'{PROGRAM}\n    import arm_msgs\n    assert arm_msgs.VERSION == 3', PYTHONPATH=path)


def test_modules_of_a_package_are_its_attributes(workspace):
    """Nothing has imported them, as where a program has `import std_msgs` alone."""
    passes('''
        import rclpy
        import arm_msgs
        import hand_msgs
        import std_msgs
        import std_srvs
        assert std_msgs.msg.Bool().data is False
        assert std_srvs.srv.Trigger.Request() is not None
        assert arm_msgs.action.Reach.Goal() is not None
        assert hand_msgs.msg.Grip is arm_msgs.msg.Arm().grip.__class__
        for package, name in ((std_msgs, 'srv'), (hand_msgs, 'action'), (arm_msgs, 'other')):
            assert not hasattr(package, name), name
    ''', PTEROS_INTERFACE_PATH=workspace)


def test_the_implementation_is_there_after_the_import_of_rclpy_alone():
    passes('''
        import rclpy
        from rclpy.logging import get_logger
        profile = rclpy.impl.implementation_singleton.rclpy_implementation.rmw_qos_profile_t
        values = profile.predefined('qos_profile_sensor_data').to_dict()
        assert rclpy.qos.QoSProfile(**values) == rclpy.qos.qos_profile_sensor_data
        assert not hasattr(rclpy.impl, 'nothing')
    ''')


def test_a_folder_that_is_one_package(workspace):
    write(workspace, {'source-tree/package.xml': '<package><name>leg_msgs</name></package>',
                      'source-tree/msg/Leg.msg': 'int32 toes 5\n'})
    passes('''
        import rclpy
        from leg_msgs.msg import Leg
        assert Leg().toes == 5
    ''', PTEROS_INTERFACE_PATH=workspace / 'source-tree')


def test_a_package_comes_before_rclpy_by_the_hook(workspace):
    passes('''
        import _pteros_import_hook
        _pteros_import_hook.install()
        from hand_msgs.msg import Grip
        import rclpy
        assert list(Grip().fingers) == []
    ''', PTEROS_INTERFACE_PATH=workspace)


def test_a_node_sends_and_receives_such_a_message(workspace):
    passes('''
        import rclpy
        from arm_msgs.msg import Arm, Joint
        from rclpy.qos import QoSProfile, DurabilityPolicy
        rclpy.init()
        node = rclpy.create_node('arm')
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        heard = rclpy.Future()
        node.create_subscription(Arm, 'arm', heard.set_result, latched)
        node.create_publisher(Arm, 'arm', latched).publish(Arm(joints=[Joint(angle=2.0)]))
        rclpy.spin_until_future_complete(node, heard, timeout_sec=30)
        assert heard.result().joints[0].angle == 2.0
        rclpy.shutdown()
    ''', PTEROS_INTERFACE_PATH=workspace)


def test_a_module_of_python_wins(workspace):
    write(workspace, {'arm_msgs/__init__.py': '', 'arm_msgs/msg/__init__.py': 'Arm = "own"\n'})
    path = f'{workspace}{os.pathsep}{os.environ.get("PYTHONPATH", "")}'
    passes('''
        import rclpy
        from arm_msgs.msg import Arm
        assert Arm == "own"
    ''', PYTHONPATH=path, PTEROS_INTERFACE_PATH=workspace)


def test_the_standard_packages_stay_as_they_are(workspace):
    write(workspace, {'std_msgs/msg/String.msg': 'int32 other\n'})
    passes('''
        import rclpy
        from std_msgs.msg import String
        assert String().data == ''
    ''', PTEROS_INTERFACE_PATH=workspace)


def test_a_mistake_names_the_type_and_leaves_the_others(workspace):
    write(workspace, {'arm_msgs/msg/Bad.msg': 'int32 a b c\n',
                      'arm_msgs/msg/Far.msg': 'moon_msgs/Crater crater\n'})
    output = passes('''
        import rclpy
        import arm_msgs.msg
        assert arm_msgs.msg.Joint().name == 'elbow'
        for name in ('Bad', 'Far', 'None_'):
            try:
                getattr(arm_msgs.msg, name)
            except (AttributeError, ImportError, ValueError) as error:
                print(error)
            else:
                raise SystemExit(f'{name} was accepted')
    ''', PTEROS_INTERFACE_PATH=workspace)
    lines = output.splitlines()
    assert 'Bad.msg' in lines[0] and 'moon_msgs' in lines[1] and 'None_' in lines[2], output


@pytest.mark.parametrize('statement', [
    'from arm_msgs.msg import Far', 'from arm_msgs.srv import Land',
    'from arm_msgs.action import Fly', 'import arm_msgs.action; arm_msgs.action.Fly',
])
def test_an_import_names_the_package_that_is_missing(workspace, statement):
    write(workspace, {'arm_msgs/msg/Far.msg': 'moon_msgs/Crater crater\n',
                      'arm_msgs/srv/Land.srv': '---\nmoon_msgs/Crater crater\n',
                      'arm_msgs/action/Fly.action': 'moon_msgs/Crater goal\n---\n---\n'})
    done = run(f'import rclpy\n{statement}\n', PTEROS_INTERFACE_PATH=workspace)
    assert done.returncode == 1 and 'moon_msgs' in done.stderr.splitlines()[-1], done.stderr
    assert 'ImportError' in done.stderr


def test_packages_at_any_depth_below_the_variable(workspace):
    source = workspace / 'ws' / 'src'
    write(source, {
        'arm/arm_core/package.xml': '<package><name>arm_core</name></package>',
        'arm/arm_core/vendor/inner_msgs/msg/Hidden.msg': 'int8 x\n',
        'arm/interfaces/deep-msgs/msg/Deep.msg': 'hand_msgs/Grip grip\nnear_msgs/Near near\n',
        'arm/interfaces/deep-msgs/package.xml': '<package><name>deep_msgs</name></package>',
        'near_msgs/msg/Near.msg': 'int8 near\n',
        'old/near_msgs/msg/Near.msg': 'int8 far\n',
        'old/near_msgs/msg/Old.msg': 'int8 far\n',
        'off/COLCON_IGNORE': '', 'off/off_msgs/msg/Off.msg': 'int8 x\n',
        '.git/git_msgs/msg/Git.msg': 'int8 x\n',
    })
    (workspace / 'hand_msgs').rename(source / 'hand_msgs')
    (source / 'loop').symlink_to(source)
    passes('''
        import rclpy
        from deep_msgs.msg import Deep
        assert Deep().near.near == 0 and Deep().grip is not None
        from rosidl_runtime_py import get_interface_path
        for name in ('deep_msgs/msg/Deep', 'deep_msgs/msg/Deep.msg', 'deep_msgs/Deep'):
            assert open(get_interface_path(name)).read().startswith('hand_msgs'), name
        for name in ('inner_msgs', 'off_msgs', 'git_msgs'):
            try:
                __import__(name)
            except ImportError:
                continue
            raise SystemExit(f'{name} was found')
    ''', PTEROS_INTERFACE_PATH=workspace / 'ws')


def test_a_package_has_the_name_that_its_manifest_states(workspace):
    write(workspace, {
        'old_msgs/package.xml': '<package><name>new_msgs</name></package>',
        'old_msgs/msg/New.msg': 'int8 x 1\n',
        'src/hand/Cargo.toml': '[package]\nname = "hand-node"\n',
        'src/hand/interfaces/msg/Hand.msg': 'int8 x 2\n',
    })
    program = '''
        import rclpy
        from new_msgs.msg import New
        from hand_node.msg import Hand
        assert (New().x, Hand().x) == (1, 2)
        for name in ('old_msgs', 'interfaces', 'hand'):
            try:
                __import__(name)
            except ImportError:
                continue
            raise SystemExit(f'{name} was found')
    '''
    passes(program, PTEROS_INTERFACE_PATH=workspace)
    folders = os.pathsep.join(str(workspace / name) for name in ('old_msgs', 'src/hand/interfaces'))
    passes(program, PTEROS_INTERFACE_PATH=folders)


def test_the_path_of_a_definition(workspace):
    passes(f'''
        import os
        from rosidl_runtime_py import get_interface_path
        root = {str(workspace)!r}
        for name, file in (
                ('arm_msgs/msg/Joint', 'arm_msgs/msg/Joint.msg'),
                ('arm_msgs/Joint', 'arm_msgs/msg/Joint.msg'),
                ('arm_msgs/srv/Move', 'arm_msgs/srv/Move.srv'),
                ('arm_msgs/action/Reach.action', 'arm_msgs/action/Reach.action')):
            assert get_interface_path(name) == os.path.join(root, file), name
        for name, error in (
                ('arm_msgs/msg/Nothing', LookupError), ('moon_msgs/msg/Crater', LookupError),
                ('arm_msgs', ValueError), ('arm_msgs//Joint', ValueError),
                ('arm_msgs/msg/../../x', ValueError)):
            try:
                get_interface_path(name)
            except error:
                continue
            raise SystemExit(f'{{name}} was found')
    ''', PTEROS_INTERFACE_PATH=workspace)


def test_a_package_that_is_nowhere_is_an_import_error(workspace):
    done = run('import rclpy\nimport moon_msgs.msg\n', PTEROS_INTERFACE_PATH=workspace)
    assert "No module named 'moon_msgs'" in done.stderr
    done = run('import rclpy\nimport hand_msgs.srv\n', PTEROS_INTERFACE_PATH=workspace)
    assert "No module named 'hand_msgs.srv'" in done.stderr


def test_interfaces_are_listed_by_name(workspace):
    passes('''
        from rosidl_runtime_py import get_message_interfaces
        from rosidl_runtime_py.utilities import get_message
        assert get_message_interfaces(['arm_msgs']) == {'arm_msgs': ['msg/Arm', 'msg/Joint']}
        assert get_message('hand_msgs/msg/Grip')().fingers is not None
    ''', PTEROS_INTERFACE_PATH=workspace)


def test_packages_that_use_each_other(workspace):
    write(workspace, {'hand_msgs/msg/Arms.msg': 'arm_msgs/Joint[] joints\n'})
    passes('''
        import rclpy
        from hand_msgs.msg import Arms, Grip
        from arm_msgs.msg import Arm
        assert Arms().joints == [] and Arm().grip == Grip()
    ''', PTEROS_INTERFACE_PATH=workspace)


def test_a_package_that_comes_later_is_found(workspace):
    (workspace / 'hand_msgs').rename(workspace / 'not_yet')
    passes(f'''
        import os, rclpy
        import arm_msgs.msg
        try:
            arm_msgs.msg.Arm
        except ImportError as error:
            assert 'hand_msgs' in str(error), error
        else:
            raise SystemExit('a type is there without its parts')
        os.rename({str(workspace / 'not_yet')!r}, {str(workspace / 'hand_msgs')!r})
        assert list(arm_msgs.msg.Arm().grip.fingers) == []
    ''', PTEROS_INTERFACE_PATH=workspace)


def test_the_hook_imports_nothing_and_leaves_others_alone(tmp_path):
    write(tmp_path, {'mails/msg/first.msg': 'not a definition\n'})
    program = '''
        import sys
        before = set(sys.modules)
        import _pteros_import_hook
        _pteros_import_hook.install()
        new = set(sys.modules) - before
        assert new == {'_pteros_import_hook'}, new
        sys.path.append(17)
        try:
            import nowhere_at_all
        except ImportError:
            pass
        import mails.msg
        assert mails.msg.__file__ is None and 'pteros' not in sys.modules
    '''
    path = f'{tmp_path}{os.pathsep}{os.environ.get("PYTHONPATH", "")}'
    passes(program, PYTHONPATH=path)
