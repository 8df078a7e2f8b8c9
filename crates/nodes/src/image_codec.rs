//! Images in JPEG and PNG, as the transport `compressed` of ROS 2 has them.
//!
//! A `CompressedImage` names in its format the pixels' encoding, the codec and the order
//! of the colours: `rgb8; jpeg compressed bgr8`.

use std::io::Cursor;

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use pteros::interfaces::sensor_msgs::msg::{CompressedImage, Image};
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

/// The largest image that is unpacked, in bytes of its pixels, before and after each
/// conversion. A few kilobytes of compressed data could ask for gigabytes.
const BYTES_MAX: usize = 1 << 27;
const ENCODINGS: &str =
    "mono8, mono16, 8UC1, 16UC1, rgb8, bgr8, rgba8, bgra8, rgb16, bgr16, rgba16 and bgra16";

/// How images are compressed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Codec {
    /// With a quality from 1 to 100.
    Jpeg(u8),
    /// With a level from 0 to 9.
    Png(u8),
}

/// Which pixels are made of a compressed image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    Unchanged,
    Gray,
    Color,
}

/// An encoding of pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Encoding {
    channels: usize,
    /// Of a channel: 1 or 2.
    bytes: usize,
    is_bgr: bool,
}

impl Encoding {
    fn of(name: &str) -> Option<Self> {
        let (channels, bytes, is_bgr) = match name {
            "mono8" | "8UC1" => (1, 1, false),
            "mono16" | "16UC1" => (1, 2, false),
            "rgb8" => (3, 1, false),
            "bgr8" => (3, 1, true),
            "rgba8" => (4, 1, false),
            "bgra8" => (4, 1, true),
            "rgb16" => (3, 2, false),
            "bgr16" => (3, 2, true),
            "rgba16" => (4, 2, false),
            "bgra16" => (4, 2, true),
            _ => return None,
        };
        Some(Self {
            channels,
            bytes,
            is_bgr,
        })
    }
}

/// Pixels without padding; two bytes of a channel have the higher first.
struct Pixels {
    width: usize,
    height: usize,
    encoding: Encoding,
    data: Vec<u8>,
}

impl Pixels {
    fn of(image: &Image) -> Result<Self, String> {
        let Image {
            encoding,
            data,
            step,
            ..
        } = image;
        let known = Encoding::of(encoding).ok_or_else(|| {
            format!("the encoding \"{encoding}\" of the image is not known; there are {ENCODINGS}")
        })?;
        let (width, height) = (image.width as usize, image.height as usize);
        let row = width.saturating_mul(known.channels * known.bytes);
        let step = *step as usize;
        if row == 0 || height == 0 || step < row || data.len() < step.saturating_mul(height) {
            return Err(format!(
                "an image of {width} x {height} pixels in {encoding} has {} bytes with a step of {step}; {height} rows of {row} bytes are needed",
                data.len()
            ));
        }
        let rows = data.chunks_exact(step).take(height);
        let data = rows.filter_map(|padded| padded.get(..row)).flatten();
        let mut pixels = Self {
            width,
            height,
            encoding: known,
            data: data.copied().collect(),
        };
        if image.is_bigendian == 0 {
            pixels.swap_bytes();
        }
        Ok(pixels)
    }

    fn swap_bytes(&mut self) {
        if self.encoding.bytes == 2 {
            for value in self.data.chunks_exact_mut(2) {
                value.reverse();
            }
        }
    }

    /// Puts each pixel together from the channels of these numbers; a number that is not
    /// there is full.
    fn pick(&mut self, channels: &[usize]) {
        let Encoding {
            channels: old,
            bytes,
            ..
        } = self.encoding;
        if channels.iter().copied().eq(0..old) {
            return;
        }
        let mut data = Vec::with_capacity(self.width * self.height * channels.len() * bytes);
        for pixel in self.data.chunks_exact(old * bytes) {
            for channel in channels {
                let value = pixel.get(channel * bytes..(channel + 1) * bytes);
                data.extend_from_slice(value.unwrap_or(&[u8::MAX; 2][..bytes]));
            }
        }
        self.data = data;
        self.encoding.channels = channels.len();
    }

    /// Sets the order of the colours and their number; gray becomes a colour.
    fn set_color(&mut self, channels: usize, is_bgr: bool) {
        let order: [usize; 4] = match (self.encoding.channels, self.encoding.is_bgr == is_bgr) {
            (1, _) => [0, 0, 0, usize::MAX >> 2],
            (_, true) => [0, 1, 2, 3],
            (_, false) => [2, 1, 0, 3],
        };
        self.pick(&order[..channels.min(4)]);
        self.encoding.is_bgr = is_bgr;
    }

    fn set_gray(&mut self) {
        if self.encoding.channels == 1 {
            return;
        }
        self.set_color(3, false);
        let bytes = self.encoding.bytes;
        let mut data = Vec::with_capacity(self.width * self.height * bytes);
        for pixel in self.data.chunks_exact(3 * bytes) {
            let mut values = pixel.chunks_exact(bytes).map(number);
            let mut next = || values.next().unwrap_or(0);
            let (red, green, blue) = (next(), next(), next());
            let gray = (red * 299 + green * 587 + blue * 114 + 500) / 1000;
            data.extend_from_slice(&gray.to_be_bytes()[4 - bytes..]);
        }
        self.data = data;
        self.encoding.channels = 1;
        self.encoding.is_bgr = false;
    }

    /// Sets the bytes of a channel. White stays white, or values are multiplied with 256.
    fn set_bytes(&mut self, bytes: usize, by_256: bool) {
        let old = &self.data;
        self.data = match (self.encoding.bytes, bytes) {
            (2, 1) => {
                let values = old.chunks_exact(2).map(number);
                let scaled = values.map(|value| (value * 255 + 32_767) / 65_535);
                scaled
                    .map(|value| u8::try_from(value).unwrap_or(u8::MAX))
                    .collect()
            }
            (1, 2) => {
                let low = |value: u8| if by_256 { 0 } else { value };
                old.iter().flat_map(|value| [*value, low(*value)]).collect()
            }
            _ => return,
        };
        self.encoding.bytes = bytes;
    }

    fn into_image(mut self, encoding: &str) -> Image {
        self.swap_bytes();
        let row = self.width * self.encoding.channels * self.encoding.bytes;
        let short = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
        Image {
            width: short(self.width),
            height: short(self.height),
            encoding: encoding.into(),
            step: short(row),
            data: self.data,
            ..Image::default()
        }
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0, |high, byte| high << 8 | u32::from(*byte))
}

/// Compresses an image.
///
/// # Errors
/// An encoding that the codec does not know, or an image that is no JPEG's size.
pub(crate) fn encode(image: &Image, codec: Codec) -> Result<CompressedImage, String> {
    let mut pixels = Pixels::of(image)?;
    let is_color = pixels.encoding.channels > 1;
    let (data, codec) = match codec {
        Codec::Jpeg(quality) => {
            pixels.set_bytes(1, false);
            let target = if is_color { "bgr8" } else { "mono8" };
            (jpeg(&pixels, quality)?, format!("jpeg compressed {target}"))
        }
        Codec::Png(level) => {
            if is_color {
                pixels.set_color(3, false);
            }
            let data = png(&pixels, level).map_err(|error| format!("PNG: {error}"))?;
            let target = if is_color {
                format!("bgr{}", 8 * pixels.encoding.bytes)
            } else {
                String::new()
            };
            (data, format!("png compressed {target}"))
        }
    };
    Ok(CompressedImage {
        header: image.header.clone(),
        format: format!("{}; {codec}", image.encoding),
        data,
    })
}

fn jpeg(pixels: &Pixels, quality: u8) -> Result<Vec<u8>, String> {
    let Pixels { width, height, .. } = *pixels;
    let (Ok(columns), Ok(rows)) = (u16::try_from(width), u16::try_from(height)) else {
        return Err(format!(
            "an image of {width} x {height} pixels is too large for JPEG (65535); use the format png"
        ));
    };
    let color = match (pixels.encoding.channels, pixels.encoding.is_bgr) {
        (1, _) => ColorType::Luma,
        (3, false) => ColorType::Rgb,
        (3, true) => ColorType::Bgr,
        (_, false) => ColorType::Rgba,
        (_, true) => ColorType::Bgra,
    };
    let mut data = Vec::new();
    let mut encoder = Encoder::new(&mut data, quality);
    // As libjpeg's default.
    encoder.set_sampling_factor(SamplingFactor::R_4_2_0);
    let encoded = encoder.encode(&pixels.data, columns, rows, color);
    encoded.map_err(|error| format!("JPEG: {error}"))?;
    Ok(data)
}

fn png(pixels: &Pixels, level: u8) -> Result<Vec<u8>, png::EncodingError> {
    let short = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
    let mut data = Vec::new();
    let mut encoder = png::Encoder::new(&mut data, short(pixels.width), short(pixels.height));
    encoder.set_color(if pixels.encoding.channels == 1 {
        png::ColorType::Grayscale
    } else {
        png::ColorType::Rgb
    });
    encoder.set_depth(if pixels.encoding.bytes == 1 {
        png::BitDepth::Eight
    } else {
        png::BitDepth::Sixteen
    });
    encoder.set_deflate_compression(match level {
        0 => png::DeflateCompression::NoCompression,
        level => png::DeflateCompression::Level(level),
    });
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels.data)?;
    writer.finish()?;
    Ok(data)
}

/// Unpacks a compressed image.
///
/// # Errors
/// Data that are no JPEG and no PNG, or are too large.
pub(crate) fn decode(message: &CompressedImage, mode: Mode) -> Result<Image, String> {
    let is_jpeg = message.data.starts_with(&[0xff, 0xd8]);
    let mut pixels = if is_jpeg {
        read_jpeg(&message.data).map_err(|error| format!("JPEG: {error}"))?
    } else if message.data.starts_with(b"\x89PNG") {
        read_png(&message.data).map_err(|error| format!("PNG: {error}"))?
    } else {
        return Err(format!(
            "the data of the format \"{}\" are no JPEG and no PNG",
            message.format
        ));
    };
    match mode {
        Mode::Unchanged => {}
        Mode::Gray => pixels.set_gray(),
        Mode::Color => {
            check_size(pixels.width, pixels.height, 3)?;
            pixels.set_bytes(1, false);
            pixels.set_color(3, false);
        }
    }
    let (encoding, codec) = match message.format.split_once(';') {
        Some((encoding, codec)) => (encoding, codec),
        // Of cameras that name no encoding.
        None => {
            let encoding = match (pixels.encoding.channels, pixels.encoding.bytes) {
                (1, 1) => "mono8",
                (1, _) => "mono16",
                (_, 1) => "bgr8",
                (..) => "bgr16",
            };
            (encoding, "compressed bgr")
        }
    };
    let wanted = Encoding::of(encoding).unwrap_or(Encoding {
        channels: 1,
        bytes: if encoding.ends_with("16") { 2 } else { 1 },
        is_bgr: false,
    });
    // Colours are converted before their bytes.
    let bytes = wanted.bytes.max(pixels.encoding.bytes);
    check_size(pixels.width, pixels.height, wanted.channels * bytes)?;
    if wanted.channels == 1 {
        pixels.set_gray();
    } else {
        // Without "bgr" the colours were taken for others when they were compressed.
        let is_swapped = !codec.contains("compressed bgr");
        pixels.set_color(wanted.channels, wanted.is_bgr != is_swapped);
    }
    pixels.set_bytes(wanted.bytes, is_jpeg);
    let mut image = pixels.into_image(encoding);
    image.header = message.header.clone();
    Ok(image)
}

fn read_jpeg(data: &[u8]) -> Result<Pixels, String> {
    let text = |error: zune_jpeg::errors::DecodeErrors| error.to_string();
    // A file that is cut off is refused, and not filled up with gray.
    let options = DecoderOptions::default().set_strict_mode(true);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(data), options);
    decoder.decode_headers().map_err(text)?;
    let is_gray = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let (space, channels) = if is_gray {
        (ColorSpace::Luma, 1)
    } else {
        (ColorSpace::RGB, 3)
    };
    let (width, height) = decoder.dimensions().ok_or("it has no size")?;
    check_size(width, height, channels)?;
    let options = options.jpeg_set_out_colorspace(space);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(data), options);
    Ok(Pixels {
        data: decoder.decode().map_err(text)?,
        width,
        height,
        encoding: Encoding {
            channels,
            bytes: 1,
            is_bgr: false,
        },
    })
}

fn read_png(data: &[u8]) -> Result<Pixels, String> {
    let mut decoder = png::Decoder::new(Cursor::new(data));
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(|error| error.to_string())?;
    let bytes = reader.output_buffer_size().unwrap_or(usize::MAX);
    check_size(bytes, 1, 1)?;
    let mut data = vec![0; bytes];
    let frame = reader
        .next_frame(&mut data)
        .map_err(|error| error.to_string())?;
    data.truncate(frame.buffer_size());
    let mut pixels = Pixels {
        width: frame.width as usize,
        height: frame.height as usize,
        encoding: Encoding {
            channels: frame.color_type.samples(),
            bytes: if frame.bit_depth == png::BitDepth::Sixteen {
                2
            } else {
                1
            },
            is_bgr: false,
        },
        data,
    };
    if pixels.encoding.channels == 2 {
        // Gray with alpha.
        pixels.pick(&[0]);
    }
    Ok(pixels)
}

fn check_size(width: usize, height: usize, pixel: usize) -> Result<(), String> {
    let bytes = width.saturating_mul(height).saturating_mul(pixel);
    if bytes <= BYTES_MAX {
        return Ok(());
    }
    Err(format!(
        "its pixels have {bytes} bytes, more than {BYTES_MAX}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image of 16 x 8 pixels in four colours, with a padded row.
    fn image(encoding: &str) -> Image {
        let known = Encoding::of(encoding).unwrap();
        let row = 16 * known.channels * known.bytes;
        let mut image = Image {
            width: 16,
            height: 8,
            encoding: encoding.into(),
            step: u32::try_from(row + 3).unwrap(),
            ..Image::default()
        };
        image.header.frame_id = "camera".into();
        let mut data = Vec::new();
        for y in 0..8 {
            for x in 0..16 {
                let colors = [[200, 20, 40], [10, 150, 60], [30, 60, 220], [90, 90, 90]];
                let mut color = colors[x / 8 + y / 4 * 2].to_vec();
                if known.is_bgr {
                    color.reverse();
                }
                color.push(255);
                for value in &color[..known.channels] {
                    data.extend(std::iter::repeat_n(*value, known.bytes));
                }
            }
            data.extend([9; 3]);
        }
        image.data = data;
        image
    }

    fn without_padding(image: &Image) -> Vec<u8> {
        let mut pixels = Pixels::of(image).unwrap();
        pixels.swap_bytes();
        pixels.data
    }

    #[test]
    fn png_keeps_every_value() {
        for (encoding, format) in [
            ("mono8", "mono8; png compressed "),
            ("16UC1", "16UC1; png compressed "),
            ("rgb8", "rgb8; png compressed bgr8"),
            ("bgr8", "bgr8; png compressed bgr8"),
            ("rgba8", "rgba8; png compressed bgr8"),
            ("bgra8", "bgra8; png compressed bgr8"),
            ("bgr16", "bgr16; png compressed bgr16"),
        ] {
            let image = image(encoding);
            let packed = encode(&image, Codec::Png(3)).unwrap();
            assert_eq!(packed.format, format);
            assert_eq!(packed.header.frame_id, "camera");
            let unpacked = decode(&packed, Mode::Unchanged).unwrap();
            assert_eq!(unpacked.encoding, encoding);
            assert_eq!((unpacked.width, unpacked.height), (16, 8));
            let expected = without_padding(&image);
            assert_eq!(unpacked.data[..], expected[..], "{encoding}");
            assert_eq!(unpacked.step * 8, u32::try_from(expected.len()).unwrap());
        }
    }

    #[test]
    fn jpeg_keeps_colours_roughly() {
        for (encoding, format, tolerance) in [
            ("mono8", "mono8; jpeg compressed mono8", 8),
            ("rgb8", "rgb8; jpeg compressed bgr8", 24),
            ("bgr8", "bgr8; jpeg compressed bgr8", 24),
            ("bgra8", "bgra8; jpeg compressed bgr8", 24),
        ] {
            let image = image(encoding);
            let packed = encode(&image, Codec::Jpeg(95)).unwrap();
            assert_eq!(packed.format, format);
            let unpacked = decode(&packed, Mode::Unchanged).unwrap();
            assert_eq!(unpacked.encoding, encoding);
            let expected = without_padding(&image);
            assert_eq!(unpacked.data.len(), expected.len());
            let channels = Encoding::of(encoding).unwrap().channels;
            for (at, (value, expected)) in unpacked.data.iter().zip(&expected).enumerate() {
                let (x, y) = (at / channels % 16, at / channels / 16);
                // Colours have half the resolution, so they run at the edges.
                if (2..6).contains(&(x % 8)) && (1..3).contains(&(y % 4)) {
                    assert!(
                        value.abs_diff(*expected) <= tolerance,
                        "{encoding} {x} {y}: {value} for {expected}"
                    );
                }
            }
        }
        let deep = encode(&image("mono16"), Codec::Jpeg(95)).unwrap();
        let unpacked = decode(&deep, Mode::Unchanged).unwrap();
        assert_eq!(
            (unpacked.data[0], unpacked.encoding.as_str()),
            (0, "mono16")
        );
        assert!(unpacked.data[1].abs_diff(200) < 8, "multiplied with 256");
    }

    #[test]
    fn a_format_without_encoding_and_the_modes_choose_the_pixels() {
        let mut packed = encode(&image("rgb8"), Codec::Png(0)).unwrap();
        let gray = decode(&packed, Mode::Gray).unwrap();
        assert_eq!(
            gray.data[..3],
            [76, 76, 76],
            "the encoding rgb8 has three channels"
        );
        packed.format = "png".into();
        let color = decode(&packed, Mode::Unchanged).unwrap();
        assert_eq!(
            (color.encoding.as_str(), &color.data[..3]),
            ("bgr8", &[40, 20, 200][..])
        );
        let gray = decode(&packed, Mode::Gray).unwrap();
        assert_eq!((gray.encoding.as_str(), gray.data[0]), ("mono8", 76));
        packed.format = "rgb8; png compressed rgb8".into();
        let swapped = decode(&packed, Mode::Unchanged).unwrap();
        assert_eq!(swapped.data[..3], [40, 20, 200]);
    }

    #[test]
    fn a_small_file_cannot_ask_for_gigabytes() {
        let side = 4100;
        let gray = Image {
            width: side,
            height: side,
            encoding: "mono8".into(),
            step: side,
            data: vec![0; (side * side) as usize],
            ..Image::default()
        };
        for codec in [Codec::Png(9), Codec::Jpeg(1)] {
            let mut packed = encode(&gray, codec).unwrap();
            assert!(packed.data.len() < 1 << 20, "{}", packed.data.len());
            packed.format = "rgba16; compressed bgr".into();
            let problem = decode(&packed, Mode::Unchanged).unwrap_err();
            assert!(problem.contains("more than 134217728"), "{problem}");
        }
    }

    #[test]
    fn a_jpeg_that_is_cut_off_is_refused() {
        let large = Image {
            width: 64,
            height: 64,
            encoding: "mono8".into(),
            step: 64,
            data: (0..4096_u32).map(|at| (at * at).to_le_bytes()[0]).collect(),
            ..Image::default()
        };
        let mut packed = encode(&large, Codec::Jpeg(95)).unwrap();
        packed.data.truncate(packed.data.len() / 2);
        let problem = decode(&packed, Mode::Unchanged).unwrap_err();
        assert!(problem.contains("JPEG: "), "{problem}");
    }

    #[test]
    fn wrong_images_name_what_is_wrong() {
        let mut short = image("rgb8");
        short.height = 9;
        let mut unknown = image("rgb8");
        unknown.encoding = "nv21".into();
        for (image, part) in [
            (short, "9 rows of 48 bytes are needed"),
            (unknown, "\"nv21\""),
        ] {
            let problem = encode(&image, Codec::Png(3)).unwrap_err();
            assert!(problem.contains(part), "{problem}");
        }
        for (data, part) in [
            (&b"GIF89a"[..], "no JPEG and no PNG"),
            (b"\x89PNG\r\n\x1a\n", "PNG: "),
            (b"\xff\xd8\xff\xe0\0\x10", "JPEG: "),
        ] {
            let message = CompressedImage {
                data: data.to_vec(),
                ..CompressedImage::default()
            };
            let problem = decode(&message, Mode::Unchanged).unwrap_err();
            assert!(problem.contains(part), "{problem}");
        }
    }
}
