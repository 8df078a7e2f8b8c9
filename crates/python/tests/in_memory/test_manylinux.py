"""The platform tag of a wheel, from ELF files that are made here."""

import os
import struct
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

import manylinux  # noqa: E402
import wheel  # noqa: E402

DYNAMIC, STRINGS, VERSIONS, BASE = 0x200, 0x400, 0x800, 0x10000


def elf(libraries=('libc.so.6',), versions=('GLIBC_2.2.5',), machine=62):
    """Return a file with a dynamic section, and one table of versions per library."""
    strings = bytearray(b'\0')

    def string(text):
        strings.extend(text.encode() + b'\0')
        return len(strings) - len(text) - 1

    entries = [(1, string(library)) for library in libraries]
    entries += [(5, BASE + STRINGS), (0x6ffffffe, BASE + VERSIONS), (0x6fffffff, 1), (0, 0)]
    need = struct.pack('<HHIII', 1, len(versions), string('libc.so.6'), 16, 0)
    for place, version in enumerate(versions):
        following = 0 if place == len(versions) - 1 else 16
        need += struct.pack('<IHHII', 0, 0, 2, string(version), following)
    data = bytearray(0x1000)
    data[:6] = b'\x7fELF\x02\x01'
    struct.pack_into('<H', data, 18, machine)
    struct.pack_into('<Q', data, 32, 64)
    struct.pack_into('<HH', data, 54, 56, 2)
    struct.pack_into('<IIQQQQ', data, 64, 1, 0, 0, BASE, BASE, len(data))
    dynamic = b''.join(struct.pack('<QQ', *entry) for entry in entries)
    struct.pack_into('<IIQQQQ', data, 120, 2, 0, DYNAMIC, BASE + DYNAMIC, 0, len(dynamic))
    data[DYNAMIC:DYNAMIC + len(dynamic)] = dynamic
    data[STRINGS:STRINGS + len(strings)] = strings
    data[VERSIONS:VERSIONS + len(need)] = need
    return bytes(data)


def test_the_newest_version_of_all_files_is_the_tag():
    one = elf(versions=('GLIBC_2.9', 'GLIBC_2.28', 'GLIBC_2.3.4', 'GCC_4.2.0'))
    other = elf(('libc.so.6', 'libgcc_s.so.1'), ('GLIBC_2.34',))
    assert manylinux.platform_tag({'one': one}) == 'manylinux_2_28_x86_64'
    assert manylinux.platform_tag({'one': one, 'other': other}) == 'manylinux_2_34_x86_64'
    assert manylinux.platform_tag({'old': elf()}) == 'manylinux_2_17_x86_64'
    assert manylinux.platform_tag({'arm': elf(machine=183)}) == 'manylinux_2_17_aarch64'
    relocated = elf(versions=('GLIBC_2.2.5', 'GLIBC_ABI_DT_RELR'))
    assert manylinux.platform_tag({'one': relocated}) == 'manylinux_2_36_x86_64'


@pytest.mark.parametrize('start, machine, tag', [
    (b'\x7fELF\x02\x01', (62, 0), 'linux_x86_64'),
    (b'\x7fELF\x02\x01', (183, 0), 'linux_aarch64'),
    (b'\x7fELF\x01\x01', (40, 0), 'linux_armv7l'),
    (b'\x7fELF\x02\x02', (0, 22), 'linux_s390x'),
])
def test_without_a_policy_the_tag_is_of_the_files_machine(start, machine, tag):
    data = start + bytes(12) + bytes(machine)
    assert manylinux.linux_tag(data) == tag


@pytest.mark.parametrize('data', [b'', b'\x7fELF', b'MZ' + bytes(30), elf(machine=4711)])
def test_a_file_of_no_known_machine_has_no_tag(data):
    with pytest.raises(manylinux.PolicyError):
        manylinux.linux_tag(data)


@pytest.mark.parametrize('data, text', [
    (elf(('libc.so.6', 'libpython3.11.so.1.0')), 'the file needs libpython3.11.so.1.0, which not'),
    (elf(versions=('GLIBC_PRIVATE',)), 'the file needs symbols of version GLIBC_PRIVATE'),
    (elf(versions=('GCC_12.0.0',)), 'the file needs symbols of version GCC_12.0.0'),
    (elf(machine=243), 'the file is for machine 243 of ELF'),
    (b'#!/bin/sh\n', 'the file is not a 64-bit little-endian ELF file'),
    (elf()[:0x150], 'the file is not a whole ELF file'),
    (elf()[:STRINGS + 2], 'the file is not a whole ELF file'),
])
def test_a_file_without_a_policy_is_named_with_its_reason(data, text):
    with pytest.raises(manylinux.PolicyError) as raised:
        manylinux.platform_tag({'the file': data})
    assert str(raised.value).startswith(text)


def test_files_of_several_machines_and_too_new_ones_are_refused():
    with pytest.raises(manylinux.PolicyError, match='several machines: aarch64, x86_64'):
        manylinux.platform_tag({'one': elf(), 'other': elf(machine=183)})
    newer = elf(versions=('GLIBC_2.29',))
    with pytest.raises(manylinux.PolicyError, match='one needs glibc 2.29, more than 2.28'):
        manylinux.platform_tag({'one': newer}, '2.28')
    assert manylinux.platform_tag({'one': newer}, '2.29') == 'manylinux_2_29_x86_64'


def test_a_new_wheel_takes_the_place_of_older_ones(tmp_path):
    """So `pip install target/wheel/pteros-*.whl` names one file."""
    new = tmp_path / 'pteros-0.2.0-cp310-abi3-manylinux_2_34_x86_64.whl'
    for path in (new, tmp_path / 'pteros-0.1.0-cp310-abi3-linux_x86_64.whl', tmp_path / 'a.txt'):
        path.touch()
    wheel.remove_others(tmp_path, new)
    assert sorted(path.name for path in tmp_path.iterdir()) == ['a.txt', new.name]
