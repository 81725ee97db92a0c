#!/bin/sh
# Fetches the runtimes that the real lanes run, as Debian's packages, unpacked below a directory; nothing is installed.
#
#   1.6/  Debian 12's containerd: no usable NRI, for the CRI door
#   1.7/  Debian 13's containerd: has NRI
#   bin/  Debian 12's runc, and a static busybox for the test image
#
# Needs root (for nothing but apt's habits), apt and a Debian mirror. A directory that is complete is left as it is.
set -eu
dir=$1
[ -e "$dir/complete" ] && exit 0
mkdir -p "$dir/debs" "$dir/bin" "$dir/lists/partial" "$dir/cache/archives/partial"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
fetch() { # SUITE PACKAGE...
	suite=$1
	shift
	echo "deb [signed-by=$keys] http://deb.debian.org/debian $suite main" >"$dir/sources.list"
	options="-o Dir::Etc::sourcelist=$dir/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$dir/lists
		-o Dir::Cache=$dir/cache -o Dir::State::status=/dev/null -o APT::Sandbox::User=root"
	apt-get $options -qq update
	(cd "$dir/debs" && rm -f ./*.deb && apt-get $options -qq download "$@")
}
fetch bookworm containerd runc busybox-static
dpkg -x "$dir"/debs/containerd_*.deb "$dir/1.6"
dpkg -x "$dir"/debs/runc_*.deb "$dir/runc"
dpkg -x "$dir"/debs/busybox-static_*.deb "$dir/busybox"
cp "$dir/runc/usr/sbin/runc" "$dir/busybox/bin/busybox" "$dir/bin/"
fetch trixie containerd
dpkg -x "$dir"/debs/containerd_*.deb "$dir/1.7"
rm -rf "$dir/debs" "$dir/lists" "$dir/cache" "$dir/runc" "$dir/busybox" "$dir/sources.list"
touch "$dir/complete"
