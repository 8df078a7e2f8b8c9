"""
Rigid transforms as tuples: a translation (x, y, z) and a rotation quaternion (x, y, z, w).

Tuples of floats are the fastest form in plain Python.
"""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Tuple

    Vector = Tuple[float, float, float]
    Quaternion = Tuple[float, float, float, float]
    Rigid = Tuple[Vector, Quaternion]

IDENTITY = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
"""The transform that changes nothing."""


def multiply(a: Quaternion, b: Quaternion) -> Quaternion:
    """Return the rotation ``b`` followed by ``a``."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz)


def rotate(q: Quaternion, v: Vector) -> Vector:
    """Return a vector rotated by a unit quaternion."""
    x, y, z, w = q
    vx, vy, vz = v
    # v + 2 w (q x v) + 2 q x (q x v)
    tx = 2.0 * (y * vz - z * vy)
    ty = 2.0 * (z * vx - x * vz)
    tz = 2.0 * (x * vy - y * vx)
    return (
        vx + w * tx + y * tz - z * ty, vy + w * ty + z * tx - x * tz,
        vz + w * tz + x * ty - y * tx)


def cross(a: Vector, b: Vector) -> Vector:
    """Return the cross product."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def rotation_vector(q: Quaternion) -> Vector:
    """Return the axis of a rotation, times its angle of at most a half turn."""
    x, y, z, w = q if q[3] >= 0.0 else (-q[0], -q[1], -q[2], -q[3])
    sine = math.sqrt(x * x + y * y + z * z)
    scale = 2.0 * math.atan2(sine, w) / sine if sine > 0.0 else 0.0
    return (x * scale, y * scale, z * scale)


def compose(a: Rigid, b: Rigid) -> Rigid:
    """Return the transform ``b`` followed by ``a``."""
    (ax, ay, az), rotation = a
    bx, by, bz = rotate(rotation, b[0])
    return (ax + bx, ay + by, az + bz), multiply(rotation, b[1])


def inverse(a: Rigid) -> Rigid:
    """Return the transform that undoes ``a``."""
    x, y, z, w = a[1]
    rotation = (-x, -y, -z, w)
    tx, ty, tz = rotate(rotation, a[0])
    return (-tx, -ty, -tz), rotation


def from_msg(transform: Any) -> Rigid:
    """Return a ``geometry_msgs/msg/Transform`` as tuples."""
    t, r = transform.translation, transform.rotation
    return (t.x, t.y, t.z), (r.x, r.y, r.z, r.w)


def to_msg(rigid: Rigid, transform: Any) -> None:
    """Write a transform into a ``geometry_msgs/msg/Transform``."""
    t, r = transform.translation, transform.rotation
    t.x, t.y, t.z = rigid[0]
    r.x, r.y, r.z, r.w = rigid[1]
