#!/bin/sh
# python.sh CACHE: brings the launcher a Python where the machine has none, and prints its path.
# Debian's packages, under pinned hashes (python.list), are unpacked into a folder of the cache.
# It needs apt, or tar and xz with curl or wget. If it fails, it prints why; the status is 1.

fail() {
  echo "$1"
  exit 1
}

has() { command -v "$1" > /dev/null 2>&1; }

# The mirror that TFP_DEBIAN_MIRROR names, else the archives of apt on Debian, a line each.
mirrors() {
  if [ -n "$TFP_DEBIAN_MIRROR" ]; then
    echo "${TFP_DEBIAN_MIRROR%/}"
  elif has apt-get && grep -qs '^ID=debian' /etc/os-release; then
    cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2> /dev/null |
      sed -n -e 's/^deb  *\(\[[^]]*\] *\)\{0,1\}\(http[^ ]*\).*/\2/p' -e 's/^URIs: *\(http[^ ]*\).*/\1/p' |
      sed -e 's,/$,,' | sort -u
  fi
}

fetch() { # URL FILE
  if has curl; then
    curl --fail --silent --location --retry 3 --output "$2" "$1"
  elif has wget; then
    wget -q -O "$2" "$1"
  else
    /usr/lib/apt/apt-helper -qq download-file "$1" "$2"
  fi
}

fetch_package() { # SHA256 PATH FILE
  for mirror in $mirrors; do
    fetch "$mirror/$2" "$3" > /dev/null 2>&1 && echo "$1  $3" | sha256sum -c > /dev/null 2>&1 && return
  done
  return 1
}

unpack() { # FILE FOLDER
  if has dpkg-deb; then
    dpkg-deb --extract "$1" "$2"
    return
  fi
  # A package is an ar archive: each member has a head of 60 bytes and starts at an even place.
  at=9
  while head=$(tail -c +"$at" "$1" | head -c 60) && [ -n "$head" ]; do
    size=$(echo "$head" | cut -c 49-58 | tr -d ' ')
    case $head in
      data.tar.xz*)
        tail -c +$((at + 60)) "$1" | head -c "$size" | xz -dc | tar -xf - -C "$2"
        return
        ;;
    esac
    at=$((at + 60 + size + size % 2))
  done
  return 1
}

has sha256sum || fail "sha256sum is not there"
list=${0%/*}/python.list
name=start-python-$(sha256sum < "$list" | head -c 10)
final=$1/$name
if [ ! -x "$final/python3" ]; then
  has curl || has wget || has apt-get || fail "curl and wget are not there"
  has dpkg-deb || { has xz && has tar; } || fail "tar and xz are not there"
  mirrors=$(mirrors)
  [ -n "$mirrors" ] || fail "TFP_DEBIAN_MIRROR does not name a mirror of Debian"
  stage=$1/.$name.$$
  trap 'rm -rf "$stage"' EXIT
  trap 'exit 130' INT TERM
  mkdir -p "$stage" 2> /dev/null || fail "$1 is not writable"
  echo "tfp: no Python on this machine: fetching one (7 MB)" >&2
  while read -r hash path; do
    case $hash in \#* | "") continue ;; esac
    fetch_package "$hash" "$path" "$stage/deb" ||
      fail "$path did not arrive with the hash in python.list from $(echo $mirrors)"
    unpack "$stage/deb" "$stage" || fail "$path cannot be unpacked"
  done < "$list"
  rm -f "$stage/deb"
  # Its libraries are for it alone: a variable would hand them to every program that it starts.
  cat > "$stage/python3" << 'END'
#!/bin/sh
here=${0%/*}
exec /lib64/ld-linux-x86-64.so.2 --library-path "$here/usr/lib/x86_64-linux-gnu:$here/lib/x86_64-linux-gnu" "$here/usr/bin/python3.9" "$@"
END
  chmod +x "$stage/python3"
  "$stage/python3" -I -S -c 'import lzma, ssl, zlib' > /dev/null 2>&1 || fail "the unpacked Python does not start"
  # Another start may have been quicker.
  [ -x "$final/python3" ] || { rm -rf "$final" && mv "$stage" "$final"; } || fail "$final cannot be written"
fi
echo "$final/python3"
