def emit(crate, name): return ""
