//! Many readers with content filters that their writer may apply: announced filters
//! cost a writer no more than its limits.

use pteros_test_support::rtps::pair;

use std::sync::Arc;

use pair::{Pair, R, W, route, transient_local};
use pteros_msg::cdr::Representation;
use pteros_msg::describe::{Field, FieldType, IndividualTypeDescription, TypeDescription, type_id};
use pteros_msg::dynamic::{DynamicMessage, DynamicType};
use pteros_rtps::content_filter::ContentFilter;
use pteros_rtps::id::{EntityId, GuidPrefix, VendorId};
use pteros_rtps::qos::EndpointQos;
use pteros_rtps::writer::ReaderProxyConfig;

/// The limits of different filters, and of readers, in a writer.
const FILTERS_MAX: usize = 32;
const READERS_MAX: usize = 256;

fn ty() -> DynamicType {
    let field = |name: &str, type_id| Field {
        name: name.into(),
        field_type: FieldType {
            type_id,
            ..FieldType::default()
        },
        ..Field::default()
    };
    DynamicType::new(&TypeDescription {
        type_description: IndividualTypeDescription {
            type_name: "test/msg/Text".into(),
            fields: vec![field("n", type_id::INT32), field("text", type_id::STRING)],
            ..IndividualTypeDescription::default()
        },
        referenced: Vec::new(),
    })
    .unwrap()
}

fn filter(expression: &str) -> Arc<ContentFilter> {
    ContentFilter::new("rt/n", &ty(), expression, &[]).unwrap()
}

fn write(pair: &mut Pair, w: W, n: i32, text: &str) {
    let mut message = DynamicMessage::new(&ty());
    message.set("n", n).unwrap();
    message.set("text", text).unwrap();
    pair.write(w, &message.to_payload(Representation::Xcdr1));
}

fn joined(pair: &mut Pair, w: W, node: usize, qos: EndpointQos, expression: &str) -> R {
    let r = pair.reader_with(node, qos, |config| {
        config.content_filter = Some(filter(expression));
    });
    pair.join(w, r);
    r
}

/// Samples that the writer did not send, and samples that the reader received and
/// dropped.
fn filtered(pair: &Pair, w: W, r: R) -> (u64, u64) {
    let of_writer = pair.writers[w.0].machine.stats().filtered;
    (of_writer, pair.readers[r.0].machine.stats().filtered)
}

#[test]
fn filters_beyond_the_limit_are_left_to_their_readers() {
    let mut pair = Pair::new();
    let w = pair.writer(0, EndpointQos::default());
    let mut readers = Vec::new();
    for n in 0..FILTERS_MAX + 2 {
        // Samples for readers beyond the limit reach no other reader.
        let node = if n < FILTERS_MAX { 1 + n % 26 } else { n - 4 };
        let (qos, wanted) = (EndpointQos::default(), format!("n < {n}"));
        readers.push(joined(&mut pair, w, node, qos, &wanted));
    }
    // A known filter costs nothing.
    let same = joined(&mut pair, w, 30, EndpointQos::default(), "n < 0");
    pair.run_ms(500);
    write(&mut pair, w, 1_000, "");
    write(&mut pair, w, -1, "");
    pair.run_ms(500);
    assert_eq!(filtered(&pair, w, same), (FILTERS_MAX as u64 + 1, 0));
    for (n, r) in readers.iter().enumerate() {
        let by_itself = u64::from(n >= FILTERS_MAX);
        assert_eq!(filtered(&pair, w, *r).1, by_itself, "reader {n}");
        assert_eq!(pair.numbers(*r), [2], "reader {n}");
    }
    // After one is removed there is space for another, at its next announcement.
    let last = *readers.last().unwrap();
    let (gone, guid) = (pair.guid(readers[0]), pair.guid(last));
    let machine = &mut pair.writers[w.0].machine;
    machine.unmatch_reader(pair.readers[same.0].machine.guid());
    machine.unmatch_reader(gone);
    machine.set_content_filter(guid, Some(filter(&format!("n < {}", FILTERS_MAX + 1))));
    write(&mut pair, w, 1_000, "");
    pair.run_ms(500);
    assert_eq!(filtered(&pair, w, last).1, 1);
    assert_eq!(pair.numbers(last), [2]);
}

#[test]
fn readers_beyond_the_limit_get_everything() {
    let mut pair = Pair::new();
    let w = pair.writer(0, EndpointQos::default());
    let now = pair.now();
    let machine = &mut pair.writers[w.0].machine;
    for n in 0..READERS_MAX + 10 {
        let [low, high, ..] = n.to_le_bytes();
        let prefix = GuidPrefix([9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9]);
        let entity = EntityId::new([1, high, low], EntityId::KIND_READER_NO_KEY);
        assert!(machine.match_reader(
            now,
            ReaderProxyConfig {
                guid: prefix.with(entity),
                qos: EndpointQos::default().into(),
                route: route(1),
                expects_inline_qos: false,
                vendor: VendorId::PTEROS,
                content_filter: Some(filter("n = 1")),
                payload_form: None,
            },
        ));
    }
    write(&mut pair, w, 1, "");
    write(&mut pair, w, 2, "");
    let stats = pair.writers[w.0].machine.stats();
    assert_eq!(stats.filtered, READERS_MAX as u64);
}

#[test]
fn a_late_joiner_beyond_the_limit_finds_the_last_samples_that_pass() {
    let mut pair = Pair::new();
    let w = pair.writer(0, transient_local(100));
    for n in 0..FILTERS_MAX {
        joined(&mut pair, w, 1, transient_local(1), &format!("n = {n}"));
    }
    for n in [1, 2, 3, 50, 50, 50] {
        write(&mut pair, w, n, "");
    }
    let late = joined(&mut pair, w, 2, transient_local(2), "n <> 50");
    pair.run_ms(500);
    assert!(
        pair.numbers(late).ends_with(&[2, 3]),
        "{:?}",
        pair.numbers(late)
    );
    assert_eq!(filtered(&pair, w, late).1, 3);
}

#[test]
fn the_history_is_filtered_for_a_late_joiner_within_the_cost_budget() {
    let mut pair = Pair::new();
    let w = pair.writer(0, transient_local(100));
    write(&mut pair, w, 1, "b");
    for n in 2..=20 {
        write(&mut pair, w, n, &"a".repeat(5_000));
    }
    write(&mut pair, w, 21, "b");
    // A million steps for each long text, of two million that there are.
    let costly = format!("text LIKE '%{}b' OR text = 'b'", "a".repeat(200));
    let late = joined(&mut pair, w, 1, transient_local(2), &costly);
    pair.run_ms(2_000);
    assert_eq!(pair.numbers(late), [1, 21]);
    let (by_writer, by_reader) = filtered(&pair, w, late);
    assert_eq!(by_writer + by_reader, 19);
    assert!((1..=3).contains(&by_writer), "{by_writer}");
}
