"""The command ``ament_index``: prints resources."""

from __future__ import annotations

import argparse
import sys

from ament_index_python.resources import get_resource, get_resource_types, get_resources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, List, Optional


def main(argv: Optional[List[str]] = None) -> Optional[str]:
    """
    Print the types, the resources of a type, or the content of a resource.

    :returns: an error text, or ``None``.
    """
    parser = argparse.ArgumentParser(description='Query the ament resource index.')
    parser.add_argument('resource_type', nargs='?', help='The type of the resource')
    parser.add_argument('resource_name', nargs='?', help='The name of the resource')
    args = parser.parse_args(sys.argv[1:] if argv is None else argv)
    if args.resource_type is None:
        for resource_type in sorted(get_resource_types()):
            print(resource_type)
        return None
    if args.resource_name is None:
        resources = get_resources(args.resource_type)
        for name in sorted(resources):
            print(f'{name}\t{resources[name]}')
        return None
    try:
        content, path = get_resource(args.resource_type, args.resource_name)
    except LookupError as error:
        return str(error)
    print(path)
    if content:
        print('<<<')
        print(content)
        print('>>>')
    return None


def resource_type_completer(prefix: Any, **kwargs: Any) -> Iterator[str]:
    """Yield the types that begin with a prefix, for argcomplete."""
    return (each for each in get_resource_types() if each.startswith(prefix))


def resource_name_completer(prefix: Any, parsed_args: Any, **kwargs: Any) -> Any:
    """Yield the names that begin with a prefix, for argcomplete."""
    resource_type = getattr(parsed_args, 'resource_type', None)
    if not resource_type:
        return []
    return (each for each in get_resources(resource_type) if each.startswith(prefix))
