"""Images as arrays, and back."""

import pytest

numpy = pytest.importorskip('numpy')

from cv_bridge import CvBridge, CvBridgeError, cvtColor2, getCvType  # noqa: E402
from sensor_msgs.msg import Image  # noqa: E402
from std_msgs.msg import Header  # noqa: E402

BRIDGE = CvBridge()
PIXELS = numpy.array([[[10, 20, 30], [0, 255, 0]], [[255, 255, 255], [1, 2, 3]]], 'uint8')


@pytest.mark.parametrize('dtype, channels, encoding', [
    ('uint8', 1, '8UC1'), ('uint8', 3, '8UC3'), ('int8', 2, '8SC2'), ('uint16', 1, '16UC1'),
    ('int16', 4, '16SC4'), ('int32', 1, '32SC1'), ('float32', 1, '32FC1'), ('float64', 3, '64FC3'),
])
def test_an_array_comes_back_as_it_was(dtype, channels, encoding):
    shape = (3, 5) if channels == 1 else (3, 5, channels)
    image = (numpy.arange(15 * channels).reshape(shape) * 7 % 120).astype(dtype)
    message = BRIDGE.cv2_to_imgmsg(image, header=Header(frame_id='camera'))
    assert (message.encoding, message.height, message.width) == (encoding, 3, 5)
    assert message.step == 5 * image.itemsize * channels and message.header.frame_id == 'camera'
    again = BRIDGE.imgmsg_to_cv2(message)
    assert again.dtype == image.dtype and (again == image).all()
    again[0] = 0
    assert (BRIDGE.imgmsg_to_cv2(message) == image).all()
    # Columns of a larger array are not contiguous.
    part = BRIDGE.cv2_to_imgmsg(image[:, 1:3])
    assert (BRIDGE.imgmsg_to_cv2(part) == image[:, 1:3]).all()


def test_rows_may_be_padded_and_bytes_swapped():
    message = Image(height=2, width=3, encoding='16UC1', step=8, is_bigendian=1)
    message.data = bytes([0, 1, 0, 2, 0, 3, 9, 9, 1, 0, 2, 0, 3, 0, 9, 9])
    image = BRIDGE.imgmsg_to_cv2(message)
    assert image.tolist() == [[1, 2, 3], [256, 512, 768]] and image.dtype.isnative
    swapped = BRIDGE.cv2_to_imgmsg(image.astype('>u2'))
    assert swapped.is_bigendian == 1 and (BRIDGE.imgmsg_to_cv2(swapped) == image).all()


@pytest.mark.parametrize('encoding, expected', [
    ('rgb8', [[30, 20, 10], [0, 255, 0]]), ('bgra8', [[10, 20, 30, 255], [0, 255, 0, 255]]),
    ('rgba8', [[30, 20, 10, 255], [0, 255, 0, 255]]), ('mono8', [22, 150]),
    ('bgr16', [[2570, 5140, 7710], [0, 65535, 0]]), ('8UC3', [[10, 20, 30], [0, 255, 0]]),
    ('bgr8', [[10, 20, 30], [0, 255, 0]]), ('16SC3', [[10, 20, 30], [0, 255, 0]]),
])
def test_colours_are_converted(encoding, expected):
    message = BRIDGE.cv2_to_imgmsg(PIXELS, 'bgr8')
    image = BRIDGE.imgmsg_to_cv2(message, encoding)
    assert image[0].tolist() == expected
    assert BRIDGE.cv2_to_imgmsg(image, encoding).encoding == encoding


def test_conversions_are_those_of_opencv():
    cv2 = pytest.importorskip('cv2')
    generator = numpy.random.default_rng(1)
    for dtype, bits in (('uint8', 8), ('uint16', 16)):
        image = generator.integers(0, 1 << bits, (40, 50, 3)).astype(dtype)
        alpha = generator.integers(0, 1 << bits, (40, 50, 4)).astype(dtype)
        for source, target, code in (
                (image, 'mono', 'BGR2GRAY'), (image, 'rgb', 'BGR2RGB'), (image, 'bgra', 'BGR2BGRA'),
                (image, 'rgba', 'BGR2RGBA'), (alpha, 'bgr', 'BGRA2BGR'), (alpha, 'mono', 'BGRA2GRAY'),
                (alpha, 'rgba', 'BGRA2RGBA'), (image[..., 0], 'bgr', 'GRAY2BGR')):
            name = {2: 'mono', 3: 'bgr'}.get(source.ndim) if source is not alpha else 'bgra'
            ours = cvtColor2(source, f'{name}{bits}', f'{target}{bits}')
            theirs = cv2.cvtColor(numpy.ascontiguousarray(source), getattr(cv2, f'COLOR_{code}'))
            assert (ours == theirs).all(), (dtype, code)
    grey = generator.integers(0, 256, (8, 8)).astype('uint8')
    assert cvtColor2(grey, 'bayer_rggb8', 'bgr8').shape == (8, 8, 3)
    assert BRIDGE.imgmsg_to_cv2(
        BRIDGE.cv2_to_imgmsg(PIXELS[..., :2].copy(), 'yuv422'), 'rgb8').shape == (2, 2, 3)
    for kind in ('png', 'bmp'):
        message = BRIDGE.cv2_to_compressed_imgmsg(PIXELS, kind)
        assert (BRIDGE.compressed_imgmsg_to_cv2(message, 'rgb8') == PIXELS[..., ::-1]).all()


def test_what_does_not_fit_is_refused():
    message = BRIDGE.cv2_to_imgmsg(PIXELS, 'bgr8')
    for encoding in ('mono', '8UC1', 'bayer_rggb8', 'yuv422', '', '8UC', '12UC1'):
        with pytest.raises(CvBridgeError):
            BRIDGE.imgmsg_to_cv2(message, encoding)
    for image, encoding in ((PIXELS, 'mono8'), (PIXELS, 'bgr16'), (PIXELS[..., 0], 'rgb8'),
                            (numpy.zeros(3), 'passthrough'), (numpy.zeros((2, 2), 'c8'), '8UC1')):
        with pytest.raises(CvBridgeError):
            BRIDGE.cv2_to_imgmsg(image, encoding)
    with pytest.raises(TypeError):
        BRIDGE.cv2_to_imgmsg([[1]], 'mono8')
    for wrong in (Image(height=4, width=2, step=6, encoding='bgr8', data=bytes(12)),
                  Image(height=1, width=4, step=3, encoding='bgr8', data=bytes(12)),
                  Image(height=1 << 30, width=1, step=1 << 30, encoding='mono8', data=b'x')):
        with pytest.raises(CvBridgeError, match='bytes'):
            BRIDGE.imgmsg_to_cv2(wrong)
    assert BRIDGE.imgmsg_to_cv2(BRIDGE.cv2_to_imgmsg(numpy.zeros((0, 3), 'uint8'))).shape == (0, 3)


def test_types_have_the_numbers_of_opencv():
    assert [getCvType(each) for each in ('mono8', 'bgr8', '16UC1', '32FC1', 'rgba16', '64FC4')] == [
        0, 16, 2, 5, 26, 30]
    assert BRIDGE.encoding_to_dtype_with_channels('bgr16') == ('uint16', 3)
    assert BRIDGE.dtype_with_channels_to_cvtype2('float32', 2) == '32FC2'
    assert BRIDGE.cvtype_to_name[getCvType('bgra8')] == '8UC4'
