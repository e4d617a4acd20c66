//! An allocator that fails its host: what the host writes into a guest goes through it first. A request
//! of a certain length is never answered, or answered with a place that is not the guest's.

use std::alloc::{GlobalAlloc, Layout, System};

/// A text of this many bytes is waited for for ever.
const ENDLESS: usize = 70_001;
/// For one of this many a place beyond all memory is given.
const OUTSIDE: usize = 70_002;
/// For one of this many all memory is taken first.
const GREEDY: usize = 70_003;

struct Treacherous;

unsafe impl GlobalAlloc for Treacherous {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match layout.size() {
            ENDLESS if layout.align() == 1 => loop {
                core::hint::black_box(0);
            },
            OUTSIDE if layout.align() == 1 => usize::MAX.wrapping_sub(16) as *mut u8,
            GREEDY if layout.align() == 1 => loop {
                let pages = Layout::from_size_align(1 << 20, 8).unwrap_or(layout);
                core::hint::black_box(unsafe { System.alloc_zeroed(pages) });
            },
            _ => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Treacherous = Treacherous;
