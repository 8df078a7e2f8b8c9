"""Point clouds as numpy arrays, and back."""

from __future__ import annotations

import array
import sys
from collections import namedtuple

import numpy as np
from sensor_msgs.msg import PointCloud2, PointField
from sensor_msgs_py.numpy_compat import structured_to_unstructured, unstructured_to_structured

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, List, Optional

    from std_msgs.msg import Header

DUMMY_FIELD_PREFIX = 'unnamed_field'
"""Begins the names of fields that have none in the message."""

_DATATYPES = {
    PointField.INT8: np.dtype(np.int8), PointField.UINT8: np.dtype(np.uint8),
    PointField.INT16: np.dtype(np.int16), PointField.UINT16: np.dtype(np.uint16),
    PointField.INT32: np.dtype(np.int32), PointField.UINT32: np.dtype(np.uint32),
    PointField.FLOAT32: np.dtype(np.float32), PointField.FLOAT64: np.dtype(np.float64),
}


def _require(condition: bool, text: str) -> None:
    """Raise the exception that rclpy programs expect of a wrong argument."""
    if not condition:
        raise AssertionError(text)


def _all_of_one_type(fields: Iterable[PointField]) -> bool:
    return len({field.datatype for field in fields}) <= 1


def read_points(
    cloud: PointCloud2, field_names: Optional[List[str]] = None, skip_nans: bool = False,
    uvs: Optional[Iterable] = None, reshape_organized_cloud: bool = False,
) -> np.ndarray:
    """
    Return the points of a cloud as a structured array.

    The array is a view of the message's data unless the byte order differs, or points are
    selected.

    :param field_names: The fields; ``None`` stands for all.
    :param skip_nans: Leave out points with a value that is no number.
    :param uvs: The indices of the points; ``None`` stands for all.
    :param reshape_organized_cloud: Return a cloud with rows as an array of two dimensions.
    :raises AssertionError: if ``cloud`` is no PointCloud2, or a field does not exist.
    """
    _require(isinstance(cloud, PointCloud2), 'Cloud is not a sensor_msgs.msg.PointCloud2')
    points = np.ndarray(
        shape=(cloud.width * cloud.height,),
        dtype=dtype_from_fields(cloud.fields, point_step=cloud.point_step), buffer=cloud.data)
    if field_names is not None:
        missing = [name for name in field_names if name not in points.dtype.names]
        _require(
            not missing,
            f'the cloud has no field {", ".join(map(repr, missing))}; it has '
            + ', '.join(points.dtype.names))
        points = points[list(field_names)]
    if cloud.is_bigendian != (sys.byteorder != 'little'):
        # The message keeps its bytes.
        points = points.byteswap()
    if skip_nans and not cloud.is_dense:
        numbers = np.ones(len(points), dtype=bool)
        for name in points.dtype.names:
            numbers &= ~np.isnan(points[name])
        points = points[numbers]
    if uvs is not None:
        points = points[uvs if isinstance(uvs, np.ndarray) else np.fromiter(uvs, int)]
    if reshape_organized_cloud and cloud.height > 1:
        points = points.reshape(cloud.width, cloud.height)
    return points


def read_points_numpy(
    cloud: PointCloud2, field_names: Optional[List[str]] = None, skip_nans: bool = False,
    uvs: Optional[Iterable] = None, reshape_organized_cloud: bool = False,
) -> np.ndarray:
    """
    Return fields of one type as an array with a column for each.

    The parameters are those of :func:`read_points`.

    :raises AssertionError: if the fields are of several types.
    """
    _require(
        _all_of_one_type(
            field for field in cloud.fields
            if field_names is None or field.name in field_names),
        'All fields need to have the same datatype. Use `read_points()` otherwise.')
    return structured_to_unstructured(
        read_points(cloud, field_names, skip_nans, uvs, reshape_organized_cloud))


def read_points_list(
    cloud: PointCloud2, field_names: Optional[List[str]] = None, skip_nans: bool = False,
    uvs: Optional[Iterable] = None,
) -> List[Any]:
    """
    Return the points of a cloud as a list of named tuples, which is slow.

    The parameters are those of :func:`read_points`.
    """
    _require(isinstance(cloud, PointCloud2), 'cloud is not a sensor_msgs.msg.PointCloud2')
    if field_names is None:
        field_names = [field.name for field in cloud.fields]
    point = namedtuple('Point', field_names)  # type: ignore[misc]
    return [point._make(each) for each in read_points(cloud, field_names, skip_nans, uvs)]


def dtype_from_fields(
    fields: Iterable[PointField], point_step: Optional[int] = None,
) -> np.dtype:
    """
    Return the numpy type of a point.

    A field with several elements becomes several fields, ``<name>_0`` and so on.

    :param point_step: Bytes of a point; ``None`` stands for the end of the last field.
    :raises AssertionError: if a name occurs twice, or a field has no elements.
    """
    names: List[str] = []
    offsets: List[int] = []
    formats: List[str] = []
    for index, field in enumerate(fields):
        datatype = _DATATYPES[field.datatype]
        name = field.name or f'{DUMMY_FIELD_PREFIX}_{index}'
        _require(field.count > 0, f"Can't process field {name!r} with count = 0.")
        for element in range(field.count):
            element_name = f'{name}_{element}' if field.count > 1 else name
            _require(
                element_name not in names,
                f'Duplicate field names are not allowed! {element_name!r} occurs twice')
            names.append(element_name)
            offsets.append(field.offset + element * datatype.itemsize)
            formats.append(datatype.str)
    layout: dict = {'names': names, 'formats': formats, 'offsets': offsets}
    if point_step is not None:
        layout['itemsize'] = point_step
    return np.dtype(layout)


def create_cloud(
    header: Header, fields: Iterable[PointField], points: Iterable,
    point_step: Optional[int] = None,
) -> PointCloud2:
    """
    Create a cloud.

    :param fields: The fields of a point.
    :param points: An array, structured as the fields or with a column for each, or an iterable
        of points. An array of two dimensions makes an organized cloud.
    :param point_step: Bytes of a point; ``None`` stands for the end of the last field.
    :raises AssertionError: if the array does not fit the fields.
    """
    fields = list(fields)
    dtype = dtype_from_fields(fields, point_step)
    if not isinstance(points, np.ndarray):
        points = np.array([tuple(point) for point in points], dtype=dtype)
    elif points.dtype.names is None:
        _require(
            _all_of_one_type(fields),
            'All fields need to have the same datatype. Pass a structured NumPy array with '
            'multiple dtypes otherwise.')
        points = unstructured_to_structured(points, dtype=dtype)
    else:
        _require(
            points.dtype == dtype,
            'PointFields and structured NumPy array dtype do not match for all fields! Check '
            f'their field order, names and types: {points.dtype} and {dtype}')
    _require(
        points.ndim <= 2,
        f'Too many dimensions for organized cloud! It has {points.ndim}, at most 2 are possible')
    data = array.array('B')
    data.frombytes(memoryview(np.ascontiguousarray(points)).cast('B'))
    width = points.shape[0]
    cloud = PointCloud2(
        header=header, height=points.shape[1] if points.ndim == 2 else 1, width=width,
        is_dense=False, is_bigendian=sys.byteorder != 'little', fields=fields,
        point_step=points.dtype.itemsize, row_step=points.dtype.itemsize * width)
    cloud.data = data
    return cloud


def create_cloud_xyz32(header: Header, points: Iterable) -> PointCloud2:
    """Create a cloud with the fields x, y and z of 32 bits."""
    return create_cloud(header, [
        PointField(name=name, offset=offset, datatype=PointField.FLOAT32, count=1)
        for name, offset in (('x', 0), ('y', 4), ('z', 8))], points)
