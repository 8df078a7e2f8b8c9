"""
Conversion between `sensor_msgs/msg/Image` and arrays, in numpy alone.

`cv2` is needed for Bayer patterns and YUV; it or Pillow for compressed images.
"""

from __future__ import annotations

import re
import sys

import numpy
from sensor_msgs.msg import CompressedImage, Image

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional, Tuple

    from std_msgs.msg import Header

_DEPTHS = {'8U': 'uint8', '8S': 'int8', '16U': 'uint16', '16S': 'int16', '32S': 'int32',
           '32F': 'float32', '64F': 'float64'}
_COLOURS = {'mono': 1, 'rgb': 3, 'bgr': 3, 'rgba': 4, 'bgra': 4}
_BAYER = {'rggb': 'BG', 'bggr': 'RG', 'gbrg': 'GR', 'grbg': 'GB'}
_YUV = {'yuv422': 'UYVY', 'uyvy': 'UYVY', 'yuv422_yuy2': 'YUY2', 'yuyv': 'YUY2'}

# Shares of red, green and blue in grey, in 2^-15.
_GREY = (9798, 19235, 3735)


class CvBridgeError(TypeError):
    """A conversion that is not possible."""


def _parse(encoding: str) -> Tuple[str, str, int]:
    """Return the colours of an encoding, empty if it has none, its depth and its channels."""
    generic = re.fullmatch(r'(8U|8S|16U|16S|32S|32F|64F)C([0-9]+)', encoding)
    if generic is not None:
        return '', generic[1], int(generic[2])
    if encoding in _YUV:
        return 'yuv', '8U', 2
    bayer = re.fullmatch(r'bayer_(rggb|bggr|gbrg|grbg)(8|16)', encoding)
    if bayer is not None:
        return 'bayer', f'{bayer[2]}U', 1
    colour = re.fullmatch(r'(mono|rgba?|bgra?)(8|16)', encoding)
    if colour is not None:
        return colour[1], f'{colour[2]}U', _COLOURS[colour[1]]
    if encoding in _DEPTHS:
        return '', encoding, 1
    raise CvBridgeError(f'Unrecognized image encoding [{encoding}]')


def getCvType(encoding: str) -> int:  # noqa: N802
    """
    Return the number of OpenCV's type for an encoding.

    :raises CvBridgeError: if there is no such encoding.
    """
    _, depth, channels = _parse(encoding)
    return list(_DEPTHS).index(depth) + ((channels - 1) << 3)


def _cv2(purpose: str) -> Any:
    try:
        import cv2
    except ImportError:
        raise CvBridgeError(
            f'{purpose} needs OpenCV: pip install opencv-python-headless') from None
    return cv2


def _rescale(image: numpy.ndarray, depth: str, is_colour: bool) -> numpy.ndarray:
    """Return values of another depth; those of colours are scaled to its range."""
    dtype = numpy.dtype(_DEPTHS[depth])
    if image.dtype == dtype:
        return image
    if is_colour and image.dtype == numpy.uint8 and depth == '16U':
        return image.astype(numpy.uint16) * numpy.uint16(257)
    if is_colour and image.dtype == numpy.uint16 and depth == '8U':
        return numpy.rint(image / 257.0).astype(numpy.uint8)
    if dtype.kind in 'iu':
        limits = numpy.iinfo(dtype)
        image = numpy.rint(image) if image.dtype.kind == 'f' else image
        return numpy.clip(image, limits.min, limits.max).astype(dtype)
    return image.astype(dtype)


def _recolour(image: numpy.ndarray, source: str, target: str) -> numpy.ndarray:
    """Return the channels of other colours, in the same depth."""
    if source == target:
        return image
    full = numpy.iinfo(image.dtype).max
    if source == 'mono':
        channels = [image] * 3
        alpha = None
    else:
        parts = {name: image[..., index] for index, name in enumerate(source)}
        channels = [parts[name] for name in 'rgb']
        alpha = parts.get('a')
    if target == 'mono':
        total = sum(
            channel.astype(numpy.uint32) * numpy.uint32(share)
            for channel, share in zip(channels, _GREY))
        return ((total + (1 << 14)) >> 15).astype(image.dtype)
    named = dict(zip('rgb', channels))
    named['a'] = numpy.full_like(channels[0], full) if alpha is None else alpha
    return numpy.stack([named[name] for name in target], axis=-1)


def cvtColor2(img: numpy.ndarray, encoding_in: str, encoding_out: str) -> numpy.ndarray:  # noqa: N802
    """
    Return an image in another encoding.

    :raises CvBridgeError: if one of the encodings is unknown, or has no colours.
    """
    source, _, channels = _parse(encoding_in)
    target, depth, wanted = _parse(encoding_out)
    if encoding_in == encoding_out:
        return img
    if source in ('bayer', 'yuv'):
        if target not in _COLOURS:
            raise CvBridgeError(f'[{encoding_in}] cannot be converted to [{encoding_out}]')
        cv2 = _cv2(f'the encoding {encoding_in}')
        code = (f'COLOR_Bayer{_BAYER[encoding_in[6:10]]}2BGR' if source == 'bayer'
                else f'COLOR_YUV2BGR_{_YUV[encoding_in]}')
        img, source = cv2.cvtColor(numpy.ascontiguousarray(img), getattr(cv2, code)), 'bgr'
    elif target in ('bayer', 'yuv'):
        raise CvBridgeError(f'[{encoding_in}] cannot be converted to [{encoding_out}]')
    if source in _COLOURS and target in _COLOURS:
        return _rescale(_recolour(img, source, target), depth, True)
    if channels != wanted:
        raise CvBridgeError(
            f'[{encoding_in}] has {channels} channels and [{encoding_out}] {wanted}; only '
            'encodings with colours, such as bgr8 and mono8, convert between them')
    return _rescale(img, depth, False)


class CvBridge:
    """Converts between messages and arrays."""

    def __init__(self) -> None:
        self.cvtype_to_name = {
            index + ((channels - 1) << 3): f'{depth}C{channels}'
            for index, depth in enumerate(_DEPTHS) for channels in range(1, 5)}
        self.numpy_type_to_cvtype = {name: depth for depth, name in _DEPTHS.items()}

    def dtype_with_channels_to_cvtype2(self, dtype: Any, n_channels: int) -> str:
        """Return the encoding without colours of a type of numpy, such as ``8UC3``."""
        name = numpy.dtype(dtype).newbyteorder('=').name
        if name not in self.numpy_type_to_cvtype:
            raise CvBridgeError(
                f'an image of type {name} has no encoding; use {", ".join(_DEPTHS.values())}')
        return f'{self.numpy_type_to_cvtype[name]}C{n_channels}'

    def cvtype2_to_dtype_with_channels(self, cvtype: int) -> Tuple[str, int]:
        """Return the type of numpy and the channels of a number of OpenCV's type."""
        return list(_DEPTHS.values())[cvtype & 7], (cvtype >> 3) + 1

    def encoding_to_cvtype2(self, encoding: str) -> int:
        """Return the number of OpenCV's type for an encoding; see :func:`getCvType`."""
        return getCvType(encoding)

    def encoding_to_dtype_with_channels(self, encoding: str) -> Tuple[str, int]:
        """Return the type of numpy and the channels of an encoding."""
        return self.cvtype2_to_dtype_with_channels(getCvType(encoding))

    def imgmsg_to_cv2(
        self, img_msg: Image, desired_encoding: str = 'passthrough',
    ) -> numpy.ndarray:
        """
        Return the pixels of a message.

        :param desired_encoding: Its encoding; ``'passthrough'`` stands for that of the message.
        :raises CvBridgeError: if the conversion is not possible, or data are missing.
        """
        name, channels = self.encoding_to_dtype_with_channels(img_msg.encoding)
        dtype = numpy.dtype(name).newbyteorder('>' if img_msg.is_bigendian else '<')
        row, size = img_msg.width * channels * dtype.itemsize, img_msg.height * img_msg.step
        if img_msg.step < row or len(img_msg.data) < size:
            raise CvBridgeError(
                f'an image of {img_msg.width} x {img_msg.height} in {img_msg.encoding} needs '
                f'{row} bytes a row and {size} in all, but has a step of {img_msg.step} and '
                f'{len(img_msg.data)} bytes')
        data = numpy.frombuffer(bytes(img_msg.data) if isinstance(img_msg.data, list)
                                else img_msg.data, numpy.uint8, size)
        rows = numpy.ascontiguousarray(data.reshape(img_msg.height, img_msg.step)[:, :row])
        image = rows.view(dtype)
        if channels > 1:
            image = image.reshape(img_msg.height, img_msg.width, channels)
        if not dtype.isnative:
            image = image.astype(dtype.newbyteorder('='))
        elif image.base is not None:
            # Its own memory, which the program may change.
            image = image.copy()
        if desired_encoding == 'passthrough':
            return image
        return cvtColor2(image, img_msg.encoding, desired_encoding)

    def cv2_to_imgmsg(
        self, cvim: numpy.ndarray, encoding: str = 'passthrough', header: Optional[Header] = None,
    ) -> Image:
        """
        Return the message of an array.

        :param encoding: The encoding that the pixels have; ``'passthrough'`` stands for one
            without colours, such as ``8UC3``.
        :raises TypeError: if ``cvim`` is no array.
        :raises CvBridgeError: if the array does not fit the encoding.
        """
        if not isinstance(cvim, (numpy.ndarray, numpy.generic)):
            raise TypeError(f'Your input type is not a numpy array, but {type(cvim).__name__}')
        if cvim.ndim not in (2, 3):
            raise CvBridgeError(
                f'an image has 2 or 3 dimensions, but this array {cvim.ndim}')
        channels = 1 if cvim.ndim < 3 else cvim.shape[2]
        own = self.dtype_with_channels_to_cvtype2(cvim.dtype, channels)
        if encoding != 'passthrough':
            _, depth, wanted = _parse(encoding)
            if f'{depth}C{wanted}' != own:
                raise CvBridgeError(
                    f'encoding specified as {encoding}, but image has incompatible type {own}')
        message = Image(
            height=cvim.shape[0], width=cvim.shape[1],
            encoding=own if encoding == 'passthrough' else encoding)
        if header is not None:
            message.header = header
        order = cvim.dtype.byteorder
        message.is_bigendian = int(order == '>' or (order == '=' and sys.byteorder == 'big'))
        message.data.frombytes(cvim.tobytes())
        message.step = message.width * channels * cvim.itemsize
        return message

    def compressed_imgmsg_to_cv2(
        self, cmprs_img_msg: CompressedImage, desired_encoding: str = 'passthrough',
    ) -> numpy.ndarray:
        """
        Return the pixels of a compressed message, as bgr8 or mono8 unless asked otherwise.

        :raises CvBridgeError: if neither OpenCV nor Pillow is there, or neither can decode it.
        """
        data = bytes(cmprs_img_msg.data)
        try:
            import cv2
        except ImportError:
            image = _decode_by_pillow(data)
        else:
            image = cv2.imdecode(numpy.frombuffer(data, numpy.uint8), cv2.IMREAD_UNCHANGED)
        if image is None:
            raise CvBridgeError(f'{len(data)} bytes of {cmprs_img_msg.format!r} are no image')
        if desired_encoding == 'passthrough':
            return image
        channels = 1 if image.ndim < 3 else image.shape[2]
        bits = 8 * image.dtype.itemsize
        return cvtColor2(
            image, {1: 'mono', 3: 'bgr', 4: 'bgra'}[channels] + str(bits), desired_encoding)

    def cv2_to_compressed_imgmsg(
        self, cvim: numpy.ndarray, dst_format: str = 'jpg',
    ) -> CompressedImage:
        """
        Return the compressed message of an array in bgr8 or mono8.

        :param dst_format: The format, as the suffix of a file.
        :raises TypeError: if ``cvim`` is no array.
        :raises CvBridgeError: if neither OpenCV nor Pillow is there, or neither can encode it.
        """
        if not isinstance(cvim, (numpy.ndarray, numpy.generic)):
            raise TypeError(f'Your input type is not a numpy array, but {type(cvim).__name__}')
        try:
            import cv2
        except ImportError:
            data = _encode_by_pillow(cvim, dst_format)
        else:
            done, encoded = cv2.imencode(f'.{dst_format}', cvim)
            if not done:
                raise CvBridgeError(f'OpenCV cannot encode an image as {dst_format}')
            data = encoded.tobytes()
        message = CompressedImage(format=dst_format)
        message.data.frombytes(data)
        return message


def _pillow() -> Any:
    try:
        from PIL import Image as pillow
    except ImportError:
        raise CvBridgeError(
            'compressed images need OpenCV or Pillow: pip install pillow') from None
    return pillow


def _decode_by_pillow(data: bytes) -> Optional[numpy.ndarray]:
    import io
    try:
        with _pillow().open(io.BytesIO(data)) as opened:
            grey = opened.mode in ('1', 'L')
            image = numpy.asarray(opened.convert('L' if grey else 'RGB'))
    except OSError:
        return None
    return image if grey else numpy.ascontiguousarray(image[..., ::-1])


def _encode_by_pillow(image: numpy.ndarray, name: str) -> bytes:
    import io
    pillow = _pillow()
    target = io.BytesIO()
    pixels = image if image.ndim < 3 else numpy.ascontiguousarray(image[..., 2::-1])
    try:
        pillow.fromarray(pixels).save(target, {'jpg': 'JPEG'}.get(name, name.upper()))
    except (KeyError, OSError, TypeError, ValueError) as error:
        raise CvBridgeError(f'Pillow cannot encode an image as {name}: {error}') from None
    return target.getvalue()
