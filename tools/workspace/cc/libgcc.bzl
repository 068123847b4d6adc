"""What stands for gcc's libraries when a program is linked.

Systems that run TensorFlow have a `libgcc_s.so.1` and a `libstdc++.so.6`, and a process should have
one unwinder and one set of C++ exceptions. So the linker gets libraries of these names that have
symbols and no code.
"""

# Version of a symbol -> symbols: the unwinder, and the arithmetic that 64-bit targets have no
# instructions for. The same on x86-64 and aarch64.
_LIBGCC = {
    "GCC_3.0": [
        "_Unwind_DeleteException",
        "_Unwind_Find_FDE",
        "_Unwind_ForcedUnwind",
        "_Unwind_GetDataRelBase",
        "_Unwind_GetGR",
        "_Unwind_GetIP",
        "_Unwind_GetLanguageSpecificData",
        "_Unwind_GetRegionStart",
        "_Unwind_GetTextRelBase",
        "_Unwind_RaiseException",
        "_Unwind_Resume",
        "_Unwind_SetGR",
        "_Unwind_SetIP",
        "__ashlti3",
        "__ashrti3",
        "__clear_cache",
        "__divti3",
        "__fixdfti",
        "__fixsfti",
        "__fixunsdfti",
        "__fixunssfti",
        "__floattidf",
        "__floattisf",
        "__lshrti3",
        "__modti3",
        "__multi3",
        "__udivti3",
        "__umodti3",
    ],
    "GCC_3.3": [
        "_Unwind_Backtrace",
        "_Unwind_FindEnclosingFunction",
        "_Unwind_GetCFA",
        "_Unwind_Resume_or_Rethrow",
    ],
    "GCC_3.3.1": ["__gcc_personality_v0"],
    "GCC_3.4": [
        "__clzti2",
        "__ctzti2",
        "__parityti2",
        "__popcountdi2",
        "__popcountti2",
    ],
    "GCC_4.2.0": [
        "_Unwind_GetIPInfo",
        "__floatuntidf",
        "__floatuntisf",
    ],
}

# The ABI of C++, which is the same for every standard library: memory, exceptions, type information.
# The classes of the standard library are not among it.
_LIBSTDCXX = {
    "GLIBCXX_3.4": [
        "_ZSt9terminatev",
        "_ZdaPv",
        "_ZdlPv",
        "_Znam",
        "_Znwm",
    ],
    "CXXABI_1.3": [
        "_ZTIPKc",
        "_ZTIPKv",
        "_ZTIPc",
        "_ZTIPv",
        "_ZTIa",
        "_ZTIb",
        "_ZTIc",
        "_ZTId",
        "_ZTIf",
        "_ZTIh",
        "_ZTIi",
        "_ZTIj",
        "_ZTIl",
        "_ZTIm",
        "_ZTIs",
        "_ZTIt",
        "_ZTIv",
        "_ZTIw",
        "_ZTIx",
        "_ZTIy",
        "_ZTVN10__cxxabiv117__class_type_infoE",
        "_ZTVN10__cxxabiv120__si_class_type_infoE",
        "_ZTVN10__cxxabiv121__vmi_class_type_infoE",
        "__cxa_allocate_exception",
        "__cxa_bad_cast",
        "__cxa_begin_catch",
        "__cxa_end_catch",
        "__cxa_free_exception",
        "__cxa_guard_abort",
        "__cxa_guard_acquire",
        "__cxa_guard_release",
        "__cxa_pure_virtual",
        "__cxa_rethrow",
        "__cxa_throw",
        "__dynamic_cast",
        "__gxx_personality_v0",
    ],
    "CXXABI_1.3.9": [
        "_ZdaPvm",
        "_ZdlPvm",
    ],
}

_LIBRARIES = {
    "libgcc_s.so": ("libgcc_s.so.1", _LIBGCC),
    "libstdc++.so": ("libstdc++.so.6", _LIBSTDCXX),
}

# What gcc's own start files say to both ends of a program. Nothing here registers anything: lld
# writes the index of unwind tables, and the C library runs the lists of constructors.
_BEGIN = """\
.section .note.GNU-stack,"",%progbits
.section .data.rel.ro,"aw",%progbits
.balign 8
.globl __dso_handle
.hidden __dso_handle
.type __dso_handle,%object
.size __dso_handle,8
__dso_handle:
.quad {handle}
"""
_END = """\
.section .note.GNU-stack,"",%progbits
.section .eh_frame,"a",%progbits
.long 0
"""
_EMPTY = """\
.section .note.GNU-stack,"",%progbits
"""

_OBJECTS = {
    "crtbegin.o": _BEGIN.format(handle = "0"),
    "crtbeginS.o": _BEGIN.format(handle = "__dso_handle"),
    "crtbeginT.o": _BEGIN.format(handle = "0"),
    "crtend.o": _END,
    "crtendS.o": _END,
    "crti.o": _EMPTY,
    "crtn.o": _EMPTY,
}

def _library(symbols):
    """The assembly of a library, and its version script."""
    lines = [".text"]
    for name in [name for names in symbols.values() for name in names]:
        kind = "object" if name.startswith("_ZT") else "function"
        lines += [".globl " + name, ".type {},%{}".format(name, kind), name + ":"]
    lines += [".byte 0", _EMPTY]
    script = []
    previous = ""
    for version, names in symbols.items():
        script.append("{} {{ global: {}; }}{};".format(version, "; ".join(names), previous))
        previous = " " + version
    return "\n".join(lines), "\n".join(script) + "\n"

def write_libgcc(rctx, zig, target, folder):
    """Writes the start files of gcc, `libgcc.a` and the shared libraries into a folder.

    Args:
      rctx: the repository's context.
      zig: the program, as a path.
      target: the target of clang, such as `x86_64-linux-gnu`.
      folder: where the files go, relative to the repository.
    """

    def assemble(name, text):
        source = "work/{}.s".format(name)
        rctx.file(source, text)
        return [zig, "clang", "--no-default-config", "--target=" + target, "-c", source, "-o"]

    commands = [assemble(name, text) + [folder + "/" + name] for name, text in _OBJECTS.items()]
    for name, (soname, symbols) in _LIBRARIES.items():
        text, script = _library(symbols)
        work = "work/" + soname
        rctx.file(work + ".map", script)
        commands.append(assemble(soname, text) + [work + ".o"])
        commands.append([
            zig,
            "ld.lld",
            "-shared",
            "-soname",
            soname,
            "--version-script={}.map".format(work),
            work + ".o",
            "-o",
            "{}/{}".format(folder, name),
        ])
    rctx.file(folder + "/libgcc.a", "!<arch>\n", executable = False)
    for command in commands:
        result = rctx.execute(command)
        if result.return_code != 0:
            fail("cc: {} could not be built for {}: {}".format(command[-1], target, result.stderr))
