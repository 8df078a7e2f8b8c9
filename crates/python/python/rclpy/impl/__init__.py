"""Parts of rclpy that programs rarely use by themselves."""

TYPE_CHECKING = False
if not TYPE_CHECKING:
    def __getattr__(name):
        # Programs use it after `import rclpy` alone.
        if name == 'implementation_singleton':
            from importlib import import_module
            return import_module(f'{__name__}.{name}')
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
