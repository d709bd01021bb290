//! Memory that is freed and soon taken again.

use std::hint::black_box;
use std::sync::Once;

/// Has the allocator keep freed memory for what is taken next, up to some tens of megabytes a thread, if it is glibc's. Any other takes no
/// notice.
///
/// Of large buffers that one gives each back to the system, and then takes fresh pages for the next, which the system clears, one fault each:
/// a sixth of the time of comparisons by transfers. It learns to keep those up to the largest that was ever freed so (mallopt(3),
/// `M_MMAP_THRESHOLD`), and twice as much in all. So one is freed, once a process, that nobody has touched.
pub fn keep_freed() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| drop(black_box(Vec::<u8>::with_capacity(LARGEST))));
}

/// Just below the largest buffer that it learns from, 32 MiB.
const LARGEST: usize = (32 << 20) - (1 << 16);
