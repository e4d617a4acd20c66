//! An allocator that betrays its host: whatever the host writes into a component goes through it first. For a
//! request of a certain length it never returns, or returns an address outside the component's memory.

use std::alloc::{GlobalAlloc, Layout, System};

/// The allocator never returns for a text of this many bytes.
const ENDLESS: usize = 70_001;
/// For a text of this many bytes it returns an address beyond all memory.
const OUTSIDE: usize = 70_002;
/// For a text of this many bytes it takes all memory first.
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
