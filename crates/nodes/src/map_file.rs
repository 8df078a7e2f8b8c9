//! Maps on disk: the YAML file and the image of nav2_map_server, as an occupancy grid.
//!
//! Images are PGM (P2 and P5) and PNG. The modes trinary, scale and raw decide what a
//! pixel's brightness means.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use pteros::interfaces::nav_msgs::msg::OccupancyGrid;
use pteros::msg::regular_file;
use pteros::msg::yaml::{YamlContent, YamlNode};
use pteros::tf::Isometry;

/// The largest YAML file, and the largest image.
const YAML_BYTES_MAX: u64 = 1 << 20;
const IMAGE_BYTES_MAX: u64 = 1 << 30;
/// Most cells of a map: 16 384 × 16 384. A larger one does not fit into one message.
const CELLS_MAX: usize = 1 << 28;

/// Why a map was not read; `nav_msgs/srv/LoadMap` has a result for each.
#[derive(Debug)]
pub(crate) enum MapError {
    /// No file is named.
    Missing(String),
    /// The YAML file is missing or wrong.
    Metadata(String),
    /// The image is missing or wrong.
    Data(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Trinary,
    Scale,
    Raw,
}

/// The YAML file of a map.
#[derive(Debug)]
struct Metadata {
    image: String,
    resolution: f64,
    origin: [f64; 3],
    free_threshold: f64,
    occupied_threshold: f64,
    mode: Mode,
    negate: bool,
}

/// A pixel: brightness (of its colours, and with its opacity), and opacity; 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pixel {
    shade: f64,
    shade_with_opacity: f64,
    is_opaque: bool,
}

struct Image {
    width: usize,
    height: usize,
    /// Rows from the top.
    pixels: Vec<Pixel>,
}

/// Reads a map. Its stamps and its frame are not set.
pub(crate) fn read(path: &Path) -> Result<OccupancyGrid, MapError> {
    let text = regular_file::read_text(path, YAML_BYTES_MAX)
        .map_err(|error| MapError::Metadata(format!("{}: {error}", path.display())))?;
    let wrong = |problem| MapError::Metadata(format!("{}: {problem}", path.display()));
    let metadata = Metadata::parse(&text).map_err(wrong)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let file = folder.join(&metadata.image);
    let image = Image::read(&file)
        .map_err(|problem| MapError::Data(format!("{}: {problem}", file.display())))?;
    Ok(metadata.grid(&image))
}

impl Metadata {
    fn parse(text: &str) -> Result<Self, String> {
        let document = YamlNode::read(text).map_err(|error| error.to_string())?;
        let entries = match document.content {
            YamlContent::Mapping(entries) => entries,
            _ => return Err("it is no mapping".into()),
        };
        let find = |key: &str| entries.iter().find(|entry| entry.key == key);
        let value = |key: &str| {
            let entry = find(key).ok_or_else(|| format!("there is no '{key}'"))?;
            Ok::<_, String>(&entry.value)
        };
        let number = |key: &str| float(key, value(key)?);
        let origin = match &value("origin")?.content {
            YamlContent::List(items) => items.as_slice(),
            _ => &[],
        };
        let origin = origin.iter().map(|item| float("origin", item));
        let origin: Vec<f64> = origin.collect::<Result<_, _>>()?;
        let count = origin.len();
        let origin = origin.try_into().map_err(|_| {
            format!("value of the 'origin' tag should have 3 elements, not {count}")
        })?;
        let image = value("image")?.found_scalar();
        if image.is_empty() {
            return Err("The image tag was empty.".into());
        }
        Ok(Self {
            image: image.into(),
            resolution: number("resolution")?,
            origin,
            free_threshold: number("free_thresh")?,
            occupied_threshold: number("occupied_thresh")?,
            mode: match find("mode").map_or("trinary", |entry| entry.value.found_scalar()) {
                "trinary" => Mode::Trinary,
                "scale" => Mode::Scale,
                "raw" => Mode::Raw,
                other => return Err(format!("unknown mode '{other}': trinary, scale or raw")),
            },
            negate: match value("negate")?.found_scalar() {
                "0" | "false" | "False" | "no" | "off" => false,
                "1" | "true" | "True" | "yes" | "on" => true,
                other => return Err(format!("negate: '{other}' is neither 0 nor 1")),
            },
        })
    }

    fn grid(&self, image: &Image) -> OccupancyGrid {
        let mut grid = OccupancyGrid::default();
        let size = |length| u32::try_from(length).unwrap_or(u32::MAX);
        grid.info.width = size(image.width);
        grid.info.height = size(image.height);
        #[allow(clippy::cast_possible_truncation, reason = "the message has a float32")]
        let resolution = self.resolution as f32;
        grid.info.resolution = resolution;
        let [x, y, yaw] = self.origin;
        grid.info.origin = Isometry::planar(x, y, yaw).into();
        // The grid begins at the bottom.
        let rows = image.pixels.chunks(image.width.max(1)).rev();
        grid.data = rows.flatten().map(|pixel| self.cell(*pixel)).collect();
        grid
    }

    /// The value of a cell: 0 free, 100 occupied, -1 unknown.
    #[allow(clippy::cast_possible_truncation, reason = "casts of numbers saturate")]
    fn cell(&self, pixel: Pixel) -> i8 {
        let shade = match self.mode {
            Mode::Trinary => pixel.shade_with_opacity,
            Mode::Scale | Mode::Raw => pixel.shade,
        };
        let occupancy = if self.negate { shade } else { 1.0 - shade };
        let (free, occupied) = (self.free_threshold, self.occupied_threshold);
        match self.mode {
            Mode::Raw => match (shade * 255.0).round() {
                percent if percent <= 100.0 => percent as i8,
                _ => -1,
            },
            Mode::Scale if !pixel.is_opaque => -1,
            _ if occupied < occupancy => 100,
            _ if occupancy < free => 0,
            Mode::Trinary => -1,
            Mode::Scale => ((occupancy - free) / (occupied - free) * 100.0).round_ties_even() as i8,
        }
    }
}

trait Scalar {
    fn found_scalar(&self) -> &str;
}

impl Scalar for YamlNode {
    /// The text of a scalar; empty for another value.
    fn found_scalar(&self) -> &str {
        match &self.content {
            YamlContent::Scalar { text, .. } => text,
            _ => "",
        }
    }
}

fn float(key: &str, node: &YamlNode) -> Result<f64, String> {
    let number = node
        .found_scalar()
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| format!("'{key}' is {}, not a number", node.found_text()))
}

impl Image {
    fn read(path: &Path) -> Result<Self, String> {
        let file = regular_file::open(path).map_err(|error| error.to_string())?;
        let length = file.metadata().map_err(|error| error.to_string())?.len();
        if length > IMAGE_BYTES_MAX {
            return Err(format!("{length} bytes, more than {IMAGE_BYTES_MAX}"));
        }
        let is_png = path
            .extension()
            .is_some_and(|end| end.eq_ignore_ascii_case("png"));
        if is_png {
            return Self::of_png(file);
        }
        let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
        Self::of_pgm(&bytes).ok_or_else(|| "it is no whole PGM or PNG image".into())
    }

    fn of_png(file: File) -> Result<Self, String> {
        let mut decoder = png::Decoder::new(BufReader::new(file));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().map_err(|error| error.to_string())?;
        let (width, height) = reader.info().size();
        let (width, height) = (width as usize, height as usize);
        check_size(width, height)?;
        let bytes = reader.output_buffer_size().unwrap_or_default();
        let mut data = vec![0; bytes];
        let frame = reader
            .next_frame(&mut data)
            .map_err(|error| error.to_string())?;
        let channels = frame.color_type.samples();
        let has_alpha = matches!(channels, 2 | 4);
        let pixels = data
            .chunks_exact(channels)
            .take(width * height)
            .map(|samples| {
                let samples: Vec<f64> = samples
                    .iter()
                    .map(|sample| f64::from(*sample) / 255.0)
                    .collect();
                let (colours, opacity) = samples.split_at(channels - usize::from(has_alpha));
                let opacity = opacity.first().copied();
                #[allow(clippy::cast_precision_loss, reason = "at most four")]
                let shade = colours.iter().sum::<f64>() / colours.len() as f64;
                Pixel {
                    shade,
                    // Upstream counts opacity as a fourth of red, green, blue and itself.
                    shade_with_opacity: opacity
                        .map_or(shade, |opacity| (shade * 3.0 + opacity) / 4.0),
                    is_opaque: opacity.is_none_or(|opacity| opacity >= 1.0),
                }
            });
        Ok(Self {
            width,
            height,
            pixels: pixels.collect(),
        })
    }

    /// A PGM file with text (P2) or bytes (P5).
    fn of_pgm(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.get(2..)?;
        let mut next = || -> Option<usize> {
            let (number, after) = leading_number(rest)?;
            rest = after;
            Some(number)
        };
        let (width, height, largest) = (next()?, next()?, next()?);
        check_size(width, height).ok()?;
        let count = width * height;
        let samples: Vec<usize> = match (bytes.get(..2)?, largest) {
            (b"P2", _) => (0..count).map(|_| next()).collect::<Option<_>>()?,
            (b"P5", 1..256) => rest
                .get(1..=count)?
                .iter()
                .map(|one| usize::from(*one))
                .collect(),
            (b"P5", 256..65536) => {
                let pairs = rest.get(1..=count * 2)?.chunks_exact(2);
                pairs
                    .map(|pair| usize::from(pair[0]) << 8 | usize::from(pair[1]))
                    .collect()
            }
            _ => return None,
        };
        #[allow(clippy::cast_precision_loss, reason = "at most 65535")]
        let pixel = |sample: usize| {
            let shade = (sample as f64 / largest.max(1) as f64).min(1.0);
            Pixel {
                shade,
                shade_with_opacity: shade,
                is_opaque: true,
            }
        };
        Some(Self {
            width,
            height,
            pixels: samples.into_iter().map(pixel).collect(),
        })
    }
}

/// The number after blanks and comments, and what follows it.
fn leading_number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut rest = bytes;
    loop {
        rest = rest.trim_ascii_start();
        if !rest.starts_with(b"#") {
            break;
        }
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        rest = rest.get(end..)?;
    }
    let end = rest
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(rest.len());
    let (digits, after) = rest.split_at(end);
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, after))
}

fn check_size(width: usize, height: usize) -> Result<(), String> {
    match width.checked_mul(height) {
        Some(1..=CELLS_MAX) => Ok(()),
        _ => Err(format!(
            "{width} x {height} pixels; 1 to {CELLS_MAX} are read"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_maps_brightness_as_upstream() {
        let yaml = |mode: &str, negate: u8| {
            Metadata::parse(&format!(
                "image: a.pgm\nresolution: 0.05\norigin: [-1, 2, 0]\nnegate: {negate}\noccupied_thresh: 0.65\nfree_thresh: 0.25\nmode: {mode}\n"
            ))
            .unwrap()
        };
        let image =
            Image::of_pgm(b"P2 # made by hand\n2 3 255\n0 100 \n127 200 # grey\n 254 255\n");
        let image = image.unwrap();
        for (mode, negate, cells) in [
            ("trinary", 0, [0, 0, -1, 0, 100, -1]),
            ("trinary", 1, [100, 100, -1, 100, 0, -1]),
            ("scale", 0, [0, 0, 63, 0, 100, 89]),
            ("raw", 0, [-1, -1, -1, -1, 0, 100]),
        ] {
            assert_eq!(
                yaml(mode, negate).grid(&image).data,
                cells,
                "{mode} {negate}"
            );
        }
        let binary = Image::of_pgm(b"P5\n2 3\n255\n\x00\x64\x7f\xc8\xfe\xff").unwrap();
        assert_eq!(binary.pixels, image.pixels);
    }

    #[test]
    fn wrong_files_are_refused_with_the_reason() {
        for (text, reason) in [
            ("image: a", "there is no 'origin'"),
            ("origin: [1, 2]", "should have 3 elements, not 2"),
            ("- a", "no mapping"),
            ("origin: [0, 0, x]", "'origin' is x, not a number"),
        ] {
            let problem = Metadata::parse(text).unwrap_err();
            assert!(problem.contains(reason), "{text}: {problem}");
        }
        for bytes in [
            &b"P5\n2 2\n255\nab"[..],
            b"P6 1 1 255 abc",
            b"P2 1",
            b"",
            b"P5 99999999 99999999 255 a",
        ] {
            assert!(Image::of_pgm(bytes).is_none(), "{bytes:?}");
        }
    }
}
