//! image_transport republish: topics, transports and who has to read. Its unit tests cover
//! the codecs.

use pteros::interfaces::sensor_msgs::msg::{CompressedImage, Image};

use crate::{Started, TIMEOUT, start, try_start};

fn started(line: &str) -> Started {
    let words: Vec<&str> = line.split_whitespace().collect();
    start("image_transport", "republish", &words)
}

fn image() -> Image {
    let mut image = Image {
        width: 8,
        height: 8,
        encoding: "rgb8".into(),
        step: 24,
        data: [200, 100, 50].repeat(64),
        ..Image::default()
    };
    image.header.frame_id = "camera".into();
    image
}

#[test]
fn a_raw_image_is_compressed_and_unpacked_again() {
    let packing = started("raw --ros-args -r in:=/camera/image -r out:=/small");
    let node = &packing.test;
    let packed = node
        .create_polled_subscription::<CompressedImage>("/small/compressed")
        .unwrap();
    let camera = node.create_publisher::<Image>("/camera/image").unwrap();
    assert!(camera.wait_for_matched(1, TIMEOUT), "somebody reads");
    camera.publish_owned(image()).unwrap();
    let packed = packed.take_timeout(TIMEOUT).expect("a JPEG");
    assert_eq!(packed.format, "rgb8; jpeg compressed bgr8");
    assert_eq!(packed.header.frame_id, "camera");

    let line = "--ros-args -p in_transport:=compressed -p out_transport:=raw -r in/compressed:=/small/compressed -r out:=/large";
    let unpacking = started(line);
    let node = &unpacking.test;
    let images = node.create_polled_subscription::<Image>("/large").unwrap();
    let small = node
        .create_publisher::<CompressedImage>("/small/compressed")
        .unwrap();
    assert!(small.wait_for_matched(1, TIMEOUT));
    small.publish_arc(packed.into_shared()).unwrap();
    let unpacked = images.take_timeout(TIMEOUT).expect("an image");
    assert_eq!((unpacked.encoding.as_str(), unpacked.step), ("rgb8", 24));
    assert_eq!((unpacked.width, unpacked.height), (8, 8));
    assert_eq!(unpacked.data.len(), image().data.len());
    for (value, expected) in unpacked.data.iter().zip(image().data.iter()) {
        assert!(value.abs_diff(*expected) <= 3, "{value} {expected}");
    }
}

#[test]
fn the_format_is_a_parameter_and_without_readers_nothing_is_subscribed() {
    let started = started("raw compressed --ros-args -p out.compressed.format:=png");
    let node = &started.test;
    let camera = node.create_publisher::<Image>("/in").unwrap();
    let packed = node
        .create_polled_subscription::<CompressedImage>("/out/compressed")
        .unwrap();
    assert!(camera.wait_for_matched(1, TIMEOUT));
    camera.publish_owned(image()).unwrap();
    let png = packed.take_timeout(TIMEOUT).expect("a PNG");
    assert_eq!(png.format, "rgb8; png compressed bgr8");
    let topics = started.context.graph().topics();
    assert!(
        !topics.iter().any(|topic| topic.name == "/out"),
        "{topics:?}"
    );
    drop(packed);
    let graph = started.context.graph();
    assert!(graph.wait_until(TIMEOUT, || camera.matched_count() == 0));
}

#[test]
fn wrong_transports_name_themselves() {
    for (line, reason) in [
        ("theora raw", "in_transport = \"theora\""),
        ("raw h264", "out_transport = \"h264\""),
        ("raw in:=/camera out:=/x", "too many arguments"),
        (
            "raw --ros-args -p out.compressed.jpeg_quality:=101",
            "out.compressed.jpeg_quality",
        ),
    ] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let problem = try_start("image_transport", "republish", &words).err();
        let problem = problem.expect(line);
        assert!(problem.contains(reason), "{problem}");
    }
}
