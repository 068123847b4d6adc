//! The GPU that computes, if the configuration asks for one: which, its memory, and the kernels that it takes.
//!
//! A kernel pays for one branch where the CPU computes. A GPU is opened when the first device or kernel is made.

use std::alloc::Layout;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tfp_bindings::host::{BlockSource, HostMemory};
use tfp_bindings::{Code, Error, Result, log};
use tfp_gpu::{Body, Description, Gpu, Kind, Options, Outcome, Placement, Problem, Reason};
use tfp_kernels::base::def::{Call, KernelDef};
use tfp_kernels::base::dtype::DType;

use crate::config::{Backend, Config};
use crate::drivers;

/// What the configuration says of GPUs.
#[derive(Clone, Debug, Default)]
struct Wish {
    backend: Backend,
    gpu: Option<String>,
    memory: Placement,
    all: bool,
    patience: Option<Duration>,
}

static WISH: OnceLock<Wish> = OnceLock::new();
/// Whether the GPU is lost: what its memory holds is undefined.
static LOST: AtomicBool = AtomicBool::new(false);
static CHOSEN: OnceLock<std::result::Result<Gpu, String>> = OnceLock::new();

/// Keeps what the configuration says. Only the first call has an effect.
pub(crate) fn configure(config: &Config) {
    WISH.get_or_init(|| Wish {
        backend: config.backend,
        gpu: config.gpu.clone(),
        memory: config.gpu_memory,
        all: config.gpu_all,
        patience: config.gpu_patience,
    });
}

/// The GPU that computes; `None` where the CPU does. The first call opens it, or logs a line that says why not.
pub fn chosen() -> Option<&'static Gpu> {
    let wish = WISH.get()?;
    if wish.backend == Backend::Cpu {
        return None;
    }
    let chosen = CHOSEN.get_or_init(|| {
        open(wish).inspect_err(|why| {
            // A machine without a GPU is what `auto` is for.
            if wish.backend == Backend::Vulkan {
                log(&format!("TFP_BACKEND=vulkan: {why}; the CPU computes"));
            }
        })
    });
    chosen.as_ref().ok()
}

/// The GPU that computes, if the processor reads its memory much more slowly than its own.
pub(crate) fn far() -> Option<&'static Gpu> {
    chosen().filter(|gpu| gpu.is_far())
}

/// Whether the processor reads the memory of the GPU that computes much more slowly than its own.
pub fn is_far() -> bool {
    far().is_some()
}

/// All devices that Vulkan lists.
fn listed() -> std::result::Result<Vec<Description>, Problem> {
    drivers::load();
    tfp_gpu::gpus()
}

fn open(wish: &Wish) -> std::result::Result<Gpu, String> {
    let all = listed().map_err(|problem| problem.to_string())?;
    let index = choose(&all, wish)?;
    let usual = Options::default();
    let options = Options {
        decline_small: !wish.all,
        placement: wish.memory,
        patience: wish.patience.unwrap_or(usual.patience),
    };
    tfp_gpu::open(index, &options).map_err(|problem| problem.to_string())
}

/// The index of the GPU to open.
fn choose(all: &[Description], wish: &Wish) -> std::result::Result<usize, String> {
    if all.is_empty() {
        return Err("Vulkan lists no GPU: install the GPU's driver".to_owned());
    }
    if let Some(named) = &wish.gpu {
        let wanted = named.trim().to_lowercase();
        let fits = |each: &&Description| match wanted.parse() {
            Ok(index) => each.index == index,
            Err(_) => each.name.to_lowercase().contains(&wanted),
        };
        let Some(found) = all.iter().find(fits) else {
            let names = all
                .iter()
                .map(|each| format!("{} {:?}", each.index, each.name));
            let names = names.collect::<Vec<_>>().join(", ");
            return Err(format!("TFP_GPU={named:?} is none of {names}"));
        };
        return match &found.unusable {
            Some(reason) => Err(format!("GPU {:?} is not usable: {reason}", found.name)),
            None => Ok(found.index),
        };
    }
    let rank = |each: &Description| match each.kind {
        Kind::Discrete => 0,
        Kind::Integrated => 1,
        Kind::Virtual => 2,
        Kind::Other => 3,
        Kind::Software => 4,
    };
    let hardware = |each: &&Description| wish.backend == Backend::Vulkan || rank(each) < 3;
    let usable = all.iter().filter(|each| each.unusable.is_none());
    let best = usable.filter(hardware).min_by_key(|each| rank(each));
    best.map(|each| each.index).ok_or_else(|| {
        let reasons = all.iter().map(|each| {
            let reason = each.unusable.as_deref();
            format!("{:?}: {}", each.name, reason.unwrap_or("it is software"))
        });
        format!(
            "no GPU is usable: {}",
            reasons.collect::<Vec<_>>().join("; ")
        )
    })
}

/// Blocks of a GPU's memory.
struct Blocks(&'static Gpu);

// SAFETY: `Gpu::allocate` gives memory at a multiple of 64 that the host sees coherently, which is nobody
// else's until it is freed; a stricter boundary is refused.
unsafe impl BlockSource for Blocks {
    fn take(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.align() > 64 {
            return None;
        }
        self.0.allocate(layout.size()).ok()
    }

    unsafe fn give_back(&self, block: NonNull<u8>, _: Layout) {
        // SAFETY: by this method's contract the block is this GPU's, and not used any more.
        if !unsafe { self.0.free(block) } {
            log(&format!("the GPU knows no block at {block:?}"));
        }
    }

    fn bytes(&self) -> Option<(u64, u64)> {
        let memory = self.0.memory();
        let free = memory.total.saturating_sub(memory.used);
        Some((free as u64, memory.total as u64))
    }

    unsafe fn read(&self, from: NonNull<u8>, to: NonNull<u8>, bytes: usize) -> Result<bool> {
        // SAFETY: by this method's contract nobody else uses the target, which is as long.
        let target = unsafe { std::slice::from_raw_parts_mut(to.as_ptr(), bytes) };
        let read = self.0.read(from.as_ptr() as usize, target);
        read.map_err(|problem| failed(&problem))
    }
}

/// The memory of a device that this GPU computes for.
pub fn memory(gpu: &'static Gpu, limit: Option<u64>) -> HostMemory {
    HostMemory::with_source(Box::new(Blocks(gpu)), limit)
}

/// What became of the calls of an op.
#[derive(Debug, Default)]
struct Counts {
    done: AtomicU64,
    form: AtomicU64,
    memory: AtomicU64,
    small: AtomicU64,
}

fn counts() -> &'static BTreeMap<&'static str, Counts> {
    static COUNTS: OnceLock<BTreeMap<&'static str, Counts>> = OnceLock::new();
    COUNTS.get_or_init(|| {
        tfp_gpu::bodies()
            .map(|(op, _)| (op, Counts::default()))
            .collect()
    })
}

thread_local! {
    /// Nanoseconds that the GPU worked for the last call of this thread; 0 if the CPU did.
    static WORKED: Cell<u64> = const { Cell::new(0) };
}

/// Nanoseconds that the GPU worked for this thread since the last time that somebody asked.
pub(crate) fn worked() -> u64 {
    WORKED.try_with(|worked| worked.replace(0)).unwrap_or(0)
}

/// A kernel that the GPU may run.
pub(crate) struct Offload {
    gpu: &'static Gpu,
    body: Body,
    counts: &'static Counts,
}

impl Offload {
    /// For a node whose type attributes `found` tells; `None` where the CPU computes, or the GPU has no body.
    pub fn of(def: &'static KernelDef, found: impl Fn(&str) -> Option<DType>) -> Option<Self> {
        let gpu = chosen()?;
        // The first type attribute is that of the elements.
        let first = def
            .variants
            .first()
            .and_then(|variant| variant.types.first());
        // An op without type attributes is one of truth values.
        let dtype = first.map_or(Some(DType::Bool), |(attr, _)| found(attr))?;
        Some(Self {
            gpu,
            body: tfp_gpu::body(def, dtype)?,
            counts: counts().get(def.op)?,
        })
    }

    /// Whether the GPU has run the call; if not, nothing was done, and the CPU's kernel is to run.
    ///
    /// # Errors
    /// If the device has not enough memory, or is lost.
    #[inline(never)]
    pub fn offer(&self, call: &mut Call<'_>) -> Result<bool> {
        let counts = self.counts;
        let counter = match self
            .gpu
            .run(&self.body, call)
            .map_err(|problem| failed(&problem))?
        {
            Outcome::Done { nanoseconds } => {
                let nanoseconds = nanoseconds.unwrap_or(0);
                // A thread that ends has no profile.
                let _ = WORKED.try_with(|worked| worked.set(worked.get() + nanoseconds));
                &counts.done
            }
            Outcome::Declined(Reason::Form) => &counts.form,
            Outcome::Declined(Reason::Memory) => &counts.memory,
            Outcome::Declined(Reason::Small) => &counts.small,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(std::ptr::eq(counter, &raw const counts.done))
    }
}

/// An error after the GPU was lost: it may still write its memory, on which all kernels of the device compute.
///
/// # Errors
/// `Internal`, as the call got that has lost it.
#[inline(always)]
pub(crate) fn check_alive() -> Result<()> {
    if LOST.load(Ordering::Relaxed) {
        return Err(failed(&Problem::Lost(
            "a kernel before this one failed".into(),
        )));
    }
    Ok(())
}

#[cold]
pub(crate) fn failed(problem: &Problem) -> Error {
    if matches!(problem, Problem::Lost(_)) {
        LOST.store(true, Ordering::Relaxed);
    }
    let code = match problem {
        Problem::Memory { .. } => Code::ResourceExhausted,
        _ => Code::Internal,
    };
    Error::new(code, problem.to_string())
}

/// What `tfp_plugin.check` prints of GPUs, as JSON: the backend in force, all GPUs, the ops with a body with what
/// became of their calls in this process, and `cpu`, an object of JSON.
pub(crate) fn report(cpu: &str) -> String {
    let wish = WISH.get().cloned().unwrap_or_else(|| {
        let config = Config::from_environment().ok();
        config.map_or_else(Wish::default, |config| Wish {
            backend: config.backend,
            gpu: config.gpu,
            memory: config.gpu_memory,
            all: config.gpu_all,
            patience: config.gpu_patience,
        })
    });
    let (all, none) = match listed() {
        Ok(all) => (all, None),
        Err(problem) => (Vec::new(), Some(problem.to_string())),
    };
    // A GPU that would be chosen, if none was opened.
    let opened = CHOSEN.get();
    let choice = match (opened, wish.backend) {
        (_, Backend::Cpu) => Err(String::new()),
        (Some(opened), _) => opened
            .as_ref()
            .map(|gpu| gpu.description().index)
            .map_err(Clone::clone),
        (None, _) => none.clone().map_or_else(|| choose(&all, &wish), Err),
    };
    let problem = choice.as_ref().err().filter(|why| !why.is_empty());
    let gpus = all.iter().map(|each| {
        format!(
            "{{\"index\":{},\"name\":{},\"kind\":{},\"driver\":{},\"api\":\"{}.{}.{}\",\"memory\":{},\"unusable\":{}}}",
            each.index,
            quoted(&each.name),
            quoted(kind(each.kind)),
            quoted(&each.driver),
            each.api.0,
            each.api.1,
            each.api.2,
            each.memory,
            quoted(each.unusable.as_deref().unwrap_or("")),
        )
    });
    let bodies = tfp_gpu::bodies().map(|(op, dtypes)| {
        let types = dtypes.iter().map(|dtype| quoted(&dtype.to_string()));
        let read = |counter: fn(&Counts) -> &AtomicU64| {
            counts()
                .get(op)
                .map_or(0, |counts| counter(counts).load(Ordering::Relaxed))
        };
        format!(
            "{}:{{\"types\":[{}],\"done\":{},\"form\":{},\"memory\":{},\"small\":{}}}",
            quoted(op),
            types.collect::<Vec<_>>().join(","),
            read(|counts| &counts.done),
            read(|counts| &counts.form),
            read(|counts| &counts.memory),
            read(|counts| &counts.small),
        )
    });
    format!(
        "{{\"asked\":{},\"gpu\":{},\"problem\":{},\"none\":{},\"gpus\":[{}],\"ops\":{{{}}},\"cpu\":{}}}",
        quoted(wish.backend.name()),
        choice
            .as_ref()
            .map_or_else(|_| "null".to_owned(), ToString::to_string),
        quoted(problem.map_or("", String::as_str)),
        quoted(none.as_deref().unwrap_or("")),
        gpus.collect::<Vec<_>>().join(","),
        bodies.collect::<Vec<_>>().join(","),
        cpu,
    )
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Discrete => "discrete",
        Kind::Integrated => "integrated",
        Kind::Virtual => "virtual",
        Kind::Software => "software",
        Kind::Other => "other",
    }
}

/// A string of JSON.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for each in text.chars() {
        match each {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            each if each.is_control() => out.push(' '),
            each => out.push(each),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(index: usize, name: &str, kind: Kind, unusable: Option<&str>) -> Description {
        Description {
            index,
            name: name.to_owned(),
            vendor: 0,
            kind,
            driver: String::new(),
            api: (1, 3, 0),
            memory: 1,
            heaps: Vec::new(),
            unusable: unusable.map(str::to_owned),
        }
    }

    fn wish(backend: Backend, gpu: Option<&str>) -> Wish {
        Wish {
            backend,
            gpu: gpu.map(str::to_owned),
            memory: Placement::Best,
            all: false,
            patience: None,
        }
    }

    #[test]
    fn the_best_usable_gpu_is_chosen() {
        let all = [
            described(0, "llvmpipe", Kind::Software, None),
            described(1, "Radeon Graphics", Kind::Integrated, None),
            described(2, "Old Card", Kind::Discrete, Some("it needs Vulkan 1.1")),
            described(3, "New Card", Kind::Discrete, None),
        ];
        let vulkan = |gpu| choose(&all, &wish(Backend::Vulkan, gpu));
        assert_eq!(vulkan(None), Ok(3));
        assert_eq!(vulkan(Some("1")), Ok(1));
        assert_eq!(vulkan(Some("LLVM")), Ok(0));
        assert!(vulkan(Some("old")).unwrap_err().contains("Vulkan 1.1"));
        assert!(vulkan(Some("7")).unwrap_err().contains("3 \"New Card\""));
        assert_eq!(choose(&all[..2], &wish(Backend::Auto, None)), Ok(1));
    }

    #[test]
    fn auto_takes_no_software() {
        let all = [described(0, "llvmpipe", Kind::Software, None)];
        let why = choose(&all, &wish(Backend::Auto, None)).unwrap_err();
        assert!(
            why.contains("llvmpipe") && why.contains("software"),
            "{why}"
        );
        assert_eq!(choose(&all, &wish(Backend::Vulkan, None)), Ok(0));
        assert!(choose(&[], &wish(Backend::Vulkan, None)).is_err());
    }

    #[test]
    fn the_cpu_opens_nothing() {
        assert!(chosen().is_none());
    }

    #[test]
    fn text_is_quoted() {
        assert_eq!(quoted("a\"b\\c\n"), r#""a\"b\\c ""#);
    }
}
