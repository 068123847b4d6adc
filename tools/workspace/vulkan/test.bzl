"""What a test that needs Vulkan adds to its attributes."""

# Add them to `data`, and put `VULKAN_ENV` into `env`.
VULKAN_DATA = [
    "@lavapipe//:icd.json",
    "@lavapipe//:lavapipe",
]

# Loaders before 1.3.207 know the first name only. The folder of the last line holds the loader alone.
VULKAN_ENV = {
    "LD_LIBRARY_PATH": "../lavapipe/loader",
    "MESA_SHADER_CACHE_DISABLE": "true",
    "VK_DRIVER_FILES": "$(rootpath @lavapipe//:icd.json)",
    "VK_ICD_FILENAMES": "$(rootpath @lavapipe//:icd.json)",
}
