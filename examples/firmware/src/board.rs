//! Start-up code and cycle counter of a Cortex-M.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use cortex_m::peripheral::{Peripherals, SYST, syst::SystClkSource};
pub use cortex_m_rt::entry;
use cortex_m_rt::exception;

/// The counter has 24 bits.
const TOP: u32 = 0xFF_FFFF;
static ROUNDS: AtomicU32 = AtomicU32::new(0);

/// Starts the counter, the SysTick timer on the processor's clock.
pub fn start_counter() {
    if let Some(mut peripherals) = Peripherals::take() {
        let timer = &mut peripherals.SYST;
        timer.set_clock_source(SystClkSource::Core);
        timer.set_reload(TOP);
        timer.clear_current();
        timer.enable_interrupt();
        timer.enable_counter();
    }
}

#[exception]
fn SysTick() {
    ROUNDS.store(ROUNDS.load(Relaxed).wrapping_add(1), Relaxed);
}

/// Cycles of the processor since some start.
pub fn cycles() -> u64 {
    loop {
        let rounds = ROUNDS.load(Relaxed);
        let ticks = TOP - SYST::get_current();
        if rounds == ROUNDS.load(Relaxed) {
            return u64::from(rounds) * (u64::from(TOP) + 1) + u64::from(ticks);
        }
    }
}
