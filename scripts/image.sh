#!/bin/sh
# Writes a container image with one static program. It needs no base image, no registry and no docker. The
# file is both an OCI image layout and a docker archive. The same program makes the same image, byte for byte.
#
#   scripts/image.sh [--debian] [--program FILE] [--output target/image/proxima-VERSION-ARCHITECTURE.tar]
#   scripts/image.sh --operator [--program FILE] [--output FILE]
#
# The program is a release, with optimisation of the whole program, or FILE; it must be linked statically.
# With --debian, the image (proxima:VERSION-debian) also has what the scripts around an mcrouter use: bash,
# coreutils, gawk and host, from packages of this machine's Debian. The same packages make the same image.
# With --operator, the program is proxima-operator, for this machine's architecture or GOARCH (amd64, arm64).
set -eu
cd "$(dirname "$0")/.."

name=proxima
program=
output=
debian=
while [ $# -gt 0 ]; do
    case $1 in
    --debian) debian=-debian && shift && continue ;;
    --operator) name=proxima-operator && shift && continue ;;
    --program) program=$2 ;;
    --output) output=$2 ;;
    *)
        echo "image: unknown option $1; scripts/image.sh [--debian | --operator] [--program FILE] [--output FILE]" >&2
        exit 2
        ;;
    esac
    shift 2
done

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
if [ "$name" = proxima-operator ]; then
    [ -z "$debian" ] || { echo "image: --debian is for scripts around an mcrouter, not for the operator" >&2 && exit 2; }
    GOARCH=${GOARCH:-$(go env GOARCH)}
    export GOARCH
    host=$GOARCH
else
    host=$(rustc -vV | sed -n 's/^host: //p')
fi
case $host in
amd64 | x86_64-unknown-linux-gnu) architecture=amd64 ;;
arm64 | aarch64-unknown-linux-gnu) architecture=arm64 ;;
*) echo "image: not known what an image calls the architecture of $host" >&2 && exit 1 ;;
esac
tag=$version$debian
output=${output:-target/image/$name-$tag-$architecture.tar}

if [ -n "$program" ]; then
    :
elif [ "$name" = proxima-operator ]; then
    make -C operator build
    program=operator/bin/proxima-operator
else
    sh scripts/build.sh --release
    program=${CARGO_TARGET_DIR:-target}/release/proxima
fi
if readelf --program-headers "$program" | grep -q INTERP; then
    echo "image: $program is not linked statically: nothing in the image could load it; scripts/build.sh links it so" >&2
    exit 1
fi

# Every file in the image has the time of the commit.
time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
created=$(date -u -d "@$time" +%Y-%m-%dT%H:%M:%SZ)
revision=$(git rev-parse HEAD 2>/dev/null || true)
# A login in the address is nobody's business.
source=$(git config --get remote.origin.url | sed -n 's|^https://\([^/]*@\)\{0,1\}|https://|p')

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
layout=$work/layout
mkdir -p "$layout/blobs/sha256"

# archive FOLDER writes a tar that does not depend on who made it and when.
archive() {
    # Names have no leading "./", with which some readers do not find them.
    (cd "$1" && tar --create --format ustar --sort name --mtime "@$time" --owner 0 --group 0 --numeric-owner -- *)
}

# blob keeps standard input under its digest, and prints the digest.
blob() {
    cat >"$work/blob"
    digest=$(sha256sum "$work/blob" | cut -d ' ' -f 1)
    mv "$work/blob" "$layout/blobs/sha256/$digest"
    echo "$digest"
}

# label KEY VALUE is a further label of the image, unless its value is not known.
label() { [ -z "$2" ] || printf ',\n      "org.opencontainers.image.%s": "%s"' "$1" "$2"; }

size() { stat -c %s "$layout/blobs/sha256/$1"; }

# These are the files, with the folders and users that a container's owner expects.
umask 022
path=/usr/local/bin
mkdir -p "$root/usr/local/bin" "$root/etc/proxima" "$root/usr/share/doc/proxima"
if [ -n "$debian" ]; then
    path=/usr/local/bin:/usr/bin:/bin
    sh scripts/debian.sh "$root" bash coreutils gawk bind9-host
    # Scripts of the packages would make these links.
    ln -s gawk "$root/usr/bin/awk"
    ln -s bash "$root/bin/sh"
fi
install -m 755 "$program" "$root/usr/local/bin/$name"
if [ "$name" = proxima ]; then
    title=Proxima
    ln -s proxima "$root/usr/local/bin/mcrouter"
    ln -s proxima "$root/usr/local/bin/nutcracker"
    # Entry point and command are separate, so that `args: [run, …]` and `command: [mcrouter, …]` both work, and
    # so do nutcracker's.
    runs='"Cmd": ["run", "--listen", "0.0.0.0:11211", "--admin", "0.0.0.0:9150"],
    "ExposedPorts": {"11211/tcp": {}, "9150/tcp": {}},'
else
    title="Proxima's operator"
    runs='"Cmd": [],'
fi
install -m 644 LICENSE "$root/usr/share/doc/proxima/LICENSE"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
printf '%s\n' 'root:x:0:0:root:/:/sbin/nologin' 'proxima:x:65532:65532:Proxima:/:/sbin/nologin' >"$root/etc/passwd"
printf '%s\n' 'root:x:0:' 'proxima:x:65532:' >"$root/etc/group"

archive "$root" >"$work/layer.tar"
unpacked=$(sha256sum "$work/layer.tar" | cut -d ' ' -f 1)
layer=$(gzip -n <"$work/layer.tar" | blob)

config=$(blob <<END
{
  "created": "$created",
  "architecture": "$architecture",
  "os": "linux",
  "config": {
    "User": "65532:65532",
    "Env": ["PATH=$path"],
    "Entrypoint": ["/usr/local/bin/$name"],
    $runs
    "WorkingDir": "/",
    "Labels": {
      "org.opencontainers.image.title": "$title",
      "org.opencontainers.image.version": "$version",
      "org.opencontainers.image.licenses": "Apache-2.0"$(label source "$source")$(label revision "$revision")
    }
  },
  "rootfs": {"type": "layers", "diff_ids": ["sha256:$unpacked"]},
  "history": [{"created": "$created", "created_by": "scripts/image.sh"}]
}
END
)

manifest=$(blob <<END
{
  "schemaVersion": 2,
  "mediaType": "application/vnd.oci.image.manifest.v1+json",
  "config": {
    "mediaType": "application/vnd.oci.image.config.v1+json",
    "digest": "sha256:$config",
    "size": $(size "$config")
  },
  "layers": [
    {
      "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
      "digest": "sha256:$layer",
      "size": $(size "$layer")
    }
  ]
}
END
)

# These files make it an OCI image layout.
echo '{"imageLayoutVersion": "1.0.0"}' >"$layout/oci-layout"
cat >"$layout/index.json" <<END
{
  "schemaVersion": 2,
  "mediaType": "application/vnd.oci.image.index.v1+json",
  "manifests": [
    {
      "mediaType": "application/vnd.oci.image.manifest.v1+json",
      "digest": "sha256:$manifest",
      "size": $(size "$manifest"),
      "platform": {"architecture": "$architecture", "os": "linux"},
      "annotations": {
        "io.containerd.image.name": "docker.io/library/$name:$tag",
        "org.opencontainers.image.ref.name": "$tag"
      }
    }
  ]
}
END
# This file makes it an archive for docker, which recognizes an image by it.
cat >"$layout/manifest.json" <<END
[{"Config": "blobs/sha256/$config", "RepoTags": ["$name:$tag"], "Layers": ["blobs/sha256/$layer"]}]
END

mkdir -p "$(dirname "$output")"
# The image appears only when it is complete.
archive "$layout" >"$output.new"
mv "$output.new" "$output"
echo "image: $output, $(du -h "$output" | cut -f 1), manifest sha256:$manifest"
echo "image: docker load --input $output   or: podman load, ctr images import, skopeo copy oci-archive:$output …"
