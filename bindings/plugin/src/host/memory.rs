//! Aligned host memory with a ledger.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::device::{AllocatorStats, MemoryUsage};
use crate::error::Result;

/// Boundary of every block in bytes; the widest vector register.
pub const ALIGNMENT: usize = 64;

/// Where a device's memory comes from.
///
/// # Safety
/// A block is at the boundary that its layout asks for. Host code can read and write all of it at its address
/// until it is given back, and nobody else uses it.
pub unsafe trait BlockSource: Send + Sync + 'static {
    /// A block that is as large as the layout says, which is not empty; `None` if there is not so much.
    fn take(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Takes a block back.
    ///
    /// # Safety
    /// The block comes from [`BlockSource::take`] with this layout, and nobody uses it any more.
    unsafe fn give_back(&self, block: NonNull<u8>, layout: Layout);

    /// Free and total bytes, where the source knows them.
    fn bytes(&self) -> Option<(u64, u64)>;

    /// Copies from the source's memory to the host's or to the source's, if there is a faster way than the processor's.
    /// `false` if nothing was done, such as where `from` is not the source's: then the processor copies.
    ///
    /// # Errors
    /// If the source's way fails.
    ///
    /// # Safety
    /// Both sides are valid for `bytes` bytes and do not overlap, and nobody writes either of them meanwhile.
    unsafe fn read(&self, _from: NonNull<u8>, _to: NonNull<u8>, _bytes: usize) -> Result<bool> {
        Ok(false)
    }
}

/// The memory of the machine.
#[derive(Debug)]
struct Machine;

// SAFETY: the blocks are the global allocator's.
unsafe impl BlockSource for Machine {
    fn take(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { alloc(layout) })
    }

    unsafe fn give_back(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: by this method's contract.
        unsafe { dealloc(block.as_ptr(), layout) };
    }

    fn bytes(&self) -> Option<(u64, u64)> {
        let machine = std::fs::read_to_string("/proc/meminfo").ok();
        machine.as_deref().and_then(parse_meminfo)
    }
}

/// An allocator that knows every block it gave out.
pub struct HostMemory {
    limit: Option<u64>,
    source: Box<dyn BlockSource>,
    ledger: Mutex<Ledger>,
}

impl std::fmt::Debug for HostMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields = f.debug_struct("HostMemory");
        fields
            .field("limit", &self.limit)
            .field("ledger", &self.ledger);
        fields.finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Ledger {
    blocks: HashMap<usize, Layout>,
    count: u64,
    in_use: u64,
    peak: u64,
    largest: u64,
}

impl HostMemory {
    /// With at most `limit` bytes in use, or what the machine has.
    #[must_use]
    pub fn new(limit: Option<u64>) -> Self {
        Self::with_source(Box::new(Machine), limit)
    }

    /// With at most `limit` bytes in use, or what the source has.
    #[must_use]
    pub fn with_source(source: Box<dyn BlockSource>, limit: Option<u64>) -> Self {
        Self {
            limit,
            source,
            ledger: Mutex::default(),
        }
    }

    /// [`BlockSource::read`] of the source.
    ///
    /// # Errors
    /// As that.
    ///
    /// # Safety
    /// As that.
    pub(super) unsafe fn read(
        &self,
        from: NonNull<u8>,
        to: NonNull<u8>,
        bytes: usize,
    ) -> Result<bool> {
        // SAFETY: by this method's contract.
        unsafe { self.source.read(from, to, bytes) }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block of at least `bytes` bytes at a 64-byte boundary; `None` over the limit or when the
    /// machine has no more.
    #[must_use]
    pub fn allocate(&self, bytes: u64) -> Option<NonNull<u8>> {
        let size = usize::try_from(bytes.max(1)).ok()?;
        let layout = Layout::from_size_align(size, ALIGNMENT).ok()?;
        let mut ledger = self.ledger();
        let in_use = ledger.in_use.checked_add(size as u64)?;
        if self.limit.is_some_and(|limit| in_use > limit) {
            return None;
        }
        let block = self.source.take(layout)?;
        ledger
            .blocks
            .insert(block.as_ptr().expose_provenance(), layout);
        ledger.count += 1;
        ledger.in_use = in_use;
        ledger.peak = ledger.peak.max(in_use);
        ledger.largest = ledger.largest.max(size as u64);
        Some(block)
    }

    /// Frees a block. False, and nothing happens, if it is none of this allocator's.
    ///
    /// # Safety
    /// Nobody uses the block any more.
    pub unsafe fn deallocate(&self, block: NonNull<u8>) -> bool {
        let mut ledger = self.ledger();
        let Some(layout) = ledger.blocks.remove(&block.as_ptr().addr()) else {
            return false;
        };
        ledger.in_use -= layout.size() as u64;
        // SAFETY: the block was taken with this layout and has just left the ledger.
        unsafe { self.source.give_back(block, layout) };
        true
    }

    /// Counters.
    #[must_use]
    pub fn stats(&self) -> AllocatorStats {
        let ledger = self.ledger();
        let limit = self.limit.map(signed);
        AllocatorStats {
            num_allocs: signed(ledger.count),
            bytes_in_use: signed(ledger.in_use),
            peak_bytes_in_use: signed(ledger.peak),
            largest_alloc_size: signed(ledger.largest),
            bytes_limit: limit,
            bytes_reserved: signed(ledger.in_use),
            peak_bytes_reserved: signed(ledger.peak),
            bytes_reservable_limit: limit,
            largest_free_block_bytes: 0,
        }
    }

    /// Free and total memory: the limit's, or the source's where it says so.
    #[must_use]
    pub fn usage(&self) -> Option<MemoryUsage> {
        let in_use = self.ledger().in_use;
        match (self.limit, self.source.bytes()) {
            (Some(limit), Some((available, _))) => Some(MemoryUsage {
                free: signed(limit.saturating_sub(in_use).min(available)),
                total: signed(limit),
            }),
            (Some(limit), None) => Some(MemoryUsage {
                free: signed(limit.saturating_sub(in_use)),
                total: signed(limit),
            }),
            (None, Some((available, total))) => Some(MemoryUsage {
                free: signed(available),
                total: signed(total),
            }),
            (None, None) => None,
        }
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        let ledger = self
            .ledger
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        for (address, layout) in ledger.blocks.drain() {
            let block = std::ptr::with_exposed_provenance_mut::<u8>(address);
            if let Some(block) = NonNull::new(block) {
                // SAFETY: the block was taken with this layout and not given back; its device is gone.
                unsafe { self.source.give_back(block, layout) };
            }
        }
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Available and total bytes.
fn parse_meminfo(text: &str) -> Option<(u64, u64)> {
    let read = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key))?;
        let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        kilobytes.checked_mul(1024)
    };
    Some((read("MemAvailable:")?, read("MemTotal:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_counted_and_limited() {
        let memory = HostMemory::new(Some(1000));
        let a = memory.allocate(600).unwrap();
        assert_eq!(a.as_ptr().addr() % ALIGNMENT, 0);
        assert!(memory.allocate(401).is_none());
        let b = memory.allocate(400).unwrap();
        let stats = memory.stats();
        assert_eq!((stats.bytes_in_use, stats.num_allocs), (1000, 2));
        assert_eq!(stats.largest_alloc_size, 600);
        assert_eq!(stats.bytes_limit, Some(1000));
        assert_eq!(memory.usage().unwrap().free, 0);
        // SAFETY: neither block is used any more.
        unsafe {
            assert!(memory.deallocate(a));
            assert!(!memory.deallocate(a));
            assert!(memory.deallocate(b));
        }
        let stats = memory.stats();
        assert_eq!((stats.bytes_in_use, stats.peak_bytes_in_use), (0, 1000));
        assert_eq!(memory.usage().unwrap().total, 1000);
    }

    #[test]
    fn empty_and_impossible_blocks() {
        let memory = HostMemory::new(None);
        let block = memory.allocate(0).unwrap();
        // SAFETY: the block is not used any more.
        assert!(unsafe { memory.deallocate(block) });
        assert!(memory.allocate(u64::MAX).is_none());
        assert!(memory.allocate(i64::MAX as u64).is_none());
    }

    /// Takes from the machine, at most as many blocks as it says, and counts what is out.
    struct Few(std::sync::Arc<std::sync::atomic::AtomicUsize>);

    // SAFETY: the blocks are the machine's.
    unsafe impl BlockSource for Few {
        fn take(&self, layout: Layout) -> Option<NonNull<u8>> {
            let out = self.0.load(std::sync::atomic::Ordering::Relaxed);
            (out < 2)
                .then(|| Machine.take(layout))
                .flatten()
                .inspect(|_| {
                    self.0.store(out + 1, std::sync::atomic::Ordering::Relaxed);
                })
        }

        unsafe fn give_back(&self, block: NonNull<u8>, layout: Layout) {
            self.0.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
            // SAFETY: by this method's contract.
            unsafe { Machine.give_back(block, layout) };
        }

        fn bytes(&self) -> Option<(u64, u64)> {
            Some((70, 100))
        }
    }

    #[test]
    fn a_source_of_its_own_gives_and_gets_all_blocks() {
        let out = std::sync::Arc::default();
        let memory = HostMemory::with_source(Box::new(Few(std::sync::Arc::clone(&out))), None);
        let usage = memory.usage().unwrap();
        assert_eq!((usage.free, usage.total), (70, 100));
        let a = memory.allocate(10).unwrap();
        memory.allocate(10).unwrap();
        assert!(memory.allocate(10).is_none());
        assert_eq!(memory.stats().bytes_in_use, 20);
        // SAFETY: the block is not used any more.
        assert!(unsafe { memory.deallocate(a) });
        assert_eq!(out.load(std::sync::atomic::Ordering::Relaxed), 1);
        drop(memory);
        assert_eq!(out.load(std::sync::atomic::Ordering::Relaxed), 0);
    }

    #[test]
    fn meminfo_is_read() {
        let text = "MemTotal:  2 kB\nMemFree: 9 kB\nMemAvailable:   1 kB\n";
        assert_eq!(parse_meminfo(text), Some((1024, 2048)));
        assert_eq!(parse_meminfo("nothing"), None);
    }
}
