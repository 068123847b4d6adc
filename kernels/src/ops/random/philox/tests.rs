use super::distribution::Normal;
use super::*;
use crate::base::parallel::Serial;

/// Published test vectors of the generator's authors.
#[test]
fn known_answers() {
    let zero = Philox {
        key: [0; 2],
        counter: 0,
    };
    assert_eq!(
        zero.block(),
        [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
    );
    let ones = Philox {
        key: [u32::MAX; 2],
        counter: u128::MAX,
    };
    assert_eq!(
        ones.block(),
        [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
    );
}

#[test]
fn blocks_side_by_side_are_the_blocks_one_by_one() {
    let last = u64::from(u32::MAX);
    let starts = [
        [u64::MAX - 3, 7],
        [last - 7, 0],
        [last - 6, 0],
        [u64::MAX; 2],
    ];
    for counter in starts {
        let start = Philox::from_key_counter(0x0123_4567_89ab_cdef, counter);
        for (lane, block) in start.blocks::<LANES>().into_iter().enumerate() {
            assert_eq!(words_of(block), start.skip(lane as u128).block());
        }
    }
}

#[test]
fn a_prefix_does_not_depend_on_the_length() {
    let stream = Philox::from_seeds(5, 9);
    let mut long = [0.0; 200];
    fill(Normal, stream, &mut long, &Serial);
    let mut long_truncated = [0.0; 50];
    fill_truncated_normal(stream, &mut long_truncated, &Serial);
    assert!(long_truncated.iter().all(|x| x.abs() < 2.0));
    for len in [0, 1, 3, 4, 63, 64, 65, 199] {
        let mut short = vec![0.0; len];
        fill(Normal, stream, &mut short, &Serial);
        assert_eq!(short, long[..len]);
        let len = len.min(50);
        let mut short = vec![0.0; len];
        fill_truncated_normal(stream, &mut short, &Serial);
        assert_eq!(short, long_truncated[..len]);
    }
}
