"""What the programs of this folder share: they print the same on every rclpy."""


def show(name, function, *args, **kwargs):
    """Print the result of a call, or the class of its exception. Texts of errors are our own."""
    try:
        result = function(*args, **kwargs)
    except BaseException as error:
        result = type(error).__name__
    print(name, '->', result)
