// Lets a process die, or its disk be full, at the Nth call that changes files, when it is preloaded.
//
// A program arms it by rename("fault:MODE", "N") and disarms it by rename("fault:off", ""), which fails
// when the fault has happened. Modes:
//   kill  the process ends in call N
//   dead  from call N on nothing changes any file, as if the process had ended there
//   full  from call N on files get no more bytes
// A write in which it happens writes half of its bytes first. With FAULT_NO_EXCHANGE in the environment
// the file system can't exchange two names.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OFF, KILL, DEAD, FULL };
static atomic_int mode;
static atomic_long left;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

// What a call does: everything, half of it, or nothing.
enum { ALL, HALF, NOTHING };

static int next(int grows) {
  int now = atomic_load(&mode);
  if (now == OFF || (now == FULL && !grows)) return ALL;
  long at = atomic_fetch_sub(&left, 1);
  if (at > 1) return ALL;
  return at == 1 ? HALF : NOTHING;
}

static int fail(void) {
  int now = atomic_load(&mode);
  if (now == KILL) _exit(77);
  errno = now == FULL ? ENOSPC : EIO;
  return -1;
}

// A call that happens or does not; with HALF it happens, and is the last one of a process that dies.
#define CALL(grows, name, ...)                                             \
  do {                                                                     \
    int what = next(grows);                                                \
    if (what == ALL) return REAL(name)(__VA_ARGS__);                       \
    if (what == HALF && atomic_load(&mode) != FULL) {                      \
      __typeof__(REAL(name)(__VA_ARGS__)) done = REAL(name)(__VA_ARGS__);  \
      if (atomic_load(&mode) == KILL) _exit(77);                           \
      return done;                                                         \
    }                                                                      \
    return fail();                                                         \
  } while (0)

int rename(const char *from, const char *to) {
  if (strncmp(from, "fault:", 6) == 0) {
    const char *name = from + 6;
    if (strcmp(name, "off") == 0) {
      int was = atomic_exchange(&mode, OFF);
      if (was != OFF && atomic_load(&left) > 0) return 0;
      errno = EIO;
      return -1;
    }
    atomic_store(&left, atol(to));
    atomic_store(&mode, strcmp(name, "kill") == 0 ? KILL : strcmp(name, "dead") == 0 ? DEAD : FULL);
    return 0;
  }
  CALL(0, rename, from, to);
}

int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
  if (getenv("FAULT_NO_EXCHANGE") != NULL) {
    errno = EINVAL;
    return -1;
  }
  CALL(0, renameat2, a, from, b, to, flags);
}
// Programs that run on an old C library make the call by its number.
long syscall(long number, ...) {
  static _Atomic(long (*)(long, ...)) real;
  long rest[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; i++) rest[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_renameat2) {
    return renameat2(rest[0], (const char *)rest[1], rest[2], (const char *)rest[3], rest[4]);
  }
  long (*call)(long, ...) = atomic_load(&real);
  if (call == NULL) atomic_store(&real, call = REAL(syscall));
  return call(number, rest[0], rest[1], rest[2], rest[3], rest[4], rest[5]);
}
int mkdir(const char *path, mode_t bits) { CALL(1, mkdir, path, bits); }
int rmdir(const char *path) { CALL(0, rmdir, path); }
int unlink(const char *path) { CALL(0, unlink, path); }
int unlinkat(int at, const char *path, int flags) { CALL(0, unlinkat, at, path, flags); }
int link(const char *from, const char *to) { CALL(0, link, from, to); }
int linkat(int a, const char *from, int b, const char *to, int flags) {
  CALL(0, linkat, a, from, b, to, flags);
}
int symlink(const char *from, const char *to) { CALL(0, symlink, from, to); }
int chmod(const char *path, mode_t bits) { CALL(0, chmod, path, bits); }
int fchmod(int file, mode_t bits) { CALL(0, fchmod, file, bits); }
int ftruncate64(int file, off64_t size) { CALL(0, ftruncate64, file, size); }

// Nothing goes to the disk, which would take most of the time: the system goes on when a process dies.
static int flushed(void) {
  int what = next(0);
  if (what == HALF && atomic_load(&mode) == KILL) _exit(77);
  return what == NOTHING ? fail() : 0;
}
int fsync(int file) { return (void)file, flushed(); }
int fdatasync(int file) { return (void)file, flushed(); }
ssize_t copy_file_range(int from, off64_t *a, int to, off64_t *b, size_t size, unsigned flags) {
  int what = next(1);
  if (what != ALL && (what == NOTHING || size < 2)) return fail();
  ssize_t done = REAL(copy_file_range)(from, a, to, b, what == HALF ? 1 : size, flags);
  if (what == HALF && atomic_load(&mode) == KILL) _exit(77);
  return done;
}

ssize_t write(int file, const void *bytes, size_t size) {
  int what = next(1);
  if (what == ALL) return REAL(write)(file, bytes, size);
  if (what == NOTHING || size < 2) return fail();
  ssize_t done = REAL(write)(file, bytes, size / 2);
  if (atomic_load(&mode) == KILL) _exit(77);
  return done;
}

static int changes(int flags) { return (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0; }

#define OPEN(name, given, flags, ...)                   \
  do {                                                  \
    unsigned bits = 0;                                  \
    if (flags & O_CREAT) {                              \
      va_list list;                                     \
      va_start(list, given);                            \
      bits = va_arg(list, unsigned);                    \
      va_end(list);                                     \
    }                                                   \
    if (!changes(flags)) return REAL(name)(__VA_ARGS__, bits); \
    CALL(0, name, __VA_ARGS__, bits);                   \
  } while (0)

int open(const char *path, int flags, ...) { OPEN(open, flags, flags, path, flags); }
int open64(const char *path, int flags, ...) { OPEN(open64, flags, flags, path, flags); }
int openat(int at, const char *path, int flags, ...) { OPEN(openat, flags, flags, at, path, flags); }
int openat64(int at, const char *path, int flags, ...) {
  OPEN(openat64, flags, flags, at, path, flags);
}

#define FOPEN(name)                                                                   \
  FILE *name(const char *path, const char *how) {                                     \
    if (how[0] == 'r' && strchr(how, '+') == NULL) return REAL(name)(path, how);      \
    int what = next(0);                                                               \
    if (what == ALL || what == HALF) return REAL(name)(path, how);                    \
    fail();                                                                           \
    return NULL;                                                                      \
  }
FOPEN(fopen)
FOPEN(fopen64)

size_t fwrite(const void *bytes, size_t size, size_t count, FILE *file) {
  int what = next(1);
  if (what == ALL) return REAL(fwrite)(bytes, size, count, file);
  if (what == HALF) REAL(fwrite)(bytes, size, count / 2, file);
  fail();
  return 0;
}

// What a stream holds back is lost with the process, and does not fit a full disk.
int fflush(FILE *file) {
  if (file == NULL || next(1) == ALL) return REAL(fflush)(file);
  __fpurge(file);
  fail();
  return EOF;
}

int fclose(FILE *file) {
  if (!__fwriting(file) || next(1) == ALL) return REAL(fclose)(file);
  int pending = __fpending(file) > 0;
  __fpurge(file);
  int done = REAL(fclose)(file);
  if (pending || atomic_load(&mode) != FULL) {
    fail();
    return EOF;
  }
  return done;
}
