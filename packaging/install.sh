#!/bin/sh
# Installs relay-mesh, or a newer version over an older one: downloads the archive for this platform, compares its
# digest with SHA256SUMS, and moves the program into place as the last step. If anything goes wrong before that, the
# program that was there stays.
#
#   RELAY_MESH_URL  where the files of a release are: https://… or file:///…
#   RELAY_MESH_BIN  where the program goes [default: ~/.local/bin]
#   RELAY_MESH_MINISIGN_KEY  the public key (RW…) whose signature SHA256SUMS must have. It needs minisign: without it a
#                            warning says what was not verified.
set -eu

url=${RELAY_MESH_URL:-}
key=${RELAY_MESH_MINISIGN_KEY:-}
unfinished=

fail() {
    echo "error: $1" >&2
    [ $# -lt 2 ] || echo "hint: $2" >&2
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

cleaned_up() {
    [ -z "$unfinished" ] || rm -rf "$unfinished"
}

# What an installer left that was killed, or ended with the machine's power. Of several that run at once none takes
# another's folder: one goes only if it is this user's, no process here has its number, and nothing was put into it for
# more than a day, because a container that shares this folder has numbers of its own.
remove_leftovers() {
    for left in "$bin"/.relay-mesh-install-[0-9]*; do
        # On macOS +1 is for more than one day, on Linux for two and more.
        [ -n "$(find "$left" -prune -type d -user "$(id -u)" -mtime +1 2>/dev/null)" ] || continue
        number=${left##*/.relay-mesh-install-}
        kill -0 "${number%%-*}" 2>/dev/null || rm -rf "$left" || true
    done
}

target() {
    case "$(uname -s) $(uname -m)" in
        "Linux x86_64" | "Linux amd64") echo x86_64-unknown-linux-musl ;;
        "Linux aarch64" | "Linux arm64") echo aarch64-unknown-linux-musl ;;
        "Darwin arm64") echo aarch64-apple-darwin ;;
        "Darwin x86_64")
            # A shell under Rosetta says so too, on a Mac with an ARM processor.
            if [ "$(sysctl -n hw.optional.arm64 2>/dev/null)" = 1 ]; then
                echo aarch64-apple-darwin
            else
                echo x86_64-apple-darwin
            fi
            ;;
        *) fail "there is no package for $(uname -s) on $(uname -m)" "build relay-mesh from source" ;;
    esac
}

# The folder of the program. Root with another user's HOME (`sudo` keeps it on some systems) would leave files there
# that their owner cannot replace.
folder() {
    if [ -n "${RELAY_MESH_BIN:-}" ]; then
        echo "$RELAY_MESH_BIN"
        return
    fi
    [ -n "${HOME:-}" ] || fail "HOME is not set" "set RELAY_MESH_BIN to a folder on your PATH"
    if [ "$(id -u)" = 0 ] && [ -d "$HOME" ] && [ -z "$(find "$HOME" -prune -user 0)" ]; then
        fail "this runs as root, and HOME ($HOME) is another user's" \
            "run it as that user, or set RELAY_MESH_BIN=/usr/local/bin"
    fi
    echo "$HOME/.local/bin"
}

# download NAME: the file of this name of the release, in the unfinished folder.
download() {
    case $url in
        file://*)
            cp "${url#file://}/$1" "$unfinished/$1" || fail "$1 could not be copied from $url" "$nothing_changed"
            ;;
        https://*)
            if has curl; then
                curl --proto '=https' --tlsv1.2 -fsSL --retry 2 -o "$unfinished/$1" "$url/$1" ||
                    fail "$url/$1 could not be downloaded" "$nothing_changed"
            else
                wget -q -O "$unfinished/$1" "$url/$1" || fail "$url/$1 could not be downloaded" "$nothing_changed"
            fi
            ;;
    esac
}

digest() {
    if has sha256sum; then
        sha256sum "$1"
    else
        shasum -a 256 "$1"
    fi | cut -d ' ' -f 1
}

# That who has the key has signed SHA256SUMS. Nothing is read from that file before.
verify_signature() {
    [ -n "$key" ] || return 0
    if ! has minisign; then
        echo "warning: the signature of SHA256SUMS was not verified, because there is no minisign on this machine" >&2
        echo "hint: only digests are compared, with those that $url names; install minisign and run this again" >&2
        return 0
    fi
    download SHA256SUMS.minisig
    minisign -V -q -P "$key" -m "$unfinished/SHA256SUMS" -x "$unfinished/SHA256SUMS.minisig" ||
        fail "SHA256SUMS of $url is not signed by the key $key" \
            "it was changed, or signed by another; nothing was changed here"
    echo "SHA256SUMS is signed by $key"
}

nothing_changed="nothing was changed; check the network and the space on the disk, and run this again"

case $url in
    https://*) has curl || has wget || fail "there is neither curl nor wget" "install one of them" ;;
    file://*) ;;
    "") fail "RELAY_MESH_URL is not set" "set it to where the files of a release are" ;;
    *) fail "RELAY_MESH_URL is $url, and only https:// and file:// are safe" ;;
esac
has sha256sum || has shasum || fail "there is neither sha256sum nor shasum, so nothing can be verified" "install coreutils"
has tar || fail "there is no tar" "install tar"

target=$(target)
bin=$(folder)
mkdir -p "$bin" || fail "$bin cannot be made" "set RELAY_MESH_BIN to a folder that you may write to"
[ ! -d "$bin/relay-mesh" ] || fail "$bin/relay-mesh is a folder" "set RELAY_MESH_BIN to another folder"
remove_leftovers
trap cleaned_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
# Beside the program, so that the last step is a rename within one file system.
unfinished=$(mktemp -d "$bin/.relay-mesh-install-$$-XXXXXX") ||
    fail "$bin cannot be written to" "set RELAY_MESH_BIN to a folder that you may write to"

# By xz it is a third smaller. The tar of macOS unpacks it without a program xz.
if has xz || [ "$(uname -s)" = Darwin ]; then
    compression=xz flag=J
else
    compression=gz flag=z
fi
download SHA256SUMS
verify_signature
line=$(grep -E "^[0-9a-f]{64}  relay-mesh-[^ /]*-$target\.tar\.$compression\$" "$unfinished/SHA256SUMS" || true)
[ -n "$line" ] || fail "SHA256SUMS of $url names no archive for $target"
[ "$(echo "$line" | wc -l)" -eq 1 ] || fail "SHA256SUMS of $url names several archives for $target"
archive=${line#*  }
download "$archive"
found=$(digest "$unfinished/$archive")
[ "$found" = "${line%% *}" ] ||
    fail "$archive is not what SHA256SUMS says: its digest is $found, and should be ${line%% *}" \
        "the download was cut off or changed; nothing was changed here"

tar "-x${flag}f" "$unfinished/$archive" -C "$unfinished" || fail "$archive could not be unpacked" "$nothing_changed"
program=$unfinished/${archive%.tar."$compression"}/relay-mesh
version=$("$program" --version) || fail "the program of $archive does not run on this machine" "nothing was changed"
mv -f "$program" "$bin/relay-mesh" || fail "$bin/relay-mesh could not be replaced"

echo "$version is installed: $bin/relay-mesh"
case ":$PATH:" in
    *":$bin:"*) ;;
    *) echo "hint: $bin is not on your PATH" >&2 ;;
esac
