//! The Vulkan library of the process, and the devices that it lists.

use std::ffi::CStr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use ash::{Entry, Instance, vk};

use crate::Placement;
use crate::problem::Problem;
use crate::work::MAX_BUFFERS;

/// Kinds of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A card with memory of its own.
    Discrete,
    /// Part of the processor; shares its memory.
    Integrated,
    /// Part of a virtual machine.
    Virtual,
    /// A driver that computes on the processor.
    Software,
    /// Anything else.
    Other,
}

/// A heap of a device's memory, and how the host sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heap {
    /// Bytes.
    pub bytes: usize,
    /// The kinds of memory in it, in Vulkan's words.
    pub types: Vec<String>,
}

/// What a device is, and whether this crate can use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The number for [`open`](crate::open).
    pub index: usize,
    /// The device's name.
    pub name: String,
    /// The vendor's number, such as 0x10de.
    pub vendor: u32,
    /// The kind of device.
    pub kind: Kind,
    /// Name and version of the driver.
    pub driver: String,
    /// Version of Vulkan that the driver offers.
    pub api: (u32, u32, u32),
    /// Bytes of memory that both host and device see: what [`Gpu::allocate`](crate::Gpu::allocate) gives.
    pub memory: usize,
    /// All heaps.
    pub heaps: Vec<Heap>,
    /// Why it can't be used.
    pub unusable: Option<String>,
}

/// An instance of Vulkan.
pub struct Library {
    pub instance: Instance,
    pub version: u32,
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: all devices of the instance hold it, so there is none any more.
        unsafe { self.instance.destroy_instance(None) };
    }
}

/// The loader and its version; it stays loaded until the process ends.
static ENTRY: OnceLock<Result<(Entry, u32), Problem>> = OnceLock::new();
/// The instance while somebody has it: drivers must have ended their threads before the process ends.
static LIBRARY: Mutex<Weak<Library>> = Mutex::new(Weak::new());

/// Wraps the error of a call.
pub fn call(function: &'static str) -> impl Fn(vk::Result) -> Problem {
    move |result| match result {
        vk::Result::ERROR_DEVICE_LOST => Problem::Lost(format!("{function} says so")),
        result => Problem::Call {
            function,
            result: format!("{result:?}"),
        },
    }
}

fn entry() -> Result<(Entry, u32), Problem> {
    // SAFETY: loading runs initializers of libvulkan, as linking it would.
    let entry =
        unsafe { Entry::load() }.map_err(|problem| Problem::NoVulkan(problem.to_string()))?;
    // SAFETY: the entry was loaded, the function takes nothing that could be invalid.
    let version = unsafe { entry.try_enumerate_instance_version() }
        .ok()
        .flatten()
        .unwrap_or(vk::API_VERSION_1_0);
    Ok((entry, version.min(vk::API_VERSION_1_3)))
}

fn load() -> Result<Library, Problem> {
    let (entry, version) = ENTRY.get_or_init(entry).as_ref().map_err(Clone::clone)?;
    let application = vk::ApplicationInfo::default()
        .application_name(c"tfp")
        .engine_name(c"tfp")
        .api_version(*version);
    let info = vk::InstanceCreateInfo::default().application_info(&application);
    // SAFETY: `info` and what it names live until the call ends.
    let instance = unsafe { entry.create_instance(&info, None) }
        .map_err(|result| Problem::NoVulkan(format!("vkCreateInstance: {result:?}")))?;
    Ok(Library {
        instance,
        version: *version,
    })
}

/// The instance of the process.
pub fn library() -> Result<Arc<Library>, Problem> {
    let mut kept = LIBRARY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = kept.upgrade() {
        return Ok(library);
    }
    let library = Arc::new(load()?);
    *kept = Arc::downgrade(&library);
    Ok(library)
}

impl Library {
    pub fn devices(&self) -> Result<Vec<vk::PhysicalDevice>, Problem> {
        // SAFETY: the instance is alive as long as `self`.
        unsafe { self.instance.enumerate_physical_devices() }
            .map_err(|result| Problem::NoVulkan(format!("vkEnumeratePhysicalDevices: {result:?}")))
    }

    pub fn memory(&self, device: vk::PhysicalDevice) -> vk::PhysicalDeviceMemoryProperties {
        // SAFETY: `device` is one of this instance's.
        unsafe { self.instance.get_physical_device_memory_properties(device) }
    }

    pub fn properties(&self, device: vk::PhysicalDevice) -> vk::PhysicalDeviceProperties {
        // SAFETY: `device` is one of this instance's.
        unsafe { self.instance.get_physical_device_properties(device) }
    }

    /// The first family of queues that computes, and the bits of its timestamps; one without graphics if
    /// there is one.
    pub fn family(&self, device: vk::PhysicalDevice) -> Option<(u32, u32)> {
        // SAFETY: `device` is one of this instance's.
        let families = unsafe {
            self.instance
                .get_physical_device_queue_family_properties(device)
        };
        let computes = |family: &vk::QueueFamilyProperties| {
            family.queue_flags.contains(vk::QueueFlags::COMPUTE)
        };
        let alone = families.iter().position(|family| {
            computes(family) && !family.queue_flags.contains(vk::QueueFlags::GRAPHICS)
        });
        let place = alone.or_else(|| families.iter().position(computes))?;
        let bits = families.get(place)?.timestamp_valid_bits;
        Some((u32::try_from(place).ok()?, bits))
    }

    fn driver(
        &self,
        device: vk::PhysicalDevice,
        properties: &vk::PhysicalDeviceProperties,
    ) -> String {
        if self.version < vk::API_VERSION_1_2 || properties.api_version < vk::API_VERSION_1_2 {
            return format!("{:#x}", properties.driver_version);
        }
        let mut driver = vk::PhysicalDeviceDriverProperties::default();
        let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut driver);
        // SAFETY: instance and device have Vulkan 1.2, where the function and the structure are.
        unsafe {
            self.instance
                .get_physical_device_properties2(device, &mut all)
        };
        let text = |value: &[std::ffi::c_char]| {
            let bytes: Vec<u8> = value.iter().map(|&c| c.cast_unsigned()).collect();
            let text = CStr::from_bytes_until_nul(&bytes);
            text.map(|text| text.to_string_lossy().into_owned())
                .unwrap_or_default()
        };
        let (name, info) = (text(&driver.driver_name), text(&driver.driver_info));
        format!("{name} {info}").trim().to_owned()
    }

    pub fn describe(&self, index: usize, device: vk::PhysicalDevice) -> Description {
        let properties = self.properties(device);
        let memory = self.memory(device);
        let name = properties
            .device_name_as_c_str()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let kind = match properties.device_type {
            vk::PhysicalDeviceType::DISCRETE_GPU => Kind::Discrete,
            vk::PhysicalDeviceType::INTEGRATED_GPU => Kind::Integrated,
            vk::PhysicalDeviceType::VIRTUAL_GPU => Kind::Virtual,
            vk::PhysicalDeviceType::CPU => Kind::Software,
            _ => Kind::Other,
        };
        let heaps = memory.memory_heaps_as_slice().iter().enumerate();
        let heaps = heaps.map(|(number, heap)| Heap {
            bytes: usize::try_from(heap.size).unwrap_or(usize::MAX),
            types: memory
                .memory_types_as_slice()
                .iter()
                .filter(|kind| usize::try_from(kind.heap_index) == Ok(number))
                .map(|kind| flags(kind.property_flags))
                .collect(),
        });
        let version = properties.api_version;
        let unusable = self.unusable(device, &properties, &memory);
        Description {
            index,
            name,
            vendor: properties.vendor_id,
            kind,
            driver: self.driver(device, &properties),
            api: (
                vk::api_version_major(version),
                vk::api_version_minor(version),
                vk::api_version_patch(version),
            ),
            memory: placed(&memory, Placement::Best).map_or(0, |(_, bytes)| bytes),
            heaps: heaps.collect(),
            unusable,
        }
    }

    fn unusable(
        &self,
        device: vk::PhysicalDevice,
        properties: &vk::PhysicalDeviceProperties,
        memory: &vk::PhysicalDeviceMemoryProperties,
    ) -> Option<String> {
        let limits = &properties.limits;
        if self.version < vk::API_VERSION_1_1 || properties.api_version < vk::API_VERSION_1_1 {
            return Some("it needs Vulkan 1.1 or newer: update loader and driver".into());
        }
        if self.family(device).is_none() {
            return Some("it has no queue that computes".into());
        }
        if placed(memory, Placement::Best).is_none() {
            return Some("it has not memory that host and device share".into());
        }
        let needs = [
            (
                "buffers per stage",
                limits.max_per_stage_descriptor_storage_buffers,
                MAX_BUFFERS as u32,
            ),
            (
                "buffers per set",
                limits.max_descriptor_set_storage_buffers,
                MAX_BUFFERS as u32,
            ),
            (
                "threads per group",
                limits.max_compute_work_group_invocations,
                256,
            ),
            (
                "threads per group in x",
                limits.max_compute_work_group_size[0],
                256,
            ),
            (
                "bytes that threads share",
                limits.max_compute_shared_memory_size,
                17_408,
            ),
            (
                "bytes of push constants",
                limits.max_push_constants_size,
                128,
            ),
        ];
        let lacking = needs.iter().find(|(_, found, needed)| found < needed);
        lacking.map(|(what, found, needed)| format!("it has {found} {what}, and needs {needed}"))
    }
}

fn flags(found: vk::MemoryPropertyFlags) -> String {
    let names = [
        (vk::MemoryPropertyFlags::DEVICE_LOCAL, "DEVICE_LOCAL"),
        (vk::MemoryPropertyFlags::HOST_VISIBLE, "HOST_VISIBLE"),
        (vk::MemoryPropertyFlags::HOST_COHERENT, "HOST_COHERENT"),
        (vk::MemoryPropertyFlags::HOST_CACHED, "HOST_CACHED"),
        (
            vk::MemoryPropertyFlags::LAZILY_ALLOCATED,
            "LAZILY_ALLOCATED",
        ),
    ];
    let set = names.iter().filter(|(flag, _)| found.contains(*flag));
    set.map(|(_, name)| *name).collect::<Vec<_>>().join(" | ")
}

/// The type of memory that is the device's, and that the host sees; and the bytes of its heap. Of several,
/// the one that the host caches, then the largest.
pub fn shared(memory: &vk::PhysicalDeviceMemoryProperties) -> Option<(u32, usize)> {
    let needed = vk::MemoryPropertyFlags::DEVICE_LOCAL
        | vk::MemoryPropertyFlags::HOST_VISIBLE
        | vk::MemoryPropertyFlags::HOST_COHERENT;
    let kinds = memory.memory_types_as_slice().iter().enumerate();
    let kinds = kinds.filter(|(_, kind)| kind.property_flags.contains(needed));
    let best = kinds.max_by_key(|(number, kind)| {
        let cached = kind
            .property_flags
            .contains(vk::MemoryPropertyFlags::HOST_CACHED);
        let heap = memory.memory_heaps[kind.heap_index as usize].size;
        (cached, heap, std::cmp::Reverse(*number))
    });
    best.map(|(number, _)| (number as u32, heap_of(memory, number)))
}

/// The type of memory that is the host's, and that it caches: for copies of what only the device reads quickly.
pub fn cached(memory: &vk::PhysicalDeviceMemoryProperties) -> Option<(u32, usize)> {
    let needed = vk::MemoryPropertyFlags::HOST_VISIBLE
        | vk::MemoryPropertyFlags::HOST_COHERENT
        | vk::MemoryPropertyFlags::HOST_CACHED;
    let mut kinds = memory.memory_types_as_slice().iter();
    let found = kinds.position(|kind| kind.property_flags.contains(needed))?;
    Some((u32::try_from(found).ok()?, heap_of(memory, found)))
}

/// The type of memory of a placement, and the bytes of its heap.
pub fn placed(
    memory: &vk::PhysicalDeviceMemoryProperties,
    placement: Placement,
) -> Option<(u32, usize)> {
    let own = shared(memory);
    let is_cached = own.is_some_and(|(kind, _)| {
        let flags = memory.memory_types[kind as usize].property_flags;
        flags.contains(vk::MemoryPropertyFlags::HOST_CACHED)
    });
    match placement {
        Placement::Device => own,
        Placement::Best if is_cached => own,
        Placement::Best | Placement::Host => cached(memory).or(own),
    }
}

/// Bytes of the heap of a type of memory.
fn heap_of(memory: &vk::PhysicalDeviceMemoryProperties, kind: usize) -> usize {
    let heap = memory.memory_types[kind].heap_index;
    usize::try_from(memory.memory_heaps[heap as usize].size).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::DEVICE_LOCAL;
    const SEEN: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::from_raw(
        vk::MemoryPropertyFlags::HOST_VISIBLE.as_raw()
            | vk::MemoryPropertyFlags::HOST_COHERENT.as_raw(),
    );
    const CACHED: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::HOST_CACHED;

    /// Heap 0 has 80 bytes, heap 1 has 16.
    fn memory(kinds: &[(vk::MemoryPropertyFlags, u32)]) -> vk::PhysicalDeviceMemoryProperties {
        let mut memory = vk::PhysicalDeviceMemoryProperties {
            memory_type_count: kinds.len() as u32,
            memory_heap_count: 2,
            ..Default::default()
        };
        (memory.memory_heaps[0].size, memory.memory_heaps[1].size) = (80, 16);
        for (kind, &(flags, heap)) in memory.memory_types.iter_mut().zip(kinds) {
            (kind.property_flags, kind.heap_index) = (flags, heap);
        }
        memory
    }

    #[test]
    fn the_placement_chooses_the_memory() {
        let all = [Placement::Best, Placement::Device, Placement::Host];
        let chosen = |memory: &_| all.map(|placement| placed(memory, placement));
        let card = memory(&[(OWN, 0), (OWN | SEEN, 0), (SEEN, 1), (SEEN | CACHED, 1)]);
        assert_eq!(chosen(&card), [Some((3, 16)), Some((1, 80)), Some((3, 16))]);
        let integrated = memory(&[(OWN | SEEN, 0), (OWN | SEEN | CACHED, 0)]);
        assert_eq!(chosen(&integrated), [Some((1, 80)); 3]);
        let without_bar = memory(&[(OWN, 0), (SEEN | CACHED, 1)]);
        assert_eq!(chosen(&without_bar), [Some((1, 16)), None, Some((1, 16))]);
        let uncached = memory(&[(OWN | SEEN, 0)]);
        assert_eq!(chosen(&uncached), [Some((0, 80)); 3]);
        assert_eq!(chosen(&memory(&[(OWN, 0)])), [None; 3]);
    }
}
