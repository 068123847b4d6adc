//! Functions for levels that look up: pieces of a function have polynomials of their own, whose
//! coefficients come out of tables.

use super::single::{ROUNDER, polynomial};
use crate::simd::Simd;

/// A polynomial, the coefficient of the highest power last, of which there is a table each.
#[inline(always)]
fn piece<S: Simd, const N: usize>(s: S, tables: &[[f32; 16]; N], index: S::I, x: S::F) -> S::F {
    let mut value = s.look_up(&tables[N - 1], index);
    for table in tables.iter().rev().skip(1) {
        value = s.mul_add(value, x, s.look_up(table, index));
    }
    value
}

/// About `1 / m` in the middle of a sixteenth of the mantissas from 0.75 to 1.5, those from 1 on
/// first; 1 on both sides of 1.
const LOG_INVERSE: [f32; 16] = [
    1.0,
    0.913_962_4,
    0.866_656_84,
    0.820_747_1,
    0.779_430_87,
    0.744_044_6,
    0.711_002_23,
    0.679_261_4,
    1.303_410_3,
    1.254_223_6,
    1.206_985_1,
    1.162_128_6,
    1.121_931,
    1.080_037_6,
    1.044_415_1,
    1.0,
];
/// Minus the logarithm of [`LOG_INVERSE`]: the nearest multiple of 2^-16, which is less than 4e-10 off.
const LOG_WHOLE: [f32; 16] = [
    0.0,
    0.089_965_82,
    0.143_112_18,
    0.197_540_28,
    0.249_191_28,
    0.295_654_3,
    0.341_079_7,
    0.386_749_27,
    -0.264_984_13,
    -0.226_516_72,
    -0.188_125_61,
    -0.150_253_3,
    -0.115_051_27,
    -0.076_995_85,
    -0.043_457_03,
    0.0,
];
/// Coefficients of `(log(1 + f) - f) / f^2` for `f` in -1/32..1/16, fitted; relative error of the
/// logarithm 3e-9.
const LOG_NEAR: [f32; 4] = [-0.5, 0.333_344_6, -0.250_072_03, 0.188_579_32];

/// `log(m * 2^n) ` for the parts of a number, and a part `lost` of `m`.
#[inline(always)]
fn log_of_parts<S: Simd>(s: S, (m, n): (S::F, S::F), lost: Option<S::F>) -> S::F {
    /// The logarithm of 2 in two parts, the first a multiple of 2^-16.
    const HIGH: f32 = 0.693_138_1;
    const LOW: f32 = 9.058_001e-6;
    let index = s.shr_i::<19>(s.to_bits(m));
    let inverse = s.look_up(&LOG_INVERSE, index);
    let f = s.mul_add(m, inverse, s.splat(-1.0));
    let f = lost.map_or(f, |lost| s.mul_add(lost, inverse, f));
    let whole = s.mul_add(n, s.splat(HIGH), s.look_up(&LOG_WHOLE, index));
    let low = s.mul(n, s.splat(LOW));
    let rest = s.mul_add(polynomial(s, &LOG_NEAR, f), s.mul(f, f), low);
    s.add(whole, s.add(f, rest))
}

/// [`super::single::log`].
#[inline(always)]
pub(super) fn log<S: Simd>(s: S, x: S::F) -> S::F {
    log_of_parts(s, s.parts(x), None)
}

/// `log(sum + lost)`, where `lost` is small.
#[inline(always)]
pub(super) fn log_of_sum<S: Simd>(s: S, sum: S::F, lost: S::F) -> S::F {
    let (m, n) = s.parts(sum);
    log_of_parts(s, (m, n), Some(s.scale(lost, s.neg(n))))
}

/// Distance of the middles of the pieces of the error function; chosen so that its values at the
/// first of them are nearly numbers of 24 bits.
const ERF_STEP: f32 = 0.264_563_3;

/// The error function in the middle of each piece.
const ERF_MIDDLE: [f32; 16] = [
    0.0,
    0.291_706_53,
    0.545_719_56,
    0.738_327_56,
    0.865_501_6,
    0.938_619_55,
    0.975_225_03,
    0.991_182_3,
    0.997_239_23,
    0.999_241_05,
    0.999_817_1,
    0.999_961_4,
    0.999_992_85,
    0.999_998_87,
    0.999_999_8,
    1.0,
];

/// Coefficients of `(erf(c + d) - erf(c)) / d - 1` in `d` for the middles `c` of the pieces, fitted;
/// error of the error function 3e-8, relative and 5e-9 for `c = 0`.
const ERF: [[f32; 16]; 5] = [
    [
        0.128_379_17,
        0.052_100_34,
        -0.147_168,
        -0.399_000_6,
        -0.631_795_76,
        -0.803_886_4,
        -0.909_190_6,
        -0.963_444_05,
        -0.987_206_46,
        -0.996_107_5,
        -0.998_970_4,
        -0.999_763_25,
        -0.999_952_7,
        -0.999_991_8,
        -0.999_998_75,
        -0.999_999_8,
    ],
    [
        0.0,
        -0.278_341_6,
        -0.451_249_48,
        -0.477_003_87,
        -0.389_654_2,
        -0.259_422_33,
        -0.144_138_62,
        -0.067_705_34,
        -0.027_073_897,
        -0.009_277_646,
        -0.002_726_21,
        -0.000_683_018_1,
        -0.000_139_786_96,
        -3.6495254e-05,
        2.8600848e-06,
        -9.64284e-06,
    ],
    [
        -0.376_121_76,
        -0.301_601_56,
        -0.125_098_81,
        0.052_057_445,
        0.152_162_8,
        0.163_407_42,
        0.122_277_364,
        0.071_399_25,
        0.033_942_334,
        0.013_414_721,
        0.004_461_029_5,
        0.001_257_795_4,
        0.000_302_233_03,
        6.211914e-05,
        1.0950622e-05,
        1.6591246e-06,
    ],
    [
        0.0,
        0.131_655_77,
        0.182_320_2,
        0.137_803_72,
        0.049_596_15,
        -0.021_213_444,
        -0.049_309_842,
        -0.043_131_86,
        -0.027_130_809,
        -0.012_402_282,
        -0.004_901_386,
        -0.001_959_418_9,
        -0.001_031_467_6,
        0.000_366_478_98,
        -0.000_443_068_57,
        0.000_507_639_95,
    ],
    [
        0.112_132_49,
        0.075_934_9,
        -0.001_053_456_2,
        -0.058_887_538,
        -0.066_136_62,
        -0.037_574_6,
        -0.005_730_9,
        0.010_705_653,
        0.012_534_148,
        0.008_247_936,
        0.003_964_171_7,
        0.001_498_775,
        0.000_460_955_63,
        0.000_117_415_18,
        2.5049394e-05,
        4.50984e-06,
    ],
];

/// The error function of a number that is not negative.
#[inline(always)]
pub(super) fn erf_of_size<S: Simd>(s: S, size: S::F) -> S::F {
    // The result is 1 from there on.
    let size = s.min(s.splat(3.95), size);
    let rounder = s.splat(ROUNDER);
    let shifted = s.mul_add(size, s.splat(1.0 / ERF_STEP), rounder);
    let d = s.mul_add(s.sub(shifted, rounder), s.splat(-ERF_STEP), size);
    let index = s.to_bits(shifted);
    let slope = piece(s, &ERF, index, d);
    s.mul_add(slope, d, s.add(s.look_up(&ERF_MIDDLE, index), d))
}

/// Coefficients of `exp(x * x / 2)` times the distribution function of the standard normal
/// distribution of `-x` in the distance of `1 + x` from the middle of a quarter of an octave, fitted;
/// relative error 9e-8.
const TAIL: [[f32; 16]; 6] = [
    [
        0.230_760_32,
        0.185_231_67,
        0.153_651_94,
        0.130_724_73,
        0.106_345_16,
        0.084_803_395,
        0.070_342_7,
        0.060_015_675,
        0.049_122_55,
        0.039_506_696,
        0.033_018_973,
        0.028_352_661,
        0.453_793_23,
        0.379_604_43,
        0.323_356_18,
        0.279_770_58,
    ],
    [
        -0.110_491_88,
        -0.074_786_864,
        -0.053_225_42,
        -0.039_449_263,
        -0.026_734_242,
        -0.017_327_016,
        -0.012_057_464,
        -0.008_840_390_5,
        -0.005_961_911,
        -0.003_875_339_4,
        -0.002_714_627_4,
        -0.002_005_033,
        -0.342_218_13,
        -0.256_590_6,
        -0.196_844_68,
        -0.154_143_04,
    ],
    [
        0.046_321_4,
        0.027_176_816,
        0.016_947_161,
        0.011_119_54,
        0.006_387_158_8,
        0.003_415_774_8,
        0.002_013_279,
        0.001_276_551_6,
        0.000_713_556_54,
        0.000_376_632_58,
        0.000_221_715_44,
        0.000_141_097_26,
        0.205_506_94,
        0.141_690_91,
        0.100_163_8,
        0.072_447_52,
    ],
    [
        -0.017_529_383,
        -0.009_075_462,
        -0.005_031_253,
        -0.002_956_745,
        -0.001_459_085_3,
        -0.000_651_788_43,
        -0.000_328_056_66,
        -0.000_180_897_67,
        -8.4281884e-05,
        -3.6277885e-05,
        -1.7992668e-05,
        -9.8815935e-06,
        -0.105_509_97,
        -0.067_818_79,
        -0.044_747_364,
        -0.030_250_42,
    ],
    [
        0.006_159_676_2,
        0.002_845_398_6,
        0.001_415_639_8,
        0.000_751_071_1,
        0.000_325_402_7,
        0.000_122_136_64,
        5.2714386e-05,
        2.535498e-05,
        1.0024642e-05,
        3.5106048e-06,
        1.4649621e-06,
        6.937471e-07,
        0.048_258_185,
        0.029_161_863,
        0.018_103_495,
        0.011_525_786,
    ],
    [
        -0.001_993_071_3,
        -0.000_831_482_3,
        -0.000_375_066_65,
        -0.000_181_200_99,
        -6.866869e-05,
        -2.196644e-05,
        -8.20949e-06,
        -3.4679686e-06,
        -1.1534156e-06,
        -3.3218865e-07,
        -1.1737634e-07,
        -4.8122477e-08,
        -0.019_939_808,
        -0.011_405_958,
        -0.006_705_745_6,
        -0.004_045_642_4,
    ],
];

/// `exp(x * x / 2)` times the distribution function of the standard normal distribution of `-x`, for
/// `x` in 0..15.
#[inline(always)]
pub(super) fn normal_tail_scaled<S: Simd>(s: S, x: S::F) -> S::F {
    let from_one = s.add(x, s.splat(1.0));
    let bits = s.to_bits(from_one);
    let middle = s.or_i(s.and_i(bits, s.splat_i(!0x1F_FFFF)), s.splat_i(0x10_0000));
    let d = s.sub(from_one, s.from_bits(middle));
    piece(s, &TAIL, s.shr_i::<21>(bits), d)
}

/// Coefficients of `tanh(c + d)` in `d` for `c` and `d` whose sum with 1 lies in a quarter of an
/// octave that starts at `1 + c`, fitted; error 3e-8, relative for `c = 0`.
const TANH: [[f32; 16]; 7] = [
    [
        0.761_594_2,
        0.905_148_27,
        0.964_027_6,
        0.986_614_3,
        0.995_054_8,
        0.999_329_3,
        0.999_909_2,
        0.999_987_7,
        0.999_998_33,
        1.0,
        1.0,
        1.0,
        0.0,
        0.244_918_66,
        0.462_117_17,
        0.635_148_94,
    ],
    [
        0.419_971_88,
        0.180_704_85,
        0.070_650_34,
        0.026_593_82,
        0.009_863_825,
        0.001_338_858_9,
        0.000_180_305_29,
        2.3878358e-05,
        3.532138e-06,
        0.0,
        0.0,
        0.0,
        1.0,
        0.940_015_73,
        0.786_445_4,
        0.596_588_6,
    ],
    [
        -0.319_803_24,
        -0.163_530_13,
        -0.068_098_38,
        -0.026_273_1,
        -0.009_788_175,
        -0.001_315_168_5,
        -0.000_166_621_98,
        -1.6442258e-05,
        -4.5037195e-06,
        0.0,
        0.0,
        0.0,
        -1.0973024e-06,
        -0.230_266_63,
        -0.363_319_93,
        -0.379_050_6,
    ],
    [
        0.103_304_64,
        0.087_567_5,
        0.042_020_228,
        0.017_332_219,
        0.006_336_511,
        0.000_783_003_75,
        5.6907542e-05,
        -1.8335024e-05,
        4.66241e-06,
        0.0,
        0.0,
        0.0,
        -0.333_270_2,
        -0.256_291_2,
        -0.096_141_74,
        0.043_999_963,
    ],
    [
        0.028_362_708,
        -0.024_373_082,
        -0.017_581_582,
        -0.009_231_944,
        -0.002_836_899_8,
        -0.000_224_573_81,
        6.4438726e-05,
        5.890022e-05,
        -3.3534168e-06,
        0.0,
        0.0,
        0.0,
        -0.001_183_717_2,
        0.134_688_18,
        0.180_186_18,
        0.083_122_85,
    ],
    [
        -0.046_126_157,
        -0.002_358_615_4,
        0.004_370_856,
        0.004_911_254,
        0.000_802_461_35,
        -3.7644873e-05,
        -8.943057e-05,
        -5.66849e-05,
        1.3200882e-06,
        0.0,
        0.0,
        0.0,
        0.143_084_24,
        0.089_781_39,
        -0.086_075_71,
        -0.006_834_228,
    ],
    [
        0.017_577_54,
        0.003_873_153_6,
        -0.000_264_006_3,
        -0.001_995_956_3,
        -0.000_103_176,
        3.5428533e-05,
        3.290804e-05,
        1.930871e-05,
        -2.0787685e-07,
        0.0,
        0.0,
        0.0,
        -0.036_976_993,
        -0.094_294_06,
        0.042_450_152,
        -0.068_860_784,
    ],
];

/// The hyperbolic tangent of a number that is not negative.
#[inline(always)]
pub(super) fn tanh_of_size<S: Simd>(s: S, size: S::F) -> S::F {
    // The result is 1 from there on.
    let size = s.min(s.splat(9.02), size);
    let bits = s.to_bits(s.add(size, s.splat(1.0)));
    let start = s.from_bits(s.and_i(bits, s.splat_i(!0x1F_FFFF)));
    let d = s.sub(size, s.sub(start, s.splat(1.0)));
    piece(s, &TANH, s.shr_i::<21>(bits), d)
}
