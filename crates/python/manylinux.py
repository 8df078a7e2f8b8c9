"""Platform tag of a wheel: the manylinux policy that its ELF files satisfy (PEP 600).

`manylinux_2_28` means glibc 2.28 or later. The tag follows from the versions of glibc's
symbols that the files need, as the dynamic linker sees them. It never follows from the
machine that builds.
"""

import re
import struct

LIBRARIES = frozenset({
    'ld-linux-aarch64.so.1', 'ld-linux-x86-64.so.2', 'libc.so.6', 'libdl.so.2', 'libgcc_s.so.1',
    'libm.so.6', 'libpthread.so.0', 'libresolv.so.2', 'librt.so.1', 'libutil.so.1'})
"""The libraries that each system with glibc has; part of those of the policies."""

GLIBC_MIN = (2, 17)
"""The oldest policy that current tools know."""

GCC_MAX = (4, 8, 0)
"""The newest symbols of libgcc that the oldest policy has."""

_MACHINES = {62: 'x86_64', 183: 'aarch64'}
# Python's names (`platform.machine()`) of further ones, by machine and class of ELF.
_OTHER_MACHINES = {(3, 1): 'i686', (21, 2): 'ppc64le', (22, 2): 's390x', (40, 1): 'armv7l',
                   (243, 2): 'riscv64'}
# A feature of the linker instead of a symbol, and the glibc that brought it.
_FEATURES = {'GLIBC_ABI_DT_RELR': (2, 36)}
_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NEEDED, _DT_STRTAB, _DT_VERNEED, _DT_VERNEEDNUM = 1, 5, 0x6ffffffe, 0x6fffffff


class PolicyError(Exception):
    """No manylinux policy holds for a file."""


class Elf:
    """What a 64-bit, little-endian ELF file needs: libraries, and versions of their symbols."""

    def __init__(self, data):
        if data[:6] != b'\x7fELF\x02\x01':
            raise PolicyError('is not a 64-bit little-endian ELF file')
        self._data = data
        number, = struct.unpack_from('<H', data, 18)
        if number not in _MACHINES:
            raise PolicyError(f'is for machine {number} of ELF, which has no policy')
        self.machine = _MACHINES[number]
        table, = struct.unpack_from('<Q', data, 32)
        size, count = struct.unpack_from('<HH', data, 54)
        self._loads = []
        dynamic = None
        for place in range(table, table + size * count, size):
            kind, _, offset, address, _, file_size = struct.unpack_from('<IIQQQQ', data, place)
            if kind == _PT_LOAD:
                self._loads.append((address, offset, file_size))
            elif kind == _PT_DYNAMIC:
                dynamic = offset, file_size
        self.libraries = []
        self.versions = []
        if dynamic is not None:
            self._read_dynamic(*dynamic)

    def _offset(self, address):
        for start, offset, size in self._loads:
            if start <= address < start + size:
                return address - start + offset
        raise PolicyError(f'refers to address {address:#x}, which it does not have')

    def _read_dynamic(self, offset, size):
        entries = list(struct.iter_unpack('<QQ', self._data[offset:offset + size]))
        values = dict(entries)
        strings = self._offset(values[_DT_STRTAB])

        def string(place):
            start = strings + place
            return self._data[start:self._data.index(b'\0', start)].decode()

        self.libraries = [string(value) for tag, value in entries if tag == _DT_NEEDED]
        place = self._offset(values[_DT_VERNEED]) if _DT_VERNEED in values else 0
        for _ in range(values.get(_DT_VERNEEDNUM, 0)):
            _, count, _, first, following = struct.unpack_from('<HHIII', self._data, place)
            version = place + first
            for _ in range(count):
                _, _, _, name, further = struct.unpack_from('<IHHII', self._data, version)
                self.versions.append(string(name))
                version += further
            place += following

    def glibc(self):
        """Return the oldest glibc that has all it needs, and raise PolicyError if none has."""
        foreign = sorted(set(self.libraries) - LIBRARIES)
        if foreign:
            raise PolicyError(f'needs {", ".join(foreign)}, which not every system has')
        needed = [GLIBC_MIN]
        for version in self.versions:
            found = re.fullmatch(r'(GLIBC|GCC)_(\d+(?:\.\d+)+)', version)
            if version in _FEATURES:
                needed.append(_FEATURES[version])
            elif found is None:
                raise PolicyError(f'needs symbols of version {version}, which no policy has')
            elif found[1] == 'GLIBC':
                needed.append(_numbers(found[2])[:2])
            elif _numbers(found[2]) > GCC_MAX:
                raise PolicyError(f'needs symbols of version {version}, which no policy has')
        return max(needed)


def _numbers(text):
    return tuple(int(part) for part in text.split('.'))


def platform_tag(files, glibc_max=None):
    """Return the platform tag for ELF files, given by name, e.g. `manylinux_2_28_x86_64`.

    It raises PolicyError, which names the file, if there is none, or if a file needs a newer
    glibc than `glibc_max`.
    """
    newest = None if glibc_max is None else _numbers(glibc_max)
    needed, machines = GLIBC_MIN, set()
    for name, data in files.items():
        try:
            elf = Elf(data)
            glibc = elf.glibc()
            if newest is not None and glibc > newest:
                raise PolicyError(f'needs glibc {glibc[0]}.{glibc[1]}, more than {glibc_max}')
        except PolicyError as error:
            raise PolicyError(f'{name} {error}') from None
        except (IndexError, KeyError, ValueError, struct.error):
            raise PolicyError(f'{name} is not a whole ELF file') from None
        needed = max(needed, glibc)
        machines.add(elf.machine)
    if len(machines) != 1:
        raise PolicyError(f'the files are for several machines: {", ".join(sorted(machines))}')
    return f'manylinux_{needed[0]}_{needed[1]}_{machines.pop()}'


def linux_tag(data):
    """Return the tag of an ELF file for machines like its own, e.g. `linux_armv7l`."""
    if data[:4] != b'\x7fELF' or len(data) < 20:
        raise PolicyError('is not an ELF file')
    number, = struct.unpack_from('>H' if data[5] == 2 else '<H', data, 18)
    name = _MACHINES.get(number) or _OTHER_MACHINES.get((number, data[4]))
    if name is None:
        raise PolicyError(f'is for machine {number} of ELF, which has no tag')
    return f'linux_{name}'
