//! `memcpy`, `memmove` and `memcmp` for the released program, which stands on musl (docs/adr/0012).
//!
//! musl's own for x86-64 copy by `rep movsq`, which takes a processor longer to begin than most copies
//! take at all, and compare byte by byte: a fifth of what a long list costs. These use the sixteen-byte
//! registers that every x86-64 processor has. Elsewhere musl's own are as good as any, and stay.
//!
//! A program that is built on musl takes these by naming the crate.

#![no_std]
// Otherwise the compiler takes the loops below for what they are, and has them call themselves.
#![no_builtins]
#![cfg(target_arch = "x86_64")]
#![expect(unsafe_code, reason = "this is what copies for everybody else: it works on bare addresses")]

use core::arch::asm;
use core::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_storeu_si128};
use core::ffi::c_int;

/// From so many bytes on the processor copies by itself, which takes it a while to begin.
const LONG: usize = 2048;
/// What a turn of a loop copies: four registers.
const TURN: usize = 64;
/// What the two ends of a short copy cover: eight registers.
const SHORT: usize = 128;

/// Copies `count` bytes that do not overlap.
///
/// # Safety
/// As C's `memcpy`: all of `from` can be read, and all of `to` written.
#[cfg_attr(target_env = "musl", unsafe(no_mangle))]
pub unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    unsafe {
        if count <= SHORT {
            copy_short(to, from, count);
        } else if count < LONG {
            copy_upwards(to, from, count);
        } else {
            asm!(
                "rep movsb",
                inout("rcx") count => _, inout("rdi") to => _, inout("rsi") from => _,
                options(nostack, preserves_flags)
            );
        }
    }
    to
}

/// Copies `count` bytes that may overlap.
///
/// # Safety
/// As C's `memmove`: all of `from` can be read, and all of `to` written.
#[cfg_attr(target_env = "musl", unsafe(no_mangle))]
pub unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    let ahead = (to as usize).wrapping_sub(from as usize);
    let behind = (from as usize).wrapping_sub(to as usize);
    unsafe {
        if count <= SHORT {
            copy_short(to, from, count);
        } else if ahead < count {
            copy_downwards(to, from, count);
        } else if behind < count {
            copy_upwards(to, from, count);
        } else {
            return memcpy(to, from, count);
        }
    }
    to
}

/// Compares two stretches of `count` bytes: negative, nothing or positive by the first byte that differs.
///
/// # Safety
/// As C's `memcmp`: all of both can be read.
#[cfg_attr(target_env = "musl", unsafe(no_mangle))]
pub unsafe extern "C" fn memcmp(one: *const u8, other: *const u8, count: usize) -> c_int {
    let mut at = 0;
    unsafe {
        while count - at >= 16 {
            let alike = _mm_movemask_epi8(_mm_cmpeq_epi8(load(one, at), load(other, at)));
            if alike != 0xffff {
                return difference(one, other, at + (!alike).trailing_zeros() as usize);
            }
            at += 16;
        }
        if count - at >= 8 && word::<u64>(one, at) == word::<u64>(other, at) {
            at += 8;
        }
        while at < count {
            if *one.add(at) != *other.add(at) {
                return difference(one, other, at);
            }
            at += 1;
        }
    }
    0
}

/// Whether two stretches of `count` bytes differ.
///
/// # Safety
/// As [`memcmp`].
#[cfg_attr(target_env = "musl", unsafe(no_mangle))]
pub unsafe extern "C" fn bcmp(one: *const u8, other: *const u8, count: usize) -> c_int {
    unsafe { memcmp(one, other, count) }
}

/// Copies up to [`SHORT`] bytes from both ends, which meet or overlap in the middle. All is read before
/// anything is written.
#[inline(always)]
unsafe fn copy_short(to: *mut u8, from: *const u8, count: usize) {
    unsafe {
        match count {
            0 => {}
            1 => *to = *from,
            2..4 => copy_ends::<u16>(to, from, count),
            4..8 => copy_ends::<u32>(to, from, count),
            8..16 => copy_ends::<u64>(to, from, count),
            16..=32 => {
                let (first, last) = (load(from, 0), load(from, count - 16));
                store(to, 0, first);
                store(to, count - 16, last);
            }
            33..=64 => {
                let first = [load(from, 0), load(from, 16)];
                let last = [load(from, count - 32), load(from, count - 16)];
                store(to, 0, first[0]);
                store(to, 16, first[1]);
                store(to, count - 32, last[0]);
                store(to, count - 16, last[1]);
            }
            _ => {
                let (first, last) = (load_turn(from, 0), load_turn(from, count - TURN));
                store_turn(to, 0, first);
                store_turn(to, count - TURN, last);
            }
        }
    }
}

/// Copies the first and the last bytes as a number each.
#[inline(always)]
unsafe fn copy_ends<Number: Copy>(to: *mut u8, from: *const u8, count: usize) {
    let end = count - size_of::<Number>();
    unsafe {
        let (first, last) = (word::<Number>(from, 0), word::<Number>(from, end));
        to.cast::<Number>().write_unaligned(first);
        to.add(end).cast::<Number>().write_unaligned(last);
    }
}

/// Copies more than [`TURN`] bytes from the first to the last. What is overwritten on the way has been read.
#[inline(always)]
unsafe fn copy_upwards(to: *mut u8, from: *const u8, count: usize) {
    unsafe {
        let last = load_turn(from, count - TURN);
        let mut at = 0;
        while at < count - TURN {
            store_turn(to, at, load_turn(from, at));
            at += TURN;
        }
        store_turn(to, count - TURN, last);
    }
}

/// The same from the last to the first.
#[inline(always)]
unsafe fn copy_downwards(to: *mut u8, from: *const u8, count: usize) {
    unsafe {
        let first = load_turn(from, 0);
        let mut at = count;
        while at > TURN {
            at -= TURN;
            store_turn(to, at, load_turn(from, at));
        }
        store_turn(to, 0, first);
    }
}

#[inline(always)]
unsafe fn load_turn(from: *const u8, at: usize) -> [__m128i; 4] {
    unsafe { [load(from, at), load(from, at + 16), load(from, at + 32), load(from, at + 48)] }
}

#[inline(always)]
unsafe fn store_turn(to: *mut u8, at: usize, [first, second, third, fourth]: [__m128i; 4]) {
    unsafe {
        store(to, at, first);
        store(to, at + 16, second);
        store(to, at + 32, third);
        store(to, at + 48, fourth);
    }
}

#[inline(always)]
unsafe fn load(from: *const u8, at: usize) -> __m128i {
    unsafe { _mm_loadu_si128(from.add(at).cast()) }
}

#[inline(always)]
unsafe fn store(to: *mut u8, at: usize, register: __m128i) {
    unsafe { _mm_storeu_si128(to.add(at).cast(), register) }
}

#[inline(always)]
unsafe fn word<Number: Copy>(from: *const u8, at: usize) -> Number {
    unsafe { from.add(at).cast::<Number>().read_unaligned() }
}

#[inline(always)]
unsafe fn difference(one: *const u8, other: *const u8, at: usize) -> c_int {
    unsafe { c_int::from(*one.add(at)) - c_int::from(*other.add(at)) }
}
