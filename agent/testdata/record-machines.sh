#!/bin/sh
# Records the topologies in testdata/topologies that are called vm-*: boots a Linux kernel in emulated machines
# of many shapes and runs `proxima-agent record` as their first process. No hardware virtualisation is needed;
# about 10 s a shape.
#
# Needs what testdata/prepare.sh fetches: qemu-system-x86_64, a static busybox, and a kernel. Others can be named:
#   QEMU=qemu-system-x86_64 KERNEL=/boot/vmlinuz-… BUSYBOX=/bin/busybox testdata/record-machines.sh [NAME...]
# Of what makes words of a machine's memory, each is an argument.
# shellcheck disable=SC2046
set -eu
cd "$(dirname "$0")/.."
lab=/var/cache/proxima-agent-lab
QEMU=${QEMU:-qemu-system-x86_64}
BUSYBOX=${BUSYBOX:-$lab/busybox/bin/busybox}
KERNEL=${KERNEL:-$lab/vmlinuz}
[ -e "$KERNEL" ] || sh testdata/prepare.sh "$lab"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/root/bin" "$work/root/sys" "$work/root/proc" "$work/root/dev"
CGO_ENABLED=0 go build -o "$work/root/bin/proxima-agent" ./cmd/proxima-agent
cp "$BUSYBOX" "$work/root/bin/busybox"
cat >"$work/root/init" <<'INIT'
#!/bin/busybox sh
export PATH=/bin
busybox mount -t proc none /proc
busybox mount -t sysfs none /sys
busybox mount -t devtmpfs none /dev
for cpu in $(busybox sed -n 's/.*proxima\.offline=\([^ ]*\).*/\1/p' /proc/cmdline | busybox tr ';' ' '); do
	echo 0 >/sys/devices/system/cpu/cpu$cpu/online
done
echo RECORDING-BEGINS
proxima-agent record
echo RECORDING-ENDS
busybox poweroff -f
INIT
chmod +x "$work/root/init"
(cd "$work/root" && find . | "$BUSYBOX" cpio -o -H newc 2>/dev/null | gzip -1) >"$work/initramfs"

# machine NAME SMP KERNEL-ARGUMENTS NUMA-OPTIONS...
machine() {
	name=$1 smp=$2 arguments=$3
	shift 3
	if [ -n "$wanted" ] && ! echo " $wanted " | grep -q " $name "; then return; fi
	"$QEMU" -accel tcg -cpu Icelake-Server -M q35 -smp "$smp" -m 2048 -nodefaults -display none -serial stdio -no-reboot \
		-kernel "$KERNEL" -initrd "$work/initramfs" -append "console=ttyS0 quiet panic=-1 $arguments" "$@" 2>/dev/null |
		tr -d '\r' | sed -n '/RECORDING-BEGINS/,/RECORDING-ENDS/p' | sed '/RECORDING-/d' >"$work/out"
	[ -s "$work/out" ] || { echo "$name: nothing recorded" >&2; return 1; }
	{ echo "# qemu -smp $smp, kernel: ${arguments:-no arguments}"; cat "$work/out"; } >"testdata/topologies/vm-$name.txt"
	echo "$name: $(grep -c . "$work/out") files"
}

# memory N SIZE: N memory back ends m0…
memory() {
	i=0
	while [ $i -lt "$1" ]; do
		printf -- '-object memory-backend-ram,id=m%d,size=%sM ' $i "$2"
		i=$((i + 1))
	done
}

wanted="$*"
machine one-socket 4,sockets=1,cores=2,threads=2 ""
machine two-sockets-smt 8,sockets=2,cores=2,threads=2 "" $(memory 2 1024) \
	-numa node,memdev=m0,cpus=0-3 -numa node,memdev=m1,cpus=4-7
machine two-sockets-no-smt 8,sockets=2,cores=4,threads=1 "" $(memory 2 1024) \
	-numa node,memdev=m0,cpus=0-3 -numa node,memdev=m1,cpus=4-7
machine sub-numa 16,sockets=2,cores=4,threads=2 "" $(memory 4 512) \
	-numa node,memdev=m0,cpus=0-3 -numa node,memdev=m1,cpus=4-7 -numa node,memdev=m2,cpus=8-11 -numa node,memdev=m3,cpus=12-15 \
	-numa dist,src=0,dst=1,val=11 -numa dist,src=0,dst=2,val=21 -numa dist,src=0,dst=3,val=21 \
	-numa dist,src=1,dst=2,val=21 -numa dist,src=1,dst=3,val=21 -numa dist,src=2,dst=3,val=11
machine dies 16,sockets=2,dies=2,cores=2,threads=2 "" $(memory 2 1024) \
	-numa node,memdev=m0,cpus=0-7 -numa node,memdev=m1,cpus=8-15
machine four-sockets 16,sockets=4,cores=2,threads=2 "" $(memory 4 512) \
	-numa node,memdev=m0,cpus=0-3 -numa node,memdev=m1,cpus=4-7 -numa node,memdev=m2,cpus=8-11 -numa node,memdev=m3,cpus=12-15
machine eight-sockets 16,sockets=8,cores=2,threads=1 "" $(memory 8 256) \
	-numa node,memdev=m0,cpus=0-1 -numa node,memdev=m1,cpus=2-3 -numa node,memdev=m2,cpus=4-5 -numa node,memdev=m3,cpus=6-7 \
	-numa node,memdev=m4,cpus=8-9 -numa node,memdev=m5,cpus=10-11 -numa node,memdev=m6,cpus=12-13 -numa node,memdev=m7,cpus=14-15
machine memory-only 8,sockets=2,cores=2,threads=2 "" $(memory 4 512) \
	-numa node,memdev=m0,cpus=0-3 -numa node,memdev=m1,cpus=4-7 -numa node,memdev=m2 -numa node,memdev=m3 \
	-numa dist,src=0,dst=1,val=21 -numa dist,src=0,dst=2,val=17 -numa dist,src=0,dst=3,val=28 \
	-numa dist,src=1,dst=2,val=28 -numa dist,src=1,dst=3,val=17 -numa dist,src=2,dst=3,val=28
machine memoryless 8,sockets=2,cores=2,threads=2 "" $(memory 1 2048) \
	-numa node,memdev=m0,cpus=0-3 -numa node,cpus=4-7
machine isolated 8,sockets=2,cores=2,threads=2 "isolcpus=2,3,6,7" $(memory 2 1024) \
	-numa node,memdev=m0,cpus=0-3 -numa node,memdev=m1,cpus=4-7
machine offline 8,sockets=2,cores=2,threads=2 "proxima.offline=3;6" $(memory 2 1024) \
	-numa node,memdev=m0,cpus=0-3 -numa node,memdev=m1,cpus=4-7
machine node-of-sockets 8,sockets=8,cores=1,threads=1 "" $(memory 2 1024) \
	-numa node,memdev=m0,cpus=0-3 -numa node,memdev=m1,cpus=4-7
machine one-cpu 1 ""
