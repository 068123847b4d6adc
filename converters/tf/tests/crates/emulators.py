"""What runs programs of other systems on Linux: QEMU for processors, Wine for Windows.

Debian's packages, unpacked into a folder without root: `$TFP_PLATFORMS_CACHE`, or
`~/.cache/tfp/platforms`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from converters.mlf.tests.bare_metal.debian import unpack

PACKAGES = ("gcc-mingw-w64-x86-64-win32", "qemu-user-static", "wine64")
# Rust's standard library asks this library of Windows for random bytes; the Wine of Debian 12, 8.0,
# does not have it.
_RANDOM = """\
#![no_std]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
#[link(name = "advapi32", kind = "raw-dylib")]
unsafe extern "system" {
    #[link_name = "SystemFunction036"]
    fn random(data: *mut u8, len: u32) -> u8;
}
#[unsafe(no_mangle)]
pub extern "system" fn ProcessPrng(data: *mut u8, len: usize) -> i32 {
    unsafe { i32::from(random(data, len as u32)) }
}
#[unsafe(no_mangle)]
pub extern "system" fn DllMainCRTStartup(_: *const u8, _: u32, _: *const u8) -> i32 {
    1
}
"""


@dataclass(frozen=True)
class Emulators:
    """The unpacked packages.

    Attributes:
        root: File tree of the packages.
        windows: Folder that Wine takes for a Windows.
    """

    root: Path
    windows: Path

    def qemu(self, processor: str) -> str:
        """QEMU for programs of a processor."""
        return f"{self.root}/usr/bin/qemu-{processor}-static"

    @property
    def wine(self) -> str:
        """Wine; it needs `environment`."""
        return f"{self.root}/usr/lib/wine/wine64"

    @property
    def windows_linker(self) -> str:
        """The gcc that links for Windows; it needs `environment`."""
        return f"{self.root}/usr/bin/x86_64-w64-mingw32-gcc-win32"

    @property
    def environment(self) -> dict[str, str]:
        """Variables under which the programs find each other."""
        return {
            "LD_LIBRARY_PATH": f"{self.root}/usr/lib/x86_64-linux-gnu",
            "PATH": f"{self.root}/usr/bin:{os.environ['PATH']}",
            "WINEDEBUG": "-all",
            "WINEPREFIX": str(self.windows),
        }


def provision(rustc: str) -> Emulators:
    """Returns the emulators, fetched (210 MB; 1.4 GB when unpacked) on first use.

    Args:
        rustc: A compiler that has the standard library of x86_64-pc-windows-gnu.
    """
    default = Path.home() / ".cache" / "tfp" / "platforms"
    cache = Path(os.environ.get("TFP_PLATFORMS_CACHE", str(default)))
    emulators = Emulators(cache / "root", cache / "windows")
    done, content = cache / "ready", "\n".join(PACKAGES)
    if not done.exists() or done.read_text() != content:
        print(f"fetching emulators into {cache} (210 MB)", file=sys.stderr, flush=True)
        shutil.rmtree(cache, ignore_errors=True)
        cache.mkdir(parents=True)
        unpack((), PACKAGES, cache, emulators.root)
        _settle(emulators, rustc)
        done.write_text(content)
    return emulators


def _settle(emulators: Emulators, rustc: str) -> None:
    """Makes Wine work where it is unpacked, and a Windows for it."""
    libraries = emulators.root / "usr/lib"
    # Debian's is a script that names places below /usr.
    shutil.copy(libraries / "wine/wineserver64", libraries / "wine/wineserver")
    shutil.copy(
        emulators.root / "usr/x86_64-w64-mingw32/lib/zlib1.dll",
        libraries / "x86_64-linux-gnu/wine/x86_64-windows",
    )
    env = {**os.environ, **emulators.environment}
    # It complains that it can't open a window, and exits with more than 0 for that.
    made = subprocess.run([emulators.wine, "wineboot"], env=env, capture_output=True, check=False)
    system = emulators.windows / "drive_c/windows/system32"
    if not system.is_dir():
        raise RuntimeError(f"Wine made no Windows: {made.stderr.decode('utf-8', 'replace')}")
    source = emulators.windows / "random.rs"
    source.write_text(_RANDOM)
    command = [rustc, "--edition=2024", "--crate-type=cdylib", "--target=x86_64-pc-windows-gnu"]
    command += [f"-Clinker={emulators.windows_linker}", "-Clink-arg=-nostartfiles"]
    command += ["-Cpanic=abort", str(source), "-o"]
    library = str(system / "bcryptprimitives.dll")
    subprocess.run([*command, library], env=env, check=True, capture_output=True)
