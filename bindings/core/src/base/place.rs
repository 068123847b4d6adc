//! Names of devices as users write them: their parts, and which devices they name.

use std::fmt::Write;

use super::device::Device;
use super::error::{Error, Result};

/// How many devices an error names.
const NAMED: usize = 16;

/// The parts of a name. One that is left out or a star fits any device, and is `None`.
#[derive(Clone, Copy, Debug, Default)]
struct Parts<'n> {
    job: Option<&'n str>,
    replica: Option<u64>,
    task: Option<u64>,
    kind: Option<&'n str>,
    index: Option<u64>,
}

impl<'n> Parts<'n> {
    /// Returns the parts of a name, or `None` for what is not one.
    fn of(name: &'n str) -> Option<Self> {
        let mut found = Self::default();
        let parts = name.strip_prefix('/')?;
        // A slash alone leaves all of them out.
        if parts.is_empty() {
            return Some(found);
        }
        for part in parts.split('/') {
            match part.split_once(':')? {
                ("job", job) => found.job = word(job)?,
                ("replica", index) => found.replica = number(index)?,
                ("task", index) => found.task = number(index)?,
                ("cpu" | "CPU", index) => {
                    (found.kind, found.index) = (Some("CPU"), number(index)?);
                }
                ("gpu" | "GPU", index) => {
                    (found.kind, found.index) = (Some("GPU"), number(index)?);
                }
                ("device", device) => {
                    let (kind, index) = device.split_once(':').unwrap_or((device, "*"));
                    (found.kind, found.index) = (word(kind)?, number(index)?);
                }
                _ => return None,
            }
        }
        Some(found)
    }

    /// Whether each part that is there is that of a device.
    fn fit(&self, device: &Self) -> bool {
        self.fit_task(device) && fits(self.kind, device.kind) && fits(self.index, device.index)
    }

    /// Whether the parts of the task that are there are those of a device.
    fn fit_task(&self, device: &Self) -> bool {
        fits(self.job, device.job)
            && fits(self.replica, device.replica)
            && fits(self.task, device.task)
    }

    fn task(&self) -> (Option<&'n str>, Option<u64>, Option<u64>) {
        (self.job, self.replica, self.task)
    }

    /// Writes the parts of a device, after those of a task if one is given.
    fn text(&self, task: Option<&Self>) -> String {
        let mut text = String::new();
        if let Some((Some(job), Some(replica), Some(task))) = task.map(Self::task) {
            text = format!("/job:{job}/replica:{replica}/task:{task}");
        }
        if self.kind.is_some() || self.index.is_some() {
            let _ = write!(text, "/device:{}", self.kind.unwrap_or("*"));
        }
        if let Some(index) = self.index {
            let _ = write!(text, ":{index}");
        }
        text
    }
}

fn fits<T: PartialEq>(part: Option<T>, device: Option<T>) -> bool {
    part.is_none() || part == device
}

/// Reads a star or a name.
fn word(text: &str) -> Option<Option<&str>> {
    let is_word = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match text {
        "*" => Some(None),
        _ => is_word.then_some(Some(text)),
    }
}

/// Reads a star or a number; one that is too large is the largest, which no device has.
fn number(text: &str) -> Option<Option<u64>> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text {
        "*" => Some(None),
        _ => is_number.then(|| Some(text.parse().unwrap_or(u64::MAX))),
    }
}

/// Refuses what names no device, as TensorFlow does when an operation runs at last.
///
/// A name is parts such as `/job:worker`, `/replica:0`, `/task:1` and `/device:CPU:0`, of which any may
/// be left out; a star stands for any number. `/cpu:0` and `/gpu:0` are old forms of the last.
///
/// # Errors
/// [`ErrorKind::Argument`](crate::ErrorKind::Argument).
pub(crate) fn check_name(name: &str) -> Result<()> {
    parts_of(name).map(drop)
}

fn parts_of(name: &str) -> Result<Parts<'_>> {
    Parts::of(name).ok_or_else(|| {
        Error::argument(format!(
            "{name:?} is not the name of a device: expected one such as \"/device:CPU:0\" or \
             \"/job:worker/task:1/device:GPU:0\""
        ))
    })
}

/// Completes a name for eager execution: TensorFlow knows a task only by its job, replica and number,
/// and a device of another task only by all parts.
///
/// The first of `devices` is of this process' own task. A name without a task stays without one, and is
/// empty if nothing is left of it. With `is_soft`, TensorFlow takes another device of the own task for one
/// that it has not.
///
/// # Errors
/// [`ErrorKind::Argument`](crate::ErrorKind::Argument) for what is not a name, a name of none of the
/// devices, or of several where another task is named.
pub(crate) fn complete(name: &str, devices: &[Device], is_soft: bool) -> Result<String> {
    let parts = parts_of(name)?;
    let all: Vec<_> = devices
        .iter()
        .filter_map(|device| Some((Parts::of(&device.name)?, &*device.name)))
        .collect();
    let Some((own, _)) = all.first() else {
        return Ok(name.to_owned());
    };
    let named: Vec<_> = all.iter().filter(|(device, _)| parts.fit(device)).collect();
    let names_task = parts.task() != (None, None, None);
    let is_own = match named[..] {
        [] => is_soft && parts.fit_task(own),
        _ => named.iter().all(|(device, _)| device.task() == own.task()),
    };
    match named[..] {
        _ if is_own => Ok(parts.text(names_task.then_some(own))),
        [] => Err(Error::argument(format!(
            "{name:?} names none of the devices that there are: {}",
            list(all.iter().map(|(_, name)| *name))
        ))),
        _ if !names_task => Ok(parts.text(None)),
        [(_, full)] => Ok((*full).to_owned()),
        _ => Err(Error::argument(format!(
            "{name:?} names several devices, and an op takes one: {}",
            list(named.iter().map(|(_, name)| *name))
        ))),
    }
}

fn list<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let more = names.len().saturating_sub(NAMED);
    let mut text = names.take(NAMED).collect::<Vec<_>>().join(", ");
    if more > 0 {
        let _ = write!(text, ", and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices(names: &[&str]) -> Vec<Device> {
        let device = |name: &&str| Device {
            name: (*name).to_owned(),
            kind: String::new(),
            memory_bytes: 0,
            incarnation: 0,
        };
        names.iter().map(device).collect()
    }

    const CLUSTER: [&str; 6] = [
        "/job:chief/replica:0/task:0/device:CPU:0",
        "/job:chief/replica:0/task:0/device:TFP:0",
        "/job:ps/replica:0/task:0/device:CPU:0",
        "/job:worker/replica:0/task:0/device:CPU:0",
        "/job:worker/replica:0/task:1/device:CPU:0",
        "/job:worker/replica:0/task:1/device:TFP:0",
    ];

    #[test]
    fn names_are_completed() {
        let devices = devices(&CLUSTER);
        for (name, expected) in [
            ("/device:CPU:0", "/device:CPU:0"),
            ("/cpu:0", "/device:CPU:0"),
            ("/device:CPU:*", "/device:CPU"),
            ("/device:*:0", "/device:*:0"),
            ("/job:*/device:TFP:0", "/device:TFP:0"),
            ("/", ""),
            ("/job:chief", "/job:chief/replica:0/task:0"),
            ("/job:chief/device:TFP:0", CLUSTER[1]),
            ("/job:ps", CLUSTER[2]),
            ("/job:ps/task:0/device:CPU:0", CLUSTER[2]),
            ("/job:ps/replica:0/task:*/device:CPU:0", CLUSTER[2]),
            ("/job:worker/task:1/device:CPU:0", CLUSTER[4]),
            ("/device:CPU:0/task:01", CLUSTER[4]),
            ("/job:worker/device:TFP:0", CLUSTER[5]),
        ] {
            assert_eq!(complete(name, &devices, false).unwrap(), expected, "{name}");
        }
        for name in CLUSTER {
            assert_eq!(complete(name, &devices, false).unwrap(), name);
        }
    }

    #[test]
    fn names_of_none_or_several_are_refused() {
        let devices = devices(&CLUSTER);
        for (name, problem) in [
            ("/job:nonsense/device:CPU:0", "none of the devices"),
            ("/job:worker/task:2", "none of the devices"),
            ("/task:99999999999999999999", "none of the devices"),
            ("/device:cpu:0", "none of the devices"),
            ("/device:GPU:0", "none of the devices"),
            ("/job:worker/device:CPU:0", "several devices"),
            ("/job:worker/task:1", "several devices"),
            ("/task:0", "several devices"),
        ] {
            let error = complete(name, &devices, false).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
            assert!(error.contains(CLUSTER[4]) || name == "/task:0", "{error}");
        }
        let several = complete("/job:worker/task:1", &devices, false).unwrap_err();
        assert!(!several.to_string().contains("job:ps"), "{several}");
    }

    #[test]
    fn soft_placement_is_of_the_own_task() {
        let devices = devices(&CLUSTER);
        let soft = |name| complete(name, &devices, true);
        assert_eq!(soft("/device:GPU:0").unwrap(), "/device:GPU:0");
        let own = "/job:chief/replica:0/task:0/device:GPU:7";
        assert_eq!(soft("/job:chief/device:GPU:7").unwrap(), own);
        assert!(soft("/job:ps/device:GPU:0").is_err());
        assert!(soft("/job:nonsense").is_err());
    }

    #[test]
    fn errors_name_few_devices() {
        let many: Vec<_> = (0..40)
            .map(|at| format!("/job:a/replica:0/task:{at}/device:CPU:0"))
            .collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        let error = complete("/device:TPU:0", &devices(&many), false).unwrap_err();
        assert!(error.to_string().ends_with("and 24 more"), "{error}");
    }
}
