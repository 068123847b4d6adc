// expect: 2: error: Object: member 'run' (CXX_METHOD) is not supported
struct Object { void run(); };
