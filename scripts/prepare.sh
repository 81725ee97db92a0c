#!/bin/sh
# Installs what the tests need: programs from the distribution, and Python packages in .venv. It names what is
# missing and cannot be installed, and the tests that need it are skipped. With the word `soak` it also installs
# what `make soak` alone needs.
set -eu
cd "$(dirname "$0")/.."

# mysqlclient is compiled beside the headers of the Python that makes .venv.
headers=$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null) ||
    headers=/usr/include/python3

# Each line has a program or a file, its package, and what is skipped without it.
needs='
memcached  memcached            everything that is checked beside a real memcached
redis-server redis-server       everything that is checked beside a real Redis
redis-cli  redis-tools          the command line of Redis as a client
mariadbd   mariadb-server       everything that is checked beside a real MariaDB
/usr/lib/galera/libgalera_smm.so galera-4 everything that is checked with a Galera cluster
rsync      rsync                everything that is checked with a Galera cluster
memccat    libmemcached-tools   clients built on libmemcached
nutcracker nutcracker           side by side with twemproxy
haproxy    haproxy              side by side with HAProxy
openssl    openssl              certificates, and so the tests of TLS
valgrind   valgrind             the guard on instructions per request
mariadb_config libmariadb-dev   mysqlclient as a driver
pkg-config pkg-config           mysqlclient as a driver
promtool   prometheus           rules and dashboards beside a real Prometheus
chromium   chromium             the console in a browser
nft        nftables             everything that is checked in a Kubernetes cluster
'"$headers"'/Python.h python3-dev mysqlclient as a driver
'
[ "${1:-}" != soak ] || needs="$needs"'
php        php-cli              drivers of PHP
/usr/lib/php/*/mysqli.so php-mysql drivers of PHP
ruby       ruby                 the driver of Ruby
/usr/lib/*/ruby/vendor_ruby/*/mysql2/mysql2.so ruby-mysql2 the driver of Ruby
javac      default-jdk-headless drivers of Java
mvn        maven                drivers of Java
'
sbin="$PATH:/usr/sbin:/sbin"

is_here() {
    case $1 in
        # A pattern stands for the files that fit it, so that it must not be quoted.
        /*) ls $1 >/dev/null 2>&1 ;;
        *) PATH=$sbin command -v "$1" >/dev/null ;;
    esac
}

missing() {
    echo "$needs" | while read -r program package skipped; do
        [ -z "$program" ] || is_here "$program" || echo "$package $skipped"
    done
    can_make_venv || echo "python3-venv the end-to-end tests"
}

can_make_venv() {
    [ -x .venv/bin/python ] || python3 -c 'import venv, ensurepip' 2>/dev/null
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Packages of servers start them, on ports that may be in use. Debian asks this file whether it may.
guard=/usr/sbin/policy-rc.d
install_packages() {
    if [ ! -e "$guard" ]; then
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$guard" >/dev/null
        as_root chmod 755 "$guard"
        trap 'as_root rm -f "$guard"' EXIT
        trap 'exit 130' INT TERM
    fi
    as_root apt-get update -q >/dev/null || true
    status=0
    # Packages are installed one by one, as a package that a release lacks must not prevent the others.
    for package in "$@"; do
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$package" \
            </dev/null >/dev/null || status=1
    done
    return $status
}

# This is a list of words, one for each package, and must not be quoted below.
wanted=$(missing | cut -d' ' -f1 | sort -u)
if [ -n "$wanted" ]; then
    if ! command -v apt-get >/dev/null; then
        echo "prepare: no apt-get here; not installed:" $wanted
    elif [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
        echo "prepare: installing needs root or sudo without a password; not installed:" $wanted
    else
        echo "prepare: installing" $wanted
        install_packages $wanted || echo "prepare: not everything could be installed"
    fi
fi
missing | while read -r package skipped; do
    echo "prepare: skipped, as $package is missing: $skipped"
done

# Installs the Python packages that a file of the tests names, unless the other file says that they are there.
install_python() {
    if ! cmp -s "tests/$1" ".venv/$2"; then
        # An old pip knows only this option, and need not be updated.
        PIP_DISABLE_PIP_VERSION_CHECK=1 .venv/bin/python -m pip install --quiet -r "tests/$1" </dev/null &&
            cp "tests/$1" ".venv/$2"
    fi
}

if can_make_venv; then
    [ -x .venv/bin/python ] || python3 -m venv .venv
    install_python requirements.txt installed
    # Without what it is compiled with, all other packages are there.
    if is_here mariadb_config; then
        install_python compiled.txt installed-compiled ||
            echo "prepare: skipped, as it cannot be compiled: mysqlclient as a driver"
    fi
fi

# Servers of other Debian releases are unpacked beside their own C libraries, and not installed.
if command -v apt-get >/dev/null; then
    if [ ! -d target/servers/valkey-trixie/root ]; then
        echo "prepare: unpacking Valkey"
        python3 wire/commands/servers.py valkey trixie </dev/null |
            sed -n 's/^no /prepare: skipped, the corpus beside Valkey: no /p'
    fi
    if [ ! -d target/servers/mariadb118/data ] || [ ! -d target/servers/mysql97/data ] ||
        [ ! -e target/servers/mysqlrouter97/root/usr/bin/mysqlrouter.real ]; then
        echo "prepare: unpacking MariaDB 11.8, MySQL 9.7 and MySQL Router 9.7"
        python3 wire/commands/databases.py </dev/null |
            sed -n 's/^no /prepare: skipped, everything that is checked beside it: no /p'
    fi
fi

# The nodes of the tests' Kubernetes cluster have the container runtime of the agent's tests.
packages=/var/cache/proxima-agent-lab
if [ -e agent/testdata/prepare.sh ] && [ ! -e "$packages/net/cni/portmap" ] && [ "$(id -u)" = 0 ]; then
    echo "prepare: unpacking containerd, runc and CNI plugins"
    sh agent/testdata/prepare.sh "$packages" >/dev/null 2>&1 ||
        echo "prepare: skipped, as not all could be fetched: everything that is checked in a Kubernetes cluster"
fi
