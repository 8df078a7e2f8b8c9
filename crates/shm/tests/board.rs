//! Stories of boards that meet in one process, on fake time. What goes between
//! them is the same as between processes: the same sockets, the same mappings.

use std::collections::BTreeMap;

use pteros_shm::{Board, BoardEvent, BoardFull, BoardOptions, Name};

/// Domains keep the stories apart that run at once.
fn domain(story: u32) -> u32 {
    std::process::id() * 100 + story
}

fn name(n: u8) -> Name {
    let mut name = [n; 12];
    name[..4].copy_from_slice(&std::process::id().to_le_bytes());
    name
}

fn open(story: u32, n: u8) -> Board {
    let board = Board::open(domain(story), name(n), BoardOptions::default());
    board.expect("a board")
}

fn post(board: &Board, records: &[&str]) {
    let records = records.iter().map(|record| record.as_bytes());
    board.post(0, records).expect("room");
}

/// What each board was told, as text.
#[derive(Default)]
struct Heard(BTreeMap<u8, Vec<String>>);

impl Heard {
    fn note(&mut self, who: u8, event: BoardEvent<'_>) {
        let of = |peer: Name| peer[11];
        let line = match event {
            BoardEvent::Anew { peer } => format!("{} anew", of(peer)),
            BoardEvent::Posted { peer, record } => {
                format!("{}: {}", of(peer), String::from_utf8_lossy(record))
            }
            BoardEvent::Told { peer } => format!("{} told", of(peer)),
            BoardEvent::Beat { peer } => format!("{} beat", of(peer)),
            BoardEvent::Gone { peer, reason } => format!("{} gone: {reason}", of(peer)),
            other => format!("{other:?}"),
        };
        self.0.entry(who).or_default().push(line);
    }

    fn take(&mut self, who: u8) -> Vec<String> {
        self.0.remove(&who).unwrap_or_default()
    }
}

/// Turns all of them until nobody has more to say; `now` goes on.
fn settle(boards: &[(u8, &Board)], now: &mut u64, heard: &mut Heard) {
    for _ in 0..8 {
        *now += 1_000_000;
        for (who, board) in boards {
            board.turn(*now, &mut |event| heard.note(*who, event));
        }
    }
}

#[test]
fn who_comes_later_reads_what_stands_and_hears_what_is_added() {
    let (a, mut now, mut heard) = (open(1, 1), 0, Heard::default());
    post(&a, &["alpha", ""]);
    let b = open(1, 2);
    post(&b, &["beta"]);
    assert_eq!(b.greet(now), 1);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), ["1 anew", "1: alpha", "1: ", "1 told"]);
    assert_eq!(heard.take(1), ["2 anew", "2: beta", "2 told"]);
    post(&a, &["more"]);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), ["1: more"]);
    assert_eq!((a.neighbours(), b.neighbours()), (1, 1));
    assert_eq!(b.greet(now), 0, "known already");
}

#[test]
fn what_is_posted_between_call_and_answer_is_told() {
    let (a, b, mut now, mut heard) = (open(11, 1), open(11, 2), 0, Heard::default());
    post(&a, &["before"]);
    assert_eq!(a.greet(now), 1);
    b.turn(now, &mut |event| heard.note(2, event));
    assert_eq!(heard.take(2), ["1 anew", "1: before", "1 told"]);
    // The caller has not looked at the answer yet.
    post(&a, &["between"]);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), ["1: between"]);
}

#[test]
fn memory_that_is_renewed_between_call_and_answer_is_handed_over() {
    let (a, b, mut now, mut heard) = (open(12, 1), open(12, 2), 0, Heard::default());
    post(&a, &["old"]);
    assert_eq!(a.greet(now), 1);
    b.turn(now, &mut |event| heard.note(2, event));
    heard.take(2);
    a.post_all([b"all".as_slice()].into_iter()).expect("room");
    post(&a, &["more"]);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), ["1 anew", "1: all", "1: more", "1 told"]);
}

#[test]
fn boards_of_another_domain_are_not_called() {
    let (_a, b) = (open(2, 1), open(3, 2));
    assert_eq!(b.greet(0), 0);
}

#[test]
fn those_who_call_each_other_at_once_are_neighbours_once() {
    let (mut now, mut heard) = (0, Heard::default());
    let boards: Vec<(u8, Board)> = (1..=12).map(|n| (n, open(4, n))).collect();
    for (n, board) in &boards {
        post(board, &[&format!("board {n}")]);
    }
    for (_, board) in &boards {
        board.greet(now);
    }
    let all: Vec<(u8, &Board)> = boards.iter().map(|(n, board)| (*n, board)).collect();
    settle(&all, &mut now, &mut heard);
    for (n, board) in &all {
        assert_eq!(board.neighbours(), 11);
        let mut lines = heard.take(*n);
        lines.sort();
        let others = (1..=12).filter(|m| m != n);
        let mut expected: Vec<String> = others
            .flat_map(|m| {
                [
                    format!("{m} anew"),
                    format!("{m}: board {m}"),
                    format!("{m} told"),
                ]
            })
            .collect();
        expected.sort();
        assert_eq!(lines, expected);
    }
}

#[test]
fn a_full_board_takes_nothing_more_until_all_is_posted_anew() {
    let (a, b, mut now, mut heard) = (open(5, 1), open(5, 2), 0, Heard::default());
    b.greet(now);
    let large = vec![b'x'; 6 << 20];
    let two = [large.as_slice(), large.as_slice()];
    a.post(now, two.into_iter()).expect("room");
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    heard.take(2);
    assert_eq!(a.post(now, two.into_iter()), Err(BoardFull));
    a.post_all([&b"what holds"[..]].into_iter()).expect("room");
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), ["1 anew", "1: what holds", "1 told"]);
    post(&a, &["and more"]);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), ["1: and more"]);
    let three = [large.as_slice(); 3];
    assert_eq!(a.post_all(three.into_iter()), Err(BoardFull));
    post(&a, &["still there"]);
}

#[test]
fn who_closes_is_gone_with_its_last_words() {
    let (a, b, mut now, mut heard) = (open(6, 1), open(6, 2), 0, Heard::default());
    b.greet(now);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    heard.take(2);
    post(&a, &["farewell"]);
    drop(a);
    settle(&[(2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), ["1: farewell", "1 gone: closed there"]);
    assert_eq!(b.neighbours(), 0);
    let again = open(6, 1);
    again.greet(now);
    settle(&[(1, &again), (2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), ["1 anew", "1 told"]);
}

#[test]
fn beats_tell_who_lives() {
    let (a, b, mut now, mut heard) = (open(7, 1), open(7, 2), 0, Heard::default());
    b.greet(now);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    heard.take(2);
    let look = || {
        let mut count = 0;
        b.look_at_beats(&mut |_| count += 1);
        count
    };
    assert_eq!(look(), 0);
    a.beat();
    a.beat();
    assert_eq!((look(), look()), (1, 0));
}

#[test]
fn a_board_can_be_read_again_from_its_start() {
    let (a, b, mut now, mut heard) = (open(10, 1), open(10, 2), 0, Heard::default());
    post(&a, &["alpha"]);
    b.greet(now);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    post(&a, &["omega"]);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    heard.take(2);
    b.read_again(name(1));
    settle(&[(2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), ["1 anew", "1: alpha", "1: omega", "1 told"]);
    b.read_again(name(3));
    settle(&[(2, &b)], &mut now, &mut heard);
    assert!(heard.take(2).is_empty());
}

#[test]
fn news_within_a_millisecond_are_one_wake_and_can_be_read_before() {
    let (a, b, mut now, mut heard) = (open(8, 1), open(8, 2), 0, Heard::default());
    b.greet(now);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    heard.take(2);
    let mut post_at = |record: &str| {
        let posted = a.post(now, [record.as_bytes()].into_iter());
        posted.expect("room");
        b.turn(now, &mut |event| heard.note(2, event));
        heard.take(2)
    };
    assert_eq!(post_at("one"), ["1: one"], "woken at once");
    assert!(post_at("two").is_empty(), "not again so soon");
    assert!(post_at("three").is_empty());
    assert_eq!(a.turn(now, &mut |_| {}), Some(now + 1_000_000));
    assert!(b.has_news(name(1)));
    b.catch_up(name(1), &mut |event| heard.note(2, event));
    assert!(!b.has_news(name(1)) && !b.has_news(name(7)));
    assert_eq!(heard.take(2), ["1: two", "1: three"]);
    assert_eq!(a.turn(now + 1_000_000, &mut |_| {}), None);
    b.turn(now, &mut |event| heard.note(2, event));
    assert!(heard.take(2).is_empty());
}

/// What is made of the records is passed on between turns, so that a crowd is met
/// in no more memory than one neighbour.
#[test]
fn a_turn_tells_16_kib_and_nobody_is_kept_waiting_by_who_writes_much() {
    let (a, b, c) = (open(13, 1), open(13, 2), open(13, 3));
    let (mut now, mut heard) = (0, Heard::default());
    b.greet(now);
    settle(&[(1, &a), (2, &b), (3, &c)], &mut now, &mut heard);
    heard.take(2);
    let long: Vec<String> = (0..1000).map(|n| format!("{n:0>200}")).collect();
    post(&a, &long.iter().map(String::as_str).collect::<Vec<_>>());
    post(&c, &["short"]);
    let (mut told, mut turns, mut short_at) = (Vec::new(), 0, None);
    while told.len() < long.len() {
        now += 1_000_000;
        a.turn(now, &mut |_| {});
        c.turn(now, &mut |_| {});
        let next = b.turn(now, &mut |event| heard.note(2, event));
        let lines = heard.take(2);
        turns += 1;
        let bytes: usize = lines.iter().map(String::len).sum();
        assert!(bytes <= (17 << 10), "{bytes} in one turn");
        for line in lines {
            match line.strip_prefix("1: ") {
                Some(record) => told.push(record.to_owned()),
                None => short_at = Some(turns).filter(|_| line == "3: short"),
            }
        }
        let is_over = told.len() == long.len();
        assert!(
            is_over || next == Some(now),
            "there is more to be told at once"
        );
        assert!(turns < 100, "{} of 1000 told", told.len());
    }
    assert_eq!(told, long);
    assert!(short_at.is_some_and(|turn| turn <= 3), "{short_at:?}");
    assert!(turns > 10, "{turns} turns");
}

/// It was told from the start and then once more, with nothing in it: all that it
/// had posted was taken for gone.
#[test]
fn who_is_read_again_is_told_of_once_and_whole_whoever_asks_first() {
    let (a, b, mut now, mut heard) = (open(14, 1), open(14, 2), 0, Heard::default());
    post(&a, &["alpha", "beta"]);
    b.greet(now);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    heard.take(2);
    let whole = ["1 anew", "1: alpha", "1: beta", "1 told"];
    b.read_again(name(1));
    assert!(b.has_news(name(1)));
    b.catch_up(name(1), &mut |event| heard.note(2, event));
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), whole);
    b.read_again(name(1));
    b.read_again(name(1));
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), whole);
    // A long one is on its way to be told when it is asked for again.
    let long: Vec<String> = (0..300).map(|n| format!("{n:0>200}")).collect();
    post(&a, &long.iter().map(String::as_str).collect::<Vec<_>>());
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2).len(), long.len());
    b.read_again(name(1));
    b.catch_up(name(1), &mut |event| heard.note(2, event));
    b.read_again(name(1));
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    let lines = heard.take(2);
    assert_eq!(lines.len(), long.len() + whole.len());
    assert_eq!(lines.first().map(String::as_str), Some("1 anew"));
    assert_eq!(lines.last().map(String::as_str), Some("1 told"));
}

#[test]
fn a_caller_who_shows_nothing_costs_an_entry_for_half_a_minute() {
    let (a, mut heard) = (open(9, 1), Heard::default());
    let path = format!(
        "pteros-board-{}-{}",
        domain(9),
        name(1)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect::<String>()
    );
    let address = rustix::net::SocketAddrUnix::new_abstract_name(path.as_bytes());
    let address = address.expect("a name");
    let caller = rustix::net::socket(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        None,
    )
    .expect("a socket");
    rustix::net::connect(&caller, &address).expect("it listens");
    assert_eq!(
        a.turn(0, &mut |event| heard.note(1, event)),
        Some(30_000_000_000)
    );
    assert_eq!(
        a.turn(30_000_000_000, &mut |event| heard.note(1, event)),
        None
    );
    let rude = rustix::net::socket(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        None,
    )
    .expect("a socket");
    rustix::net::connect(&rude, &address).expect("it listens");
    rustix::net::send(&rude, b"nonsense", rustix::net::SendFlags::empty()).expect("sent");
    a.turn(0, &mut |event| heard.note(1, event));
    assert_eq!(
        a.turn(0, &mut |event| heard.note(1, event)),
        None,
        "hung up on"
    );
    assert!(heard.take(1).is_empty());
    assert_eq!(a.neighbours(), 0);
}
