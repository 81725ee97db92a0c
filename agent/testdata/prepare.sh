#!/bin/sh
# Fetches what the lanes with real runtimes and machines run, as Debian's packages, unpacked below a
# directory:
#
#   1.6/     Debian 12's containerd: no usable NRI, for the CRI door
#   1.7/     Debian 13's containerd: has NRI
#   2.1/     the containerd of Debian unstable, where that is 2.1 or later; its lane is skipped where it
#            cannot be had
#   arm64/   an emulator of arm64's processors, for the image
#   systemd/ Debian 12's systemd with what it needs: the first process of an emulated machine that has a
#            kubelet
#   bin/     Debian 12's runc
#   busybox/ a static busybox: a root directory for a container
#   redis/   redis-server and redis-tools with all their libraries: a root directory for a container
#   net/     what gives pods addresses of their own: CNI plugins, and the kernel's module for pairs of
#            interfaces; that for ports of nodes is Debian unstable's, which asks nft
#   memcached/ memcached with all its libraries: a root directory for a container
#   libs/    what containerd and runc need to run in an emulated machine
#   vmlinuz  Debian 12's kernel for virtual machines
#
# and installs qemu-system-x86_64 where it is missing. Needs Debian on amd64, root, and a Debian mirror. A
# directory that is complete is left as it is.
set -eu
dir=$1
[ -e "$dir/complete" ] && [ -e "$dir/2.1" ] && [ -e "$dir/arm64" ] && [ -e "$dir/systemd" ] && [ -e "$dir/net/cni/portmap" ] && exit 0
mkdir -p "$dir/debs" "$dir/bin" "$dir/lists/partial" "$dir/cache/archives/partial"
keys=/usr/share/keyrings/debian-archive-keyring.gpg

suite() {
	echo "deb [signed-by=$keys] http://deb.debian.org/debian $1 main" >"$dir/sources.list"
	options="-o Dir::Etc::sourcelist=$dir/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$dir/lists
		-o Dir::Cache=$dir/cache -o Dir::State::status=/dev/null -o APT::Sandbox::User=root"
	apt-get $options -qq update
}

# unpack DIRECTORY PACKAGE...
unpack() {
	into=$dir/$1
	shift
	(cd "$dir/debs" && rm -f ./*.deb && apt-get $options -qq download "$@")
	for deb in "$dir"/debs/*.deb; do dpkg -x "$deb" "$into"; done
}

# The package of the kernel for virtual machines.
kernel() { apt-cache $options depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p' | head -n 1; }

if [ ! -e "$dir/complete" ]; then
	suite bookworm
	unpack 1.6 containerd
	unpack tools runc busybox-static
	unpack libs libc6 libseccomp2
	unpack redis redis-server redis-tools libc6 libgcc-s1 libstdc++6 libatomic1 libjemalloc2 liblua5.1-0 lua-bitop lua-cjson liblzf1 \
		libhiredis0.14 libssl3 libsystemd0 libcap2 libgcrypt20 libgpg-error0 liblz4-1 liblzma5 libzstd1
	unpack kernel "$(kernel)"
	cp "$dir/tools/usr/sbin/runc" "$dir/bin/"
	mkdir -p "$dir/busybox/bin"
	cp "$dir/tools/bin/busybox" "$dir/busybox/bin/"
	cp "$dir"/kernel/boot/vmlinuz-* "$dir/vmlinuz"
	suite trixie
	unpack 1.7 containerd
	# What nobody here needs, and an emulated machine would have to copy.
	rm -rf "$dir"/*/usr/share "$dir"/*/usr/lib/x86_64-linux-gnu/gconv "$dir"/1.7/usr/bin/containerd-shim "$dir"/1.7/usr/bin/containerd-s*-v1 \
		"$dir"/1.7/usr/bin/containerd-stress
fi
if [ ! -e "$dir/arm64" ] && suite bookworm && unpack arm64.new qemu-user-static; then
	mkdir "$dir/arm64"
	mv "$dir/arm64.new/usr/bin/qemu-aarch64-static" "$dir/arm64/"
	rm -rf "$dir/arm64.new"
fi
if [ ! -e "$dir/systemd" ] && suite bookworm && unpack systemd.new systemd libsystemd-shared libacl1 libapparmor1 libaudit1 libblkid1 \
	libcap-ng0 libcap2 libcrypt1 libgcrypt20 libgpg-error0 libip4tc2 libkmod2 liblz4-1 liblzma5 libmount1 libpam0g libpcre2-8-0 libseccomp2 \
	libselinux1 libssl3 libzstd1; then
	new="$dir/systemd.new"
	mkdir -p "$new/keep/bin" "$new/keep/lib/systemd" "$new/keep/usr/lib"
	mv "$new/bin/systemctl" "$new/keep/bin/"
	mv "$new/lib/systemd/systemd" "$new/keep/lib/systemd/"
	mv "$new/lib/x86_64-linux-gnu" "$new/keep/lib/"
	mv "$new/usr/lib/x86_64-linux-gnu" "$new/keep/usr/lib/"
	mv "$new/keep" "$dir/systemd"
	rm -rf "$new"
fi
# The kernel once more: a module fits only the one that it came with.
if [ ! -e "$dir/net" ] && suite bookworm && unpack net.new "$(kernel)" containernetworking-plugins &&
	unpack memcached.new memcached libc6 libevent-2.1-7 libsasl2-2 libssl3; then
	new="$dir/net.new"
	mkdir -p "$new/keep/cni"
	cp "$new"/usr/lib/cni/ptp "$new"/usr/lib/cni/host-local "$new"/usr/lib/cni/loopback "$new/keep/cni/"
	cp "$new"/lib/modules/*/kernel/drivers/net/veth.ko "$new/keep/"
	cp "$new"/boot/vmlinuz-* "$dir/vmlinuz"
	rm -rf "$dir/memcached" "$dir/memcached.new/usr/share" "$dir/memcached.new/usr/lib/x86_64-linux-gnu/gconv"
	mv "$dir/memcached.new" "$dir/memcached"
	mv "$new/keep" "$dir/net"
	rm -rf "$new"
fi
if [ ! -e "$dir/2.1" ] && suite sid && unpack 2.new containerd; then
	rm -rf "$dir/2.new/usr/share"
	mv "$dir/2.new" "$dir/2.1"
fi
if [ -e "$dir/net" ] && [ ! -e "$dir/net/cni/portmap" ] && suite sid && unpack ports.new containernetworking-plugins; then
	cp "$dir/ports.new/usr/lib/cni/portmap" "$dir/net/cni/"
	rm -rf "$dir/ports.new"
fi
rm -rf "$dir/debs" "$dir/lists" "$dir/cache" "$dir/tools" "$dir/kernel" "$dir/sources.list"

if ! command -v qemu-system-x86_64 >/dev/null; then
	apt-get -qq update
	DEBIAN_FRONTEND=noninteractive apt-get install -qqy --no-install-recommends qemu-system-x86 >/dev/null
fi
touch "$dir/complete"
