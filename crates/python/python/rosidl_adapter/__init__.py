"""Definition files of interfaces: `rosidl_adapter.parser` reads them, `convert_to_idl` converts."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def convert_to_idl(
    package_dir: Path, package_name: str, interface_file: Path, output_dir: Path,
) -> Path:
    """
    Write the IDL file of a definition file, into `msg`, `srv` or `action` of a folder.

    :param package_dir: The absolute folder of the package.
    :param interface_file: The definition file, relative to that folder.
    :returns: The path of the IDL file.
    """
    from rosidl_adapter import idl
    suffix = interface_file.suffix
    if suffix not in idl.KINDS:
        raise AssertionError(f"Unsupported interface type '{suffix}'")
    return idl.convert(package_dir, package_name, interface_file, output_dir / suffix[1:])
