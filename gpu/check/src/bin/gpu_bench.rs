//! Checks every body on a GPU, then measures: `gpu_bench [--json] [--quick] [--check] [--only OP] [--gpu N]
//! [--memory host]`.
//!
//! A row is a call: nanoseconds of the device (the median), of the whole call, of the CPU's kernel with
//! two threads, and what the device's time is as a rate.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use tfp_gpu::{Gpu, Options, Peaks, Placement, Problem, body, gpus, open};
use tfp_gpu_check::cases::{self, kernel, large, product};
use tfp_gpu_check::compare::check;
use tfp_gpu_check::run::{Case, Times};
use tfp_gpu_check::tensor::{Attr, Random, Table};
use tfp_kernels::base::dtype::DType;
use tfp_kernels::base::threads::ThreadPool;

struct Row {
    name: String,
    device: Option<f64>,
    /// The median of each turn.
    turns: Vec<f64>,
    wall: f64,
    cpu: Option<f64>,
    flops: f64,
    bytes: f64,
}

fn least(times: &[f64]) -> Option<f64> {
    times.iter().copied().reduce(f64::min)
}

fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

struct Bench<'a> {
    gpu: &'a Gpu,
    pool: &'a ThreadPool,
    quick: bool,
    rows: Vec<Row>,
}

impl Bench<'_> {
    /// Times a call on both; the CPU's turns lie between the GPU's.
    fn row(&mut self, name: String, case: &Case, flops: f64) {
        let Some(body) = body(case.def, DType::F32) else {
            return;
        };
        let mut gpu = Times::default();
        let mut medians = Vec::new();
        let mut cpu = Times::default();
        // Turns of the GPU and the CPU alternate. A card at rest has a slow clock: calls follow each other until it
        // has the fast one, and the last ones count.
        let warm: &[u64] = if self.quick { &[3] } else { &[600, 200] };
        for (turn, &warm) in warm.iter().enumerate() {
            let found = case.time_on_gpu_for(self.gpu, &body, (Duration::from_millis(warm), 10));
            match found {
                Ok((_, times)) => {
                    medians.push(median(&times.device));
                    gpu.wall.extend(times.wall);
                    gpu.device.extend(times.device);
                }
                Err(failure) => {
                    eprintln!("{name}: {failure:?}");
                    return;
                }
            }
            let long = cpu.wall.iter().any(|&time| time > 20e6);
            if flops < 2e10
                && !(turn > 0 && long)
                && let Ok((_, times)) = case.time_on_cpu(self.pool, if flops > 1e9 { 1 } else { 3 })
            {
                cpu.wall.extend(times.wall);
            }
        }
        let outputs = case
            .output_dims()
            .unwrap_or_default()
            .iter()
            .product::<usize>()
            * 4;
        let inputs: usize = case.inputs.iter().map(|input| input.len()).sum();
        let row = Row {
            name,
            device: (!gpu.device.is_empty()).then(|| median(&gpu.device)),
            turns: medians,
            wall: median(&gpu.wall),
            cpu: least(&cpu.wall),
            flops,
            bytes: (inputs + outputs) as f64,
        };
        println!("{}", text(&row));
        self.rows.push(row);
    }

    fn all(&mut self) {
        let mut random = Random::new(7);
        let large = if self.quick { 1 << 18 } else { 1 << 25 };
        for elements in [64, 1 << 14, 1 << 20, large] {
            let x = random.tensor(&[elements], 1.0);
            let y = random.tensor(&[elements], 1.0);
            for op in ["Neg", "AddV2", "Tanh", "Relu"] {
                let mut inputs = vec![x.clone()];
                if op == "AddV2" {
                    inputs.push(y.clone());
                }
                self.row(
                    format!("{op} {elements}"),
                    &Case::new(kernel(op), inputs),
                    0.0,
                );
            }
        }
        let sides: &[usize] = if self.quick {
            &[64, 256]
        } else {
            &[256, 512, 1024, 2048, 4096]
        };
        for &side in sides {
            for (ta, tb) in [(false, false), (true, false), (false, true)] {
                let inputs = vec![
                    random.tensor(&[side, side], 1.0),
                    random.tensor(&[side, side], 1.0),
                ];
                let mut case = Case::new(kernel("MatMul"), inputs);
                case.attrs = Table(vec![
                    ("transpose_a", Attr::Bool(ta)),
                    ("transpose_b", Attr::Bool(tb)),
                ]);
                let flops = 2.0 * (side as f64).powi(3);
                self.row(
                    format!("MatMul {side} {}{}", letter(ta), letter(tb)),
                    &case,
                    flops,
                );
            }
        }
        let batch = if self.quick { 1 } else { 32 };
        let stages: &[([usize; 4], [usize; 4], i64)] = &[
            ([batch, 224, 224, 3], [7, 7, 3, 64], 2),
            ([batch, 56, 56, 64], [3, 3, 64, 64], 1),
            ([batch, 56, 56, 64], [1, 1, 64, 256], 1),
            ([batch, 28, 28, 128], [3, 3, 128, 128], 1),
            ([batch, 14, 14, 256], [3, 3, 256, 256], 1),
            ([batch, 14, 14, 1024], [1, 1, 1024, 256], 1),
            ([batch, 7, 7, 512], [3, 3, 512, 512], 1),
        ];
        for &(image, filter, stride) in if self.quick { &stages[4..5] } else { stages } {
            let attrs = product::attributes([stride, 1], "SAME");
            let made = product::convolution(&mut random, (image, filter), &attrs);
            for case in made.into_iter().flatten() {
                let pixels =
                    image[0] * image[1] * image[2] / (stride * stride).unsigned_abs() as usize;
                let flops = 2.0 * (pixels * filter.iter().product::<usize>()) as f64;
                self.row(
                    format!("{} {image:?} {filter:?}", case.def.op),
                    &case,
                    flops,
                );
            }
        }
        for case in large::calls(&mut random, batch) {
            let dims: Vec<_> = case.inputs.iter().map(|input| &input.dims).collect();
            self.row(format!("{} {dims:?}", case.def.op), &case, 0.0);
        }
    }
}

fn letter(transposed: bool) -> char {
    if transposed { 'T' } else { 'N' }
}

fn text(row: &Row) -> String {
    let device = row.device.unwrap_or(row.wall);
    let cpu = row
        .cpu
        .map_or(String::new(), |cpu| format!("  cpu {:>10.1} us", cpu / 1e3));
    format!(
        "{:<64} device {:>9.1} us  call {:>9.1} us{cpu}  {:>8.1} GFLOPS {:>7.1} GB/s",
        row.name,
        device / 1e3,
        row.wall / 1e3,
        row.flops / device,
        row.bytes / device
    )
}

/// What a run knows besides its rows.
struct Facts {
    peaks: Peaks,
    host: (f64, f64),
    staged: Option<f64>,
    wrong: usize,
}

fn number(value: Option<f64>) -> String {
    value.map_or("null".to_owned(), |value| format!("{value:.3}"))
}

fn json(row: &Row, peaks: &Peaks) -> String {
    let device = row.device.unwrap_or(row.wall);
    let flops = (row.flops > 0.0).then_some(row.flops / device / peaks.flops);
    let turns: Vec<_> = row.turns.iter().map(|turn| format!("{turn:.0}")).collect();
    format!(
        "{{\"name\": \"{}\", \"device_ns\": {}, \"turns_ns\": [{}], \"call_ns\": {:.0}, \"cpu_ns\": {}, \
         \"flops\": {:.0}, \"bytes\": {:.0}, \"share_of_flops\": {}, \"share_of_copy\": {:.3}}}",
        row.name,
        number(row.device),
        turns.join(", "),
        row.wall,
        number(row.cpu),
        row.flops,
        row.bytes,
        number(flops),
        row.bytes / device / peaks.copy
    )
}

fn document(gpu: &Gpu, facts: &Facts, rows: &[Row]) -> String {
    let card = gpu.description();
    let costs = gpu.costs();
    let (major, minor, patch) = card.api;
    let rows: Vec<_> = rows.iter().map(|row| json(row, &facts.peaks)).collect();
    format!(
        "{{\"card\": {:?}, \"kind\": \"{:?}\", \"driver\": {:?}, \"vulkan\": \"{major}.{minor}.{patch}\", \
         \"memory\": {}, \"wrong\": {},\n\"peak_gflops\": {:.0}, \"copy_gb_s\": {:.0}, \
         \"submission_ns\": {:.0}, \"host_write_gb_s\": {:.3}, \"host_read_gb_s\": {:.3}, \
         \"staged_read_gb_s\": {},\n\"rows\": [\n{}\n]}}",
        card.name,
        card.kind,
        card.driver,
        card.memory,
        facts.wrong,
        facts.peaks.flops,
        facts.peaks.copy,
        costs.submission,
        facts.host.0,
        facts.host.1,
        number(facts.staged),
        rows.join(",\n")
    )
}

/// Bytes per nanosecond through the mapped address.
fn bandwidth(gpu: &Gpu, bytes: usize) -> Result<((f64, f64), Option<f64>), Problem> {
    let start = Instant::now();
    let block = gpu.allocate(bytes)?;
    println!(
        "allocate {bytes} bytes: {:.1} us",
        start.elapsed().as_nanos() as f64 / 1e3
    );
    let mut host = vec![1_u8; bytes];
    let mut rates = (0.0_f64, 0.0_f64);
    for _ in 0..2 {
        let start = Instant::now();
        // SAFETY: both sides have as many bytes, and the block is this function's.
        unsafe {
            block
                .as_ptr()
                .copy_from_nonoverlapping(host.as_ptr(), bytes)
        };
        rates.0 = rates
            .0
            .max(bytes as f64 / start.elapsed().as_nanos() as f64);
        let part = bytes / 256;
        let start = Instant::now();
        // SAFETY: as above.
        unsafe {
            host.as_mut_ptr()
                .copy_from_nonoverlapping(block.as_ptr(), part)
        };
        rates.1 = rates.1.max(part as f64 / start.elapsed().as_nanos() as f64);
    }
    let mut staged = None;
    let start = Instant::now();
    if gpu.read(block.as_ptr() as usize, &mut host)? {
        let rate = bytes as f64 / start.elapsed().as_nanos() as f64;
        staged = Some(rate);
        let right = host.iter().all(|&each| each == 1);
        println!("staged read of {bytes} bytes: {rate:.2} GB/s, right: {right}");
    }
    // SAFETY: nobody uses the block any more.
    unsafe { gpu.free(block) };
    Ok((rates, staged))
}

fn correctness(gpu: &Gpu, only: Option<&String>) -> usize {
    let mut wrong = 0;
    let mut counts = std::collections::BTreeMap::<_, [usize; 3]>::new();
    let wanted = |op: &str| only.is_none_or(|only| only == op);
    for each in cases::all(1)
        .into_iter()
        .filter(|each| wanted(each.case.def.op))
    {
        let counts = counts.entry(each.case.def.op).or_default();
        match check(gpu, &each.case, each.tolerance) {
            Ok(true) => counts[0] += 1,
            Ok(false) => counts[1] += 1,
            Err(text) => {
                println!("WRONG {text}");
                counts[2] += 1;
                wrong += 1;
            }
        }
    }
    for (op, [right, declined, wrong]) in counts {
        let word = if wrong == 0 { "pass" } else { "FAIL" };
        println!("{word} {op}: {right} right, {declined} declined, {wrong} wrong");
    }
    wrong
}

fn run(arguments: &[String]) -> Result<usize, Problem> {
    if arguments.iter().any(|argument| argument == "--help") {
        println!(
            "gpu_bench [--json] [--quick] [--check] [--only OP] [--gpu N] [--memory host]\n\n\
             Checks every body on a GPU, then measures. --check only checks; --only checks one op;\n\
             --quick measures small calls; --json prints the rows as JSON, too. The tensors are in\n\
             the GPU's own memory; with --memory host they are in the machine's."
        );
        return Ok(0);
    }
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let after = |flag: &str| arguments.iter().skip_while(|each| *each != flag).nth(1);
    let index = after("--gpu").and_then(|text| text.parse().ok());
    let index = index.unwrap_or(0);
    let only = after("--only");
    let placement = if after("--memory").is_some_and(|place| place == "host") {
        Placement::Host
    } else {
        Placement::Device
    };
    for each in gpus()? {
        println!("{each:#?}");
    }
    let options = Options {
        decline_small: false,
        placement,
        ..Options::default()
    };
    let start = Instant::now();
    let gpu = open(index, &options)?;
    println!(
        "opened in {:.1} ms; costs {:?}",
        start.elapsed().as_secs_f64() * 1e3,
        gpu.costs()
    );
    let start = Instant::now();
    let wrong = correctness(&gpu, only);
    println!("checked in {:.1} s", start.elapsed().as_secs_f64());
    let quick = has("--quick");
    if has("--check") {
        return Ok(wrong);
    }
    let peaks = gpu.peaks()?;
    println!(
        "peaks: {:.0} GFLOPS of fused multiply-adds, copies of {:.0} GB/s (read and written)",
        peaks.flops, peaks.copy
    );
    let (host, staged) = bandwidth(&gpu, if quick { 1 << 20 } else { 1 << 28 })?;
    println!("host writes {:.2} GB/s, reads {:.3} GB/s", host.0, host.1);
    let pool = ThreadPool::new(2);
    let mut bench = Bench {
        gpu: &gpu,
        pool: &pool,
        quick,
        rows: Vec::new(),
    };
    bench.all();
    if has("--json") {
        let facts = Facts {
            peaks,
            host,
            staged,
            wrong,
        };
        println!("{}", document(&gpu, &facts, &bench.rows));
    }
    println!(
        "measured in {:.1} s; memory {:?}",
        start.elapsed().as_secs_f64(),
        gpu.memory()
    );
    Ok(wrong)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(wrong) => {
            println!("{wrong} calls are wrong");
            ExitCode::FAILURE
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}
