//! Mutations of inputs, as fuzzers make them: bits and bytes, cuts, repeats, and
//! the head of one input with the tail of another.

use crate::random::Random;

/// Values that typically break sizes and counts.
const EXTREMES: [u32; 10] = [
    0,
    1,
    3,
    0x7f,
    0xff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffc,
    u32::MAX,
];

/// One of the inputs with one to eight mutations, of at most `bytes_max` bytes.
pub fn changed(seeds: &[Vec<u8>], random: &mut Random, bytes_max: usize) -> Vec<u8> {
    let mut input = one_of(seeds, random).clone();
    for _ in 0..1 + random.below(8) {
        change(&mut input, seeds, random);
    }
    input.truncate(bytes_max);
    input
}

fn one_of<'a, T>(list: &'a [T], random: &mut Random) -> &'a T {
    &list[place(list.len(), random)]
}

/// An offset below `end`, or 0.
fn place(end: usize, random: &mut Random) -> usize {
    random.below(end as u64) as usize
}

fn change(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = place(input.len(), random);
    let span = at..input.len().min(at + 1 + place(32, random));
    match random.below(7) {
        0 if !input.is_empty() => input[at] ^= 1 << random.below(8),
        1 if !input.is_empty() => input[at] = random.next() as u8,
        2 => {
            let value = one_of(&EXTREMES, random).to_le_bytes();
            let width = [1, 2, 4][place(3, random)];
            let places = input.iter_mut().skip(at).take(width);
            places.zip(value).for_each(|(place, byte)| *place = byte);
        }
        3 => input.truncate(at),
        4 => {
            input.drain(span);
        }
        5 => {
            let again = input[span].to_vec();
            input.splice(at..at, again);
        }
        _ => {
            let other = one_of(seeds, random);
            input.truncate(at);
            input.extend_from_slice(&other[place(other.len(), random)..]);
        }
    }
}
