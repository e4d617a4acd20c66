//! What is copied and compared, for every length about which something changes, at every alignment.

#![cfg(target_arch = "x86_64")]
#![expect(unsafe_code, reason = "what is tested works on bare addresses")]

use std::cmp::Ordering;

/// Every length up to three turns of a loop, and those around the one at which the processor copies by itself.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=200).chain([255, 256, 257, 1_000, 2_047, 2_048, 2_049, 5_000])
}

/// Bytes of which no two neighbours are alike.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 37 + at / 251) as u8).collect()
}

#[test]
fn a_copy_is_like_its_source_and_touches_nothing_beside_it() {
    for length in lengths() {
        for (from, to) in [(0, 0), (1, 0), (0, 1), (7, 3), (15, 16)] {
            let source = pattern(from + length);
            let mut target = vec![0xee; to + length + 70];
            let (start, mut right) = (target.as_mut_ptr(), target.clone());
            right[to..to + length].copy_from_slice(&source[from..]);
            let told = unsafe { memcpy::memcpy(start.add(to), source.as_ptr().add(from), length) };
            assert_eq!(told, unsafe { start.add(to) });
            assert!(target == right, "{length} bytes from {from} to {to}");
        }
    }
}

#[test]
fn what_overlaps_is_moved_as_if_it_did_not() {
    for length in lengths() {
        for (from, to) in
            [(0, 0), (0, 1), (1, 0), (0, 15), (16, 0), (0, 63), (64, 0), (0, 129), (129, 0), (0, 3_000), (3_000, 0)]
        {
            let mut moved = pattern(length + 3_000);
            let mut right = moved.clone();
            right.copy_within(from..from + length, to);
            let start = moved.as_mut_ptr();
            unsafe { memcpy::memmove(start.add(to), start.add(from), length) };
            assert!(moved == right, "{length} bytes from {from} to {to}");
        }
    }
}

#[test]
fn two_stretches_are_ordered_by_the_first_byte_that_differs() {
    for length in lengths().filter(|length| *length <= 300) {
        let one = pattern(length);
        assert_eq!(unsafe { memcpy::memcmp(one.as_ptr(), one.clone().as_ptr(), length) }, 0, "{length}");
        for at in 0..length {
            let mut other = one.clone();
            other[at] = one[at].wrapping_add(128);
            // What follows differs the other way, and does not count.
            if let Some(next) = other.get_mut(at + 1) {
                *next = next.wrapping_sub(128);
            }
            let told = unsafe { memcpy::memcmp(one.as_ptr(), other.as_ptr(), length) };
            assert_eq!(told.cmp(&0), one.cmp(&other), "byte {at} of {length}");
            assert_ne!(one.cmp(&other), Ordering::Equal);
            assert_ne!(unsafe { memcpy::bcmp(one.as_ptr(), other.as_ptr(), length) }, 0);
        }
    }
}
