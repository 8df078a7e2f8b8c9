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

_SLERP_LINEAR_DOT = 1.0 - 1e-9
"""Cosine of an angle below which a spherical interpolation divides by almost zero."""


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


def interpolate(a: Rigid, b: Rigid, ratio: float) -> Rigid:
    """Return the transform between two: linear, and spherical for the rotation (slerp)."""
    (ax, ay, az), qa = a
    (bx, by, bz), qb = b
    translation = (ax + (bx - ax) * ratio, ay + (by - ay) * ratio, az + (bz - az) * ratio)
    dot = qa[0] * qb[0] + qa[1] * qb[1] + qa[2] * qb[2] + qa[3] * qb[3]
    sign = 1.0
    if dot < 0.0:
        # Both signs are the same rotation; this one is the shorter way.
        dot, sign = -dot, -1.0
    if dot > _SLERP_LINEAR_DOT:
        left, right = 1.0 - ratio, ratio * sign
    else:
        angle = math.acos(dot)
        sine = math.sin(angle)
        left = math.sin((1.0 - ratio) * angle) / sine
        right = math.sin(ratio * angle) / sine * sign
    x, y, z, w = (left * qa[i] + right * qb[i] for i in range(4))
    norm = math.sqrt(x * x + y * y + z * z + w * w)
    return translation, (x / norm, y / norm, z / norm, w / norm)


def from_msg(transform: Any) -> Rigid:
    """Return a ``geometry_msgs/msg/Transform`` as tuples."""
    t, r = transform.translation, transform.rotation
    return (t.x, t.y, t.z), (r.x, r.y, r.z, r.w)


def to_msg(rigid: Rigid, transform: Any) -> None:
    """Write a transform into a ``geometry_msgs/msg/Transform``."""
    t, r = transform.translation, transform.rotation
    t.x, t.y, t.z = rigid[0]
    r.x, r.y, r.z, r.w = rigid[1]
