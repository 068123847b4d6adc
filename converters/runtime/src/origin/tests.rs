use super::*;
use crate::bytes::view;
use crate::weights::MAGIC;

const FINGERPRINT: u64 = 0x0123_4567_89ab_cdef;

fn layout(len: usize, held: usize) -> Layout {
    Layout {
        fingerprint: FINGERPRINT,
        len,
        held,
        largest: 64,
    }
}

/// A file of weights with so many bytes after the header.
fn written(body: usize) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&FINGERPRINT.to_le_bytes());
    bytes[16..24].copy_from_slice(&(body as u64).to_le_bytes());
    bytes.extend((0..body).map(|i| (i * 37 % 251) as u8));
    let mut sums = crate::sums::Sums::default();
    sums.add(&bytes);
    let sums = sums.finish().map(u64::to_le_bytes);
    bytes[SUMS].copy_from_slice(sums.as_flattened());
    bytes
}

/// Weights as bytes, and in a file that nobody can open any more, of which so many bytes are held.
fn loaded(bytes: &[u8], len: usize, held: usize) -> [Result<Origin<'_>>; 2] {
    let path = std::env::temp_dir().join(format!(
        "tfp_weights_{}_{:?}.bin",
        std::process::id(),
        std::thread::current().id()
    ));
    std::fs::write(&path, bytes).unwrap();
    let layout = layout(len, held);
    let found = Origin::file(&path, &layout);
    // The open file can still be read: Windows would refuse to remove it.
    #[cfg(unix)]
    std::fs::remove_file(&path).unwrap();
    [Origin::bytes(bytes, &layout), found]
}

fn reason(result: &Result<Origin<'_>>) -> &'static str {
    match result {
        Err(Error::Weights {
            reason,
            found,
            expected,
        }) => {
            assert_ne!(found, expected, "{reason}");
            reason
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn weights_are_those_of_the_file() {
    for body in [0, 16, 64, 80, PART - 16, PART, PART + 32, 2 * PART + 16] {
        let bytes = written(body);
        for kept in [0, 1, HEADER, 100, PART, PART + 65, usize::MAX] {
            for weights in loaded(&bytes, bytes.len(), kept) {
                let weights = weights.unwrap();
                let all = Tensor::<u8>::new(0, bytes.len());
                assert_eq!(*weights.tensor_bytes(all).unwrap(), bytes, "{body} {kept}");
                let kept = kept.min(bytes.len());
                assert_eq!(weights.kept(kept).bytes(), &bytes[..kept], "{body}");
            }
        }
    }
}

#[test]
fn a_tensor_is_read_where_it_lies_or_copied_to_where_it_can_be() {
    let file = written(1024);
    // Of the three places, only one is at a multiple of four bytes.
    for before in 0..3 {
        let mut bytes = AlignedBytes::zeroed(before + file.len()).unwrap();
        let bytes = &mut bytes.as_mut_slice()[before..];
        bytes.copy_from_slice(&file);
        let [given, read] = loaded(bytes, bytes.len(), 128).map(Result::unwrap);
        let tensor = Tensor::<f32>::new(256, 100);
        let expected = &file[256..][..400];
        for (bytes, there) in [
            (given.tensor_bytes(tensor), before == 0),
            (read.tensor_bytes(tensor), false),
        ] {
            let bytes = bytes.unwrap();
            assert_eq!(&*bytes, expected);
            assert_eq!(view::<f32>(&bytes).unwrap().len(), 100);
            assert_eq!(matches!(bytes, Bytes::There(_)), there);
        }
        let copied = read.tensor_bytes(tensor).unwrap();
        let second = read.tensor_bytes(tensor);
        assert!(matches!(second, Err(Error::Plan { .. })), "{copied:?}");
        drop(copied);
        assert!(read.tensor_bytes(tensor).is_ok());
        let found = Origin::checked(bytes);
        assert_eq!(&*found.tensor_bytes(tensor).unwrap(), expected);
        // Kept, so that it is there whatever the rest is.
        let first = Tensor::<f32>::new(64, 16);
        assert!(matches!(given.tensor_bytes(first), Ok(Bytes::There(_))));
        assert!(matches!(read.tensor_bytes(first), Ok(Bytes::There(_))));
        for outside in [Tensor::<f32>::new(1024, 17), Tensor::new(usize::MAX, 1)] {
            assert!(matches!(
                given.tensor_bytes(outside),
                Err(Error::Plan { .. })
            ));
            assert!(read.tensor_bytes(outside).is_err());
        }
    }
}

/// Bytes whose owner sees them from one of them on.
struct From(AlignedBytes, usize);

impl AsRef<[u8]> for From {
    fn as_ref(&self) -> &[u8] {
        &self.0.as_slice()[self.1..]
    }
}

/// Weights in place, at so many bytes after a multiple of 64.
fn in_place(bytes: &[u8], at: usize, layout: &Layout) -> [Result<Origin<'static>>; 2] {
    let place = || {
        let mut all = AlignedBytes::zeroed(at + bytes.len()).unwrap();
        all.as_mut_slice()[at..].copy_from_slice(bytes);
        From(all, at)
    };
    let leaked: &'static From = Box::leak(Box::new(place()));
    let shared = Weights::Shared(std::sync::Arc::new(place()));
    [Weights::Embedded(leaked.as_ref()), shared].map(|held| Origin::in_place(held, layout))
}

#[test]
fn weights_in_place_are_not_copied() {
    for body in [0, 16, 64, PART + 32] {
        let bytes = written(body);
        // The layout of a model that packs nearly all.
        let layout = layout(bytes.len(), HEADER);
        for at in [0, 8, 16, 64] {
            let owner = std::sync::Arc::new(bytes.clone());
            let all = Tensor::<u8>::new(0, bytes.len());
            for weights in in_place(&bytes, at, &layout) {
                let weights = weights.unwrap();
                assert_eq!(*weights.tensor_bytes(all).unwrap(), bytes, "{body} {at}");
                assert_eq!(weights.kept(HEADER).bytes(), bytes);
            }
            let held = Weights::Shared(owner.clone());
            let weights = Origin::in_place(held, &layout).unwrap().kept(HEADER);
            assert_eq!(weights.bytes().as_ptr(), owner.as_ptr());
            let copy = weights.clone();
            drop(weights);
            assert_eq!(std::sync::Arc::strong_count(&owner), 2);
            drop(copy);
            assert_eq!(std::sync::Arc::strong_count(&owner), 1);
        }
    }
}

#[test]
fn weights_in_place_are_checked() {
    let good = written(144);
    let layout = layout(good.len(), HEADER);
    for at in [1, 4, 63] {
        for weights in in_place(&good, at, &layout) {
            assert_eq!(reason(&weights), "an address that is no multiple of 8");
        }
    }
    for bit in 0..8 * good.len() {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        in_place(&bad, 0, &layout).iter().for_each(|weights| {
            reason(weights);
        });
    }
    for len in [0, HEADER - 1, HEADER, good.len() - 1] {
        for weights in in_place(&good[..len], 0, &layout) {
            assert_eq!(reason(&weights), "number of bytes");
        }
    }
}

#[test]
fn an_owner_whose_bytes_change_is_an_error_and_no_panic() {
    /// Other bytes each time.
    struct Fickle(AlignedBytes, std::sync::atomic::AtomicUsize);
    impl AsRef<[u8]> for Fickle {
        fn as_ref(&self) -> &[u8] {
            let calls = self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            self.0.as_slice().get(calls..).unwrap_or_default()
        }
    }
    let bytes = written(144);
    let mut all = AlignedBytes::zeroed(bytes.len()).unwrap();
    all.as_mut_slice().copy_from_slice(&bytes);
    let owner = Fickle(all, std::sync::atomic::AtomicUsize::new(0));
    let held = Weights::Shared(std::sync::Arc::new(owner));
    let weights = Origin::in_place(held, &layout(bytes.len(), HEADER)).unwrap();
    let tensor = Tensor::<f32>::new(64, 16);
    let held = weights.kept(HEADER);
    assert!(tensor.of(held.bytes()).is_err());
}

#[test]
fn a_file_that_was_cut_meanwhile_is_an_error() {
    let bytes = written(1024);
    let path = std::env::temp_dir().join(format!("tfp_cut_{}.bin", std::process::id()));
    std::fs::write(&path, &bytes).unwrap();
    let weights = Origin::file(&path, &layout(bytes.len(), HEADER)).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(700).unwrap();
    let read = |at| weights.tensor_bytes(Tensor::<f32>::new(at, 16));
    assert!(read(320).is_ok());
    assert!(matches!(read(680), Err(Error::File(_))));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_flipped_bit_anywhere_is_an_error() {
    let good = written(144);
    for bit in 0..8 * good.len() {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        for weights in loaded(&bad, good.len(), 64 * (bit % 5)) {
            reason(&weights);
        }
    }
    let mut bad = written(2 * PART);
    for at in [
        PART,
        HEADER + PART - 1,
        HEADER + PART,
        HEADER + 2 * PART - 1,
    ] {
        bad[at] ^= 0x10;
        for weights in loaded(&bad, bad.len(), PART / 2) {
            assert_eq!(reason(&weights), "damaged, by a sum of all bytes");
        }
        bad[at] ^= 0x10;
    }
}

#[test]
fn an_error_tells_what_was_found_from_what_was_expected() {
    let good = written(8);
    let (mut other, mut older, mut none) = (good.clone(), good.clone(), good.clone());
    other[8] ^= 6;
    older[7] = 1;
    none[3] = b'W';
    for (bytes, expected) in [
        (&other[..], "another model's fingerprint"),
        (
            &older,
            "another version of the format; convert the model again",
        ),
        (&none, "no file of weights, by its first 8 bytes"),
        (&good[..HEADER - 1], "number of bytes"),
        (&good[..HEADER], "number of bytes"),
        (&[], "number of bytes"),
    ] {
        for weights in loaded(bytes, good.len(), HEADER) {
            assert_eq!(reason(&weights), expected);
        }
    }
}

/// Runs a test again in a process with so many KiB of addresses.
#[cfg(target_os = "linux")]
fn limited(test: &str, kib: u32) {
    let limited = format!("ulimit -v {kib} && exec \"$0\" --exact {test}");
    let this = std::env::current_exe().unwrap();
    let mut command = std::process::Command::new("sh");
    let command = command.args([std::ffi::OsStr::new("-c"), limited.as_ref(), this.as_ref()]);
    let done = command.env("TFP_LIMITED", "1").output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn weights_that_memory_has_no_room_for_are_an_error() {
    if std::env::var_os("TFP_LIMITED").is_none() {
        let test = "origin::tests::weights_that_memory_has_no_room_for_are_an_error";
        return limited(test, 1 << 19);
    }
    let len = 1 << 30;
    let mut header = written(0);
    header[16..24].copy_from_slice(&((len - HEADER) as u64).to_le_bytes());
    let name = format!("tfp_large_weights_{}.bin", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, header).unwrap();
    // The file has a hole: it takes no space.
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(len as u64).unwrap();
    let found = Origin::file(&path, &layout(len, len));
    std::fs::remove_file(&path).unwrap();
    assert!(
        matches!(found, Err(Error::Memory { bytes }) if bytes == len),
        "{found:?}"
    );
    let found = crate::bytes::filled(0.0_f32, len / 4).map(|x| x.len());
    assert!(
        matches!(found, Err(Error::Memory { bytes }) if bytes == len),
        "{found:?}"
    );
}

#[test]
fn a_file_that_is_not_there_is_an_error() {
    let path = std::env::temp_dir().join("tfp_no_such_weights.bin");
    let found = Origin::file(&path, &layout(HEADER, HEADER));
    let kind = match found {
        Err(Error::File(error)) => error.kind(),
        other => panic!("{other:?}"),
    };
    assert_eq!(kind, std::io::ErrorKind::NotFound);
}
