#!/bin/sh
# Fetches the recorded machines of the hwloc project: sysfs and proc of many real ones, old kernels among
# them, unpacked below a directory, with what hwloc's own program says of each beside them (NAME.output). They
# are a part of Debian's source package. Needs apt-get and a Debian mirror with source packages. A directory
# that is complete is left as it is.
set -eu
dir=$1
[ -e "$dir/complete" ] && exit 0
mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main" >"$dir/sources.list"
options="-o Dir::Etc::sourcelist=$dir/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$dir/lists
	-o Dir::Cache=$dir/cache -o Dir::State::status=/dev/null -o APT::Sandbox::User=root"
cd "$dir"
apt-get $options -qq update
apt-get $options -qq source --download-only hwloc
tar xf hwloc_*.orig.tar.* --wildcards --strip-components=4 'hwloc-*/tests/hwloc/linux/*'
for packed in *.tar.bz2; do
	case $packed in hwloc_*) continue ;; esac
	mkdir -p "trees/${packed%.tar.bz2}"
	# What the agent reads, and no devices: some are links to nowhere, or cannot be made.
	tar xjf "$packed" -C "trees/${packed%.tar.bz2}" --strip-components=1 --no-same-owner --wildcards '*/sys/devices/system/*' \
		'*/sys/devices/cpu_*' '*/sys/devices/virtual/memory_tiering/*' '*/sys/kernel/mm/*' '*/proc/meminfo' 2>/dev/null || true
	rm "$packed"
done
rm -rf lists cache sources.list hwloc_*
touch complete
